"""The default policy's outlook by any forecaster: the rate is the forecaster's, its margin is learnt as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.core.errors import unknown
from penstock.models.count_margin import CountMargin
from penstock.models.forecast import Forecaster, SeasonalNaive, WindowMean
from penstock.models.holt_winters import HoltWinters, Season
from penstock.models.outlook import DAY_S, LEAST, Outlook

DEFAULT = "outlook"
BY_NAME: Mapping[str, Callable[[int], Forecaster]] = {
    "caf": lambda _: WindowMean(1),
    "waaf": lambda _: WindowMean(3),
    "seasonal-naive": SeasonalNaive,
    "holt-winters": HoltWinters,
    "holt-winters-multiplicative": lambda season: HoltWinters(season, Season.MULTIPLICATIVE),
}
"""Forecasters by the ticks of a season."""
NAMES = (DEFAULT, *BY_NAME)


class ForecastOutlook(Outlook):
    """Arrivals of the next `ahead_s` seconds, as a forecaster has them tick by tick.

    >>> outlook = ForecastOutlook(WindowMean(3), 60.0, 120.0)
    >>> for arrived in (600.0, 600.0, 900.0): outlook.note(arrived)
    >>> round(outlook.rate, 2)
    11.67
    """

    def __init__(
        self,
        forecaster: Forecaster,
        tick_s: float,
        ahead_s: float,
        kappa: float = 1.5,
        counts: CountMargin | None = None,
    ) -> None:
        super().__init__(tick_s, ahead_s, kappa, learns=False, counts=counts)
        self._forecaster = forecaster

    def _expected(self, arrived: float, *_: object) -> float:
        self._forecaster.note(arrived / self._tick_s)
        ahead = self._forecaster.ahead(self._ahead)
        return max(LEAST, sum(ahead) / len(ahead))


def outlook_by(  # noqa: PLR0913  those of an outlook, and whose it is
    name: str, tick_s: float, ahead_s: float, kappa: float, learns: bool = True, counts: CountMargin | None = None
) -> Outlook:
    """The outlook of a name: the default one, or a forecaster's with a season of a day."""
    if name == DEFAULT:
        return Outlook(tick_s, ahead_s, kappa, learns, counts)
    if name not in BY_NAME:
        raise unknown("deadline:forecast", name, NAMES)
    return ForecastOutlook(BY_NAME[name](max(1, round(DAY_S / tick_s))), tick_s, ahead_s, kappa, counts)
