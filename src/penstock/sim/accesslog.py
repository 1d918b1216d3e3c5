"""A raw access log made of a load: what the demo and the tests begin with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from penstock.core.files import whole
from penstock.sim.workloads import Load

_PAGES = ("/", "/index.html", "/search", "/cart", "/checkout", "/images/logo.png", "/api/items", "/login")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def write_access_log(load: Load, path: Path, begin: datetime, seed: int = 0) -> int:
    """Write requests as an NCSA common log; returns how many. Each interval's number is drawn around its rate."""
    rng = np.random.default_rng([seed, 2])
    counts = rng.poisson(load.arrivals)
    lines = 0
    with whole(path) as scratch, scratch.open("w", encoding="ascii") as file:
        for end_s, count in zip(load.times_s.tolist(), counts.tolist(), strict=True):
            begin_s = begin.timestamp() + end_s - load.tick_s
            offsets_s = np.sort(rng.random(count)) * load.tick_s
            pages = rng.integers(0, len(_PAGES), count)
            sizes = rng.lognormal(8.0, 1.0, count).astype(int)
            clients = rng.integers(1, 1 << 24, count)
            rows = zip(offsets_s.tolist(), pages.tolist(), sizes.tolist(), clients.tolist(), strict=True)
            file.writelines(_line(begin_s + at, page, size, client) for at, page, size, client in rows)
            lines += count
    return lines


def _line(time_s: float, page: int, size: int, client: int) -> str:
    when = datetime.fromtimestamp(int(time_s), UTC)
    stamp = f"{when.day:02}/{_MONTHS[when.month - 1]}/{when.year}:{when:%H:%M:%S}"
    address = f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}"
    return f'{address} - - [{stamp} +0000] "GET {_PAGES[page]} HTTP/1.1" 200 {size}\n'
