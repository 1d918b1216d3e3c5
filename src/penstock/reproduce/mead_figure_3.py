"""Figure 3: what three models predict of one queue, beside what the very arrivals do to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.models.arrivals import fit_maps, poisson
from penstock.models.markov.chains import Floats
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues import kingman, m_ph_1, map_ph_1
from penstock.models.queues.lindley import responses
from penstock.reproduce.claims import Claim
from penstock.reproduce.mead_worlds import SLOW

LOADS = (0.3, 0.5, 0.7, 0.8)
# The paper's half an hour.
ARRIVALS, RATE = 200_000, 107.5
_HALVES = "neither trace can be given away: a Poisson stream for the taxis', bursts of 8 s for Live Maps'"


def claims(seed: int = 0) -> Iterator[Claim]:
    """Both halves, predicted over measured."""
    rng = np.random.default_rng([seed, 3])
    calm = list(ratios(poisson(RATE).sample(ARRIVALS, rng), rng))
    bursty = list(ratios(SLOW.sample(ARRIVALS, rng), rng))
    for half, rows in (("uncorrelated", calm), ("bursty", bursty)):
        for load, row in zip(LOADS, rows, strict=True):
            text = f"Figure 3, {half}, utilisation {load:g}: M/PH/1, Kingman, MAP/PH/1 over measured mean response"
            shown = ", ".join(f"{ratio:.2g}" for ratio in row)
            yield Claim(f"figure-3-{half}-{load:g}", text, None, shown, None, _HALVES)
    off = max(abs(ratio - 1) for row in calm for ratio in row)
    text = "Figure 3, uncorrelated: the largest error of all models"
    yield Claim("figure-3-calm", text, "all agree", off, off <= 0.1, _HALVES)
    low = 1 / min(row[0] for row in bursty)
    text = "Figure 3, bursty: M/PH/1 predicts so many times too little (most)"
    yield Claim("figure-3-m", text, "almost two orders of magnitude", low, low >= 10, _HALVES)
    least = 1 / min(row[1] for row in bursty)
    text = "the same for Kingman's GI/G/1"
    yield Claim("figure-3-gi", text, "only slightly less", least, least >= low / 3, _HALVES)
    worst = max(max(row[2], 1 / row[2]) for row in bursty)
    yield Claim("figure-3-map", "the same for MAP/PH/1, either way", "matches", worst, worst <= 2, _HALVES)


def ratios(gaps_s: Floats, rng: np.random.Generator) -> Iterator[tuple[float, float, float]]:
    """By utilisation: each model's mean response over the measured one; all are fitted to the whole stream."""
    rate, scv = 1 / float(gaps_s.mean()), float(gaps_s.var() / gaps_s.mean() ** 2)
    fitted = fit_maps(gaps_s, best=1)[0]
    unit = rng.standard_gamma(2.0, len(gaps_s)) / 2
    for load in LOADS:
        mean_s = load * float(gaps_s.mean())
        measured = float(responses(gaps_s, unit * mean_s).mean())
        service = PhaseType.erlang(2, mean_s)
        found = m_ph_1(rate, service).mean_s, kingman(rate, scv, service).mean_s, map_ph_1(fitted, service).mean_s
        yield found[0] / measured, found[1] / measured, found[2] / measured
