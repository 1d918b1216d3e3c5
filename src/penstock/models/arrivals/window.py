"""A window of gaps between arrivals: cleaned, with its statistics and what had to be said about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.core.bounds import EVENTS_MOST
from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats

ARRIVALS_LEAST = 100
# Below the first nothing can be said of correlation; below the second two states are all that is learnt (10–90 % of
# fits to 1,000 arrivals predict 0.61 to 1.39 of the exact response, of fits to 25,000 arrivals 0.91 to 1.03).
SHORT, MODEST = 500, 2000
# A gap so many times the 99.9th percentile is an outage, not an arrival pattern: it alone would make m2 and m3.
OUTAGE = 50.0
# Fewer equal timestamps than this are spread within the clock's step. More are batches, unless the clock is so coarse
# that its step, in mean gaps, is at least this part of their share: then rounding made them.
TIES, EXPLAINED = 0.01, 0.5
# Gaps that differ by less, in mean gaps, differ by rounding.
FINEST = 1e-4
# The 99 % point of chi-square with 20 degrees: no correlation in the first 20 lags (Ljung and Box).
LAGS, CHI_SQUARE = 20, 37.57
# Blocks of so many gaps tell slow changes of the rate that are too weak for single lags.
BLOCK = 100
DRIFT_SIGMAS = 5.0
CONSTANT_SCV = 0.02


@dataclass(frozen=True, eq=False)
class Window:
    """Gaps in units of their mean, and what was done to them.

    >>> window = Window.of(np.random.default_rng(0).exponential(0.02, 5000))
    >>> round(window.mean_s, 3), window.is_renewal, window.is_poisson, window.notes
    (0.02, True, True, ())
    """

    gaps: Floats
    mean_s: float
    """Of all gaps, ties included."""
    tied: float
    """The share of arrivals that came with the one before them, where these were taken out of `gaps`."""
    step: float
    """The clock's step in mean gaps, where there are batches; else 0."""
    notes: tuple[str, ...]
    count: int
    """Gaps before ties were taken out."""

    @classmethod
    def as_seen(cls, gaps_s: npt.ArrayLike) -> Window:
        """Checked, without outages; ties stay: its statistics are those of the gaps themselves."""
        gaps, notes = _without_outages(_checked(gaps_s))
        mean_s = float(gaps.mean())
        if not mean_s * EVENTS_MOST >= 1:  # after outages nothing may be left but zeros
            raise BadInput(f"arrivals: a mean gap of {mean_s:.3g} s: {1 / EVENTS_MOST:g} s at least; is --unit right?")
        return cls(gaps / mean_s, mean_s, 0.0, 0.0, notes, len(gaps))

    @classmethod
    def of(cls, gaps_s: npt.ArrayLike) -> Window:
        """To be fitted: ties, moreover, spread or taken out."""
        seen = cls.as_seen(gaps_s)
        gaps, mean_s, notes = seen.gaps, seen.mean_s, seen.notes
        zero = gaps <= 0
        tied = float(zero.mean())
        if not tied:
            return seen
        count, step = len(gaps), _clock_step(gaps)
        if tied < TIES or step >= EXPLAINED * tied:
            notes = (*notes, f"{tied:.2%} equal times spread over the clock's step")
            return cls(_spread(gaps, step), mean_s, 0.0, 0.0, notes, count)
        gaps = gaps[~zero]
        scale = float(gaps.mean())
        notes = (*notes, f"{tied:.1%} of the arrivals are in batches")
        return cls(gaps / scale, mean_s, tied, step / scale, notes, count)

    def __len__(self) -> int:
        return len(self.gaps)

    @property
    def rate(self) -> float:
        """Arrivals per second."""
        return 1 / self.mean_s

    @cached_property
    def scv(self) -> float:
        return float(self.gaps.var())

    @cached_property
    def third(self) -> float:
        """E[X³], the largest 0.01 % cut: else a handful of gaps decides it."""
        return float(np.mean(np.minimum(self.gaps, np.quantile(self.gaps, 0.9999)) ** 3))

    @cached_property
    def skewness(self) -> float:
        spread = self.scv**1.5  # 0 of constant gaps, whose skewness is none
        return float(np.mean((self.gaps - 1) ** 3) / spread) if spread else 0.0

    @cached_property
    def correlations(self) -> Floats:
        """ρ_0, ρ_1, … up to a tenth of the window, by fast Fourier transform."""
        return autocorrelations(self.gaps, max(LAGS + 1, len(self) // 10))

    @property
    def is_short(self) -> bool:
        """Too few arrivals to tell correlation from chance."""
        return len(self) < SHORT

    @property
    def is_modest(self) -> bool:
        """Enough for two states, and no more."""
        return len(self) < MODEST

    @property
    def gamma_max(self) -> float:
        """How slowly correlation may fade: a few arrivals cannot show that bursts last for thousands."""
        return 1 - 10 / len(self) if self.is_modest else 1 - 1e-9

    @property
    def noise(self) -> float:
        """What a correlation of independent gaps stays below, 95 times in 100."""
        return 1.96 / math.sqrt(len(self))

    def dispersion(self, block: int) -> float:
        """Var(sum of `block` gaps) / block: 1 for Poisson, grows with bursts."""
        whole = len(self) // block * block
        return float(self.gaps[:whole].reshape(-1, block).sum(axis=1).var() / block)

    @cached_property
    def is_renewal(self) -> bool:
        """No sign of correlation: neither in the first 20 lags nor in sums of 100 gaps."""
        n, lags = len(self), np.arange(1, LAGS + 1)
        q = n * (n + 2) * float((self.correlations[1 : LAGS + 1] ** 2 / (n - lags)).sum())
        blocks = n // BLOCK
        if blocks < 5:
            return q < CHI_SQUARE
        # The variance of `blocks` sums has a relative error of √(2 / blocks).
        return q < CHI_SQUARE and self.dispersion(BLOCK) < self.scv * (1 + 4 * math.sqrt(2 / blocks))

    @property
    def is_poisson(self) -> bool:
        """Exponential gaps without correlation; the sample SCV of Poisson has a standard error of 2 / √n."""
        return self.is_renewal and not self.tied and abs(self.scv - 1) < 6 / math.sqrt(len(self))

    @property
    def is_constant(self) -> bool:
        return self.scv < CONSTANT_SCV

    @cached_property
    def drifts(self) -> bool:
        """Do the means of the two halves differ by more than 5 standard errors, by means of 20 blocks each?"""
        half = len(self) // 40 * 20
        if half < 200:
            return False
        parts = [part.reshape(20, -1).mean(axis=1) for part in (self.gaps[:half], self.gaps[-half:])]
        error = math.sqrt(sum(part.var(ddof=1) / 20 for part in parts))
        return bool(abs(parts[0].mean() - parts[1].mean()) > DRIFT_SIGMAS * error)


def gaps_of(times_s: npt.ArrayLike) -> tuple[Floats, int]:
    """Gaps between timestamps, and how many of these were out of order: they are sorted."""
    times = np.asarray(times_s, dtype=np.float64)
    if not np.isfinite(times).all():
        raise BadInput("arrivals: some timestamps are no finite numbers")
    gaps = np.diff(times)
    late = int((gaps < 0).sum())
    return (np.diff(np.sort(times)) if late else gaps), late


def autocorrelations(values: Floats, lags: int) -> Floats:
    """ρ_0 … ρ_lags of a series, biased (divided by n) as is usual."""
    centred = values - values.mean()
    size = 1 << math.ceil(math.log2(len(values) + lags + 1))
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    products = np.fft.irfft(power, size)[: lags + 1]
    return np.asarray(products / max(products[0], 1e-300), dtype=np.float64)


def tails(gaps: Floats, parts: Sequence[int] = (1, 2)) -> list[Floats]:
    """A monitoring buffer's windows: all of it, its latest half, … (paper 4 §IV-C)."""
    return [gaps[-(len(gaps) // part) :] for part in parts]


def _checked(gaps_s: npt.ArrayLike) -> Floats:
    try:
        gaps = np.array(gaps_s, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise BadInput("arrivals: gaps between arrivals must be numbers") from None
    if len(gaps) < ARRIVALS_LEAST:
        raise BadInput(f"arrivals: {len(gaps)} gaps between arrivals; at least {ARRIVALS_LEAST} are needed")
    wrong = np.flatnonzero(~np.isfinite(gaps) | (gaps < 0))
    if len(wrong):
        raise BadInput(f"arrivals: gap {wrong[0] + 1} is {gaps[wrong[0]]:g}; gaps are finite and not negative")
    if not gaps.any():
        raise BadInput("arrivals: all gaps are zero; give times with a finer clock")
    return gaps


def _clock_step(gaps: Floats) -> float:
    """The least difference between two gaps: 1 ms on a clock of milliseconds, next to nothing on a fine one."""
    values = np.unique(np.round(gaps / FINEST))
    return float(np.diff(values).min()) * FINEST


def _spread(gaps: Floats, step: float) -> Floats:
    """Arrivals anywhere within their clock's step; a fixed seed, so that the same window is always fitted alike."""
    times = np.append(0.0, np.cumsum(gaps)) + np.random.default_rng(0).uniform(0, step, len(gaps) + 1)
    spread = np.maximum(np.diff(np.sort(times)), 1e-6 * step)
    return np.asarray(spread / spread.mean(), dtype=np.float64)


def _without_outages(gaps: Floats) -> tuple[Floats, tuple[str, ...]]:
    usual = float(np.quantile(gaps, 0.999))
    out = gaps > OUTAGE * usual if len(gaps) >= SHORT and usual > 0 else np.zeros(len(gaps), dtype=bool)
    if not out.any():
        return gaps, ()
    return gaps[~out], (f"{int(out.sum())} gaps of more than {OUTAGE:g} times the 99.9th percentile left out",)
