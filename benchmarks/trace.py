"""Bytes per second of `penstock trace` on an access log, against DuckDB with the same expression and sums."""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from penstock.pipeline.patterns import LOG
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.session import session
from penstock.pipeline.trace_job import make_trace

GIGABYTE = 1_000_000_000
ROUNDS = 5
MEMORY_SIZES = (GIGABYTE // 10, GIGABYTE, 2 * GIGABYTE)
THREADS = os.cpu_count() or 1

LINES = """read_csv('{path}', columns={{'line': 'VARCHAR'}}, delim='\x01', quote='', escape='', header=false,
    auto_detect=false, strict_mode=false)"""
# Both forms are tried and the faster counts: one match with captures, or a match and then substrings.
EXTRACTED = """SELECT substr(request, 1, 26) AS stamp, split_part(request, ' ', -1) AS size
    FROM (SELECT regexp_extract(line, '{log}', 1) AS request FROM {lines})"""
MATCHED = """SELECT CASE WHEN good THEN substr(line, instr(line, '[') + 1, 26) ELSE '' END AS stamp,
        split_part(split_part(substr(line, instr(line, '] "') + 3), '" ', 2), ' ', 2) AS size
    FROM (SELECT line, regexp_full_match(line, '{log}') AS good FROM {lines})"""
COUNTED = """COPY (
    SELECT time_bucket(INTERVAL 60 seconds, moment) AS time, sum(events) AS arrivals, sum(bytes) AS bytes FROM (
        SELECT try_strptime(stamp, '%d/%b/%Y:%H:%M:%S %z') AS moment, count(*) AS events,
            sum(CASE WHEN size IN ('-', '') THEN 0 ELSE CAST(size AS BIGINT) END) AS bytes
        FROM ({requests}) GROUP BY stamp) WHERE moment IS NOT NULL GROUP BY time ORDER BY time
) TO '{output}' (FORMAT parquet)"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        log = Path(folder) / "access.log"
        write_log(log, GIGABYTE)
        speed(log, Path(folder))
        memory(Path(folder))


def speed(log: Path, folder: Path) -> None:
    """Interleaved, so that a noisy machine is noisy for all."""
    output = folder / "rates.parquet"
    begun = time.perf_counter()
    with session(f"local[{THREADS}]", "bench"):
        started = time.perf_counter() - begun
        contenders: dict[str, Callable[[], object]] = {
            "penstock trace": lambda: make_trace(TraceRequest(log, output)),
            "DuckDB, one regexp_extract": lambda: duck(EXTRACTED, log, folder / "duck.parquet"),
            "DuckDB, match and substrings": lambda: duck(MATCHED, log, folder / "duck.parquet"),
        }
        cold = seconds(contenders["penstock trace"])
        taken: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, run in contenders.items():
                taken[name].append(seconds(run))
    megabytes = log.stat().st_size / 1e6
    print(f"{megabytes:,.0f} MB, {THREADS} threads; start {started:.1f} s, first run {cold:.1f} s; medians of {ROUNDS}")
    for name, times in taken.items():
        middle = statistics.median(times)
        print(f"  {name:30} {middle:6.2f} s  {megabytes / middle:6.0f} MB/s  ({min(times):.2f} to {max(times):.2f} s)")
    same(output, folder / "duck.parquet")
    ours, *theirs = taken
    for name in theirs:
        # Round by round: medians of each alone compare different moments of a noisy machine (1.18 once, for 0.81).
        rounds = [other / own for own, other in zip(taken[ours], taken[name], strict=True)]
        print(f"  ratio to {name}: {statistics.median(rounds):.2f} ({min(rounds):.2f} to {max(rounds):.2f}; target 1)")


def duck(requests: str, log: Path, output: Path) -> None:
    lines = LINES.format(path=log)
    expression = LOG.removeprefix("^").removesuffix("$") if requests is MATCHED else LOG
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(COUNTED.format(requests=requests.format(log=expression, lines=lines), output=output))


def same(ours: Path, theirs: Path) -> None:
    """Speed counts only where both give the same series."""
    with duckdb.connect() as connection:
        series = "SELECT epoch(time), arrivals, bytes FROM '{}' ORDER BY 1"
        one, two = (connection.execute(series.format(path)).fetchall() for path in (ours, theirs))
    if one != two:
        raise SystemExit("penstock trace and DuckDB disagree")


def memory(folder: Path) -> None:
    """Peak memory of the command and its JVM, for logs of growing size."""
    peaks = []
    for size in MEMORY_SIZES:
        log = folder / f"{size}.log"
        write_log(log, size)
        peaks.append(peak_mb(log, folder / "rates.parquet"))
        log.unlink()
        print(f"  {size / GIGABYTE:4.1f} GB: peak {peaks[-1]:,.0f} MB (Python and JVM together)")
    print(f"  peak memory of the largest log to that of the smallest: {peaks[-1] / peaks[0]:.2f}")


def peak_mb(log: Path, output: Path) -> float:
    command = [sys.executable, "-c", "from penstock.cli.main import run; run()", "trace", str(log), "-o", str(output)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peaks: dict[int, int] = {}
    while running.poll() is None:
        for process in [running.pid, *children(running.pid)]:
            peaks[process] = max(peaks.get(process, 0), high_water_kb(process))
        time.sleep(0.1)
    if running.returncode:
        raise SystemExit(f"penstock trace failed with {running.returncode}")
    python, jvm = peaks.pop(running.pid), max(peaks.values(), default=0)
    if jvm < 200_000:  # no Spark driver is that small: the figure would be of something else
        raise SystemExit("the JVM's memory was not seen")
    return (python + jvm) / 1e3


def children(process: int) -> list[int]:
    """Of all its threads: the JVM is started from one that is not the main thread."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def high_water_kb(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def write_log(path: Path, size: int) -> None:
    """A log of about `size` bytes, half common and half combined, 20 to 120 requests a second; the same each time."""
    rng = random.Random(7)
    hosts = [f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)} - - [" for _ in range(5_000)]
    tails = [_tail(rng, i) for i in range(20_000)]
    written, second = 0, 897_000_000
    with path.open("w", buffering=1 << 22) as file:
        while written < size:
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(second))
            count = rng.randrange(20, 120)
            pairs = zip(rng.choices(hosts, k=count), rng.choices(tails, k=count), strict=True)
            written += file.write("".join([host + stamp + tail for host, tail in pairs]))
            second += 1


def _tail(rng: random.Random, i: int) -> str:
    size = rng.choice(["-", str(rng.randrange(100, 99_999)), str(rng.randrange(100, 9_999))])
    page = f"/images/{rng.randrange(10**6)}/page{rng.randrange(1000)}.html"
    tail = f'] "GET {page} HTTP/1.1" {rng.choice([200, 304, 404])} {size}'
    agent = rng.choice(["curl/7.88.1", "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"])
    return tail + (f' "http://example.org/{rng.randrange(1000)}" "{agent}"\n' if i % 2 else "\n")


if __name__ == "__main__":
    main()
