"""Lines to a topic at the times of a bursty stream, each with the microsecond at which it was sent in a header.

    python -m benchmarks.line_feeder BROKER TOPIC SECONDS RATE SEED

A process of its own: a policy that fits would hold up a thread beside it. It prints how many lines were delivered.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from confluent_kafka import Producer

from penstock.apps.logs import SENT, log_lines
from penstock.models.arrivals import poisson
from penstock.models.markov.chains import Floats
from penstock.reproduce.mead_worlds import MMPP2

PHASES = 4
LINES = 5000
LATE_S = 0.002  # a sleep shorter than this is not worth it


def arrival_times(seconds: float, rate: float, seed: int) -> Floats:
    """Calm and bursty in turn, at one rate: a Poisson stream, then an MMPP of two states, twice."""
    rng, parts = np.random.default_rng(seed), []
    for number in range(PHASES):
        process = (MMPP2 if number % 2 else poisson(1.0)).with_rate(rate)
        times = np.cumsum(process.sample(int(4 * rate * seconds / PHASES) + 100, rng))
        parts.append(times[times < seconds / PHASES] + number * seconds / PHASES)
    return np.concatenate(parts)


def main(address: str, topic: str, seconds: str, rate: str, seed: str) -> None:
    times, lines = arrival_times(float(seconds), float(rate), int(seed)), [line.encode() for line in log_lines(LINES)]
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0, "error_cb": lambda _: None})
    begun = time.monotonic()
    for number, at_s in enumerate(times):
        left_s = begun + at_s - time.monotonic()
        if left_s > LATE_S:
            time.sleep(left_s)
        sent = str(time.time_ns() // 1000)
        producer.produce(topic, lines[number % LINES], headers={SENT: sent})
        producer.poll(0)
    left = producer.flush(30)
    print(len(times) - left, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
