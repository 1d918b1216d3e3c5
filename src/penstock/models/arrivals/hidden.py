"""Arrivals as a hidden chain with an Erlang gap in each state, fitted by expectation and maximisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.models.compiled import compiled
from penstock.models.markov.chains import Floats, stationary
from penstock.models.markov.map import Map

# Rates begin this many decades around the mean, and stay with their state so often.
DECADES, STAYS = 0.8, 0.95
# Relative change of the log-likelihood at which rounds end.
CHANGE = 1e-7
# No state is left less often than this: e^-25 of the mean rate would be a burst nobody saw the end of.
LEAST = 1e-11
LEAP_MOST = 64.0


@dataclass(frozen=True, eq=False)
class Hidden:
    """State s lasts for one gap, Erlang with `phases` of rate μ_s each; P says which state follows."""

    mu: Floats
    p: Floats
    phases: int
    log_likelihood: float = -math.inf

    @property
    def states(self) -> int:
        return len(self.mu) * self.phases

    @property
    def aic(self) -> float:
        """Lower is better (Akaike). BIC chose 4 states for packet traces whose queues 8 predict better."""
        return -2 * self.log_likelihood + 2 * len(self.mu) ** 2

    def faded(self, gamma_max: float) -> Hidden:
        """With a memory that fades at least so fast: P moved towards its stationary rows."""
        slowest = float(np.sort(np.abs(np.linalg.eigvals(self.p)))[-2]) if len(self.p) > 1 else 0.0
        if slowest <= gamma_max:
            return self
        rest = stationary(self.p)
        p = rest + (self.p - rest) * (gamma_max / slowest)
        return Hidden(self.mu, p, self.phases, self.log_likelihood)

    def closed(self, gaps: Floats) -> Hidden:
        """One transition more, from the last gap's state to the first one's: a level that lasts to the window's end was
        left once, not never. Of a rate that changed once likelihood keeps the last level alone, a Poisson process."""
        room = _Room.of(len(gaps), len(self.mu))
        _expect(gaps, self, room)
        pairs = np.maximum(room.pairs, LEAST * len(gaps)) + np.outer(room.ahead[-1], room.ahead[0])
        return Hidden(self.mu, pairs / pairs.sum(axis=1, keepdims=True), self.phases, self.log_likelihood)

    def map(self) -> Map:
        """The arrival process: a gap's phases in a row, the last jump is the arrival."""
        n, k = len(self.mu), self.phases
        stage, last = np.eye(k, k=1), np.zeros((k, k))
        last[-1, 0] = 1.0
        rates = np.kron(np.diag(self.mu), np.ones((k, k)))
        d0 = rates * np.kron(np.eye(n), stage)
        d1 = np.kron(self.mu[:, np.newaxis] * self.p, last)
        np.fill_diagonal(d0, -(d0.sum(axis=1) + d1.sum(axis=1)))
        return Map(d0, d1)


def spread_out(states: int, phases: int = 1) -> Hidden:
    """Where the rounds begin: rates spread around the mean, states that last."""
    if states == 1:
        return Hidden(np.array([float(phases)]), np.ones((1, 1)), phases)
    p = np.full((states, states), (1 - STAYS) / (states - 1))
    np.fill_diagonal(p, STAYS)
    return Hidden(phases * 10 ** np.linspace(-DECADES, DECADES, states), p, phases)


def fit_hidden(gaps: Floats, begin: Hidden, rounds: int, rate_max: float = math.inf) -> Hidden:
    """Rounds of EM with leaps along their direction (SQUAREM, a third of the rounds); one that loses is taken back."""
    room = _Room.of(len(gaps), len(begin.mu))
    now, safe = begin, begin
    done = 0
    while done < rounds:
        once = _round(gaps, now, room, rate_max)
        done += 1
        if once.log_likelihood < safe.log_likelihood:
            if now is safe:
                break
            now = safe
            continue
        twice = _round(gaps, once, room, rate_max)
        done += 1
        gained = twice.log_likelihood - safe.log_likelihood
        safe = twice
        if gained < CHANGE * abs(twice.log_likelihood):
            break
        now = _leap(now, once, twice)
    return safe


@dataclass(frozen=True, slots=True)
class _Room:
    """Arrays that every round writes anew: fresh ones cost as much as the exponentials in them."""

    chances: Floats
    ahead: Floats
    pairs: Floats
    ones: Floats

    @classmethod
    def of(cls, gaps: int, states: int) -> _Room:
        return cls(np.empty((gaps, states)), np.empty((gaps, states)), np.empty((states, states)), np.ones(gaps))


def _round(gaps: Floats, model: Hidden, room: _Room, rate_max: float) -> Hidden:
    """One round; the log-likelihood is that of the model it began with."""
    k, log_likelihood = model.phases, _expect(gaps, model, room)
    rates = np.minimum(k * (room.ones @ room.ahead) / (gaps @ room.ahead), rate_max)
    pairs = np.maximum(room.pairs, LEAST * len(gaps))
    return Hidden(rates, pairs / pairs.sum(axis=1, keepdims=True), k, log_likelihood)


def _expect(gaps: Floats, model: Hidden, room: _Room) -> float:
    """Probabilities of the states at each gap, and expected transitions, into the room; returns the log-likelihood."""
    mu, k, chances = model.mu, model.phases, room.chances
    np.multiply.outer(gaps, -mu, out=chances)
    np.exp(chances, out=chances)
    chances *= mu**k / math.factorial(k - 1)
    if k > 1:
        chances *= (gaps ** (k - 1))[:, np.newaxis]
    # A gap that no state explains must not end the rounds: e^-640 is near the least number there is.
    np.maximum(chances, 1e-280, out=chances)
    shrinks = forward(chances, model.p, room.ahead)
    backward(chances, model.p, shrinks, room.ahead, room.pairs)
    return -float(np.log(shrinks).sum())


def _leap(zero: Hidden, once: Hidden, twice: Hidden) -> Hidden:
    """θ_0 − 2a r + a² v, with a = −|r| / |v| (Varadhan and Roland), in logs."""
    t0, t1, t2 = (np.append(np.log(m.mu), np.log(m.p)) for m in (zero, once, twice))
    r, v = t1 - t0, t2 - 2 * t1 + t0
    a = -min(max(float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), 1e-300), 1.0), LEAP_MOST)
    t, n = t0 - 2 * a * r + a * a * v, len(zero.mu)
    p = np.exp(np.clip(t[n:], math.log(LEAST), 25.0)).reshape(n, n)
    return Hidden(np.exp(np.clip(t[:n], -25, 25)), p / p.sum(axis=1, keepdims=True), zero.phases)


@compiled
def forward(chances: Floats, p: Floats, ahead: Floats) -> Floats:
    """`ahead` takes the probabilities of the states, given the gaps up to each. Returns the scales: the log-likelihood
    is minus the sum of their logs."""
    n, states = chances.shape
    shrinks, v = np.empty(n), np.ones(states)
    before = np.ones(states)
    for k in range(n):
        if k:
            v[:] = 0.0
            for i in range(states):
                for j in range(states):
                    v[j] += before[i] * p[i, j]
        total = 0.0
        for j in range(states):
            v[j] *= chances[k, j]
            total += v[j]
        shrinks[k] = 1 / total
        for j in range(states):
            before[j] = v[j] * shrinks[k]
            ahead[k, j] = before[j]
    return shrinks


@compiled
def backward(chances: Floats, p: Floats, shrinks: Floats, ahead: Floats, pairs: Floats) -> None:
    """`ahead` becomes the probabilities of the states, given all gaps; `pairs` takes the expected transitions."""
    n, states = chances.shape
    turned = p.T.copy()
    after, w = np.ones(states), np.empty(states)
    pairs[:] = 0.0
    for k in range(n - 1, -1, -1):
        for j in range(states):
            w[j] = chances[k, j] * after[j] * shrinks[k]
            ahead[k, j] *= after[j]
        if k:
            after[:] = 0.0
            # Two loops, each along its rows, so that both are vectorised.
            for j in range(states):
                for i in range(states):
                    after[i] += turned[j, i] * w[j]
            for i in range(states):
                for j in range(states):
                    pairs[i, j] += ahead[k - 1, i] * w[j]
    pairs *= p
