"""A Spark session that starts quietly and leaves nothing behind: no JVM, no scratch, no warehouse."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput, ExternalError, PenstockError
from penstock.pipeline.java import need_java
from penstock.pipeline.starting import Starting, last_words, say, say_after_s

LOCAL = "local[*]"
FOLDERS = "penstock-spark-"
EXECUTOR_S = 300.0  # on a quarter of a core one comes after 12 to 18 s, on a cluster that is full never


@contextlib.contextmanager
def session(
    master: str | None = None, app_name: str = "penstock", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A Spark session, `local[*]` unless a master is given; one that already runs is used and left alone.

    >>> with session() as spark:  # doctest: +SKIP
    ...     spark.range(3).count()
    3
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    need_java()
    # PySpark writes every failed query to stderr as a page of JSON; we say it in one line.
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
    master = master or LOCAL
    reach(master)
    _clear_what_the_dead_left()
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDERS}{os.getpid()}-"))
    try:
        conf = _settings(master, app_name, folder)
        for key, value in (settings or {}).items():
            conf.set(key, value)
        with _gateway(conf, folder / "jvm.log") as gateway:
            yield _start(gateway, master, folder / "jvm.log")
            SparkSession.builder.getOrCreate().stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clear_what_the_dead_left() -> None:
    """A process that was killed could not remove its folder; its number in the name tells that it is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*-*"):
        owner = folder.name.removeprefix(FOLDERS).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _settings(master: str, app_name: str, folder: Path) -> SparkConf:
    cores = os.cpu_count() or 1
    conf = SparkConf(loadDefaults=True)
    conf.setMaster(master).setAppName(app_name)
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.log.level", "ERROR")
    conf.set("spark.sql.session.timeZone", "UTC")
    conf.set("spark.sql.warehouse.dir", str(folder / "warehouse"))
    conf.set("spark.sql.catalogImplementation", "in-memory")
    # pyarrow and DuckDB read microseconds as UTC; Spark's default INT96 loses the zone.
    conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # Adaptive execution joins small shuffle partitions; the default of 200 costs 2 s a job on two cores.
    conf.set("spark.sql.shuffle.partitions", str(max(8, 2 * cores)))
    conf.set("spark.sql.adaptive.coalescePartitions.initialPartitionNum", str(max(8, 2 * cores)))
    conf.set("spark.driver.extraJavaOptions", f'-Djava.io.tmpdir="{folder}" -XX:-UsePerfData -XX:+UseParallelGC')
    if master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:")):
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    if master.startswith("local"):
        conf.set("spark.local.dir", str(folder))
        conf.set("spark.driver.memory", f"{min(8, max(1, cores // 2))}g")
    return conf


@contextlib.contextmanager
def _gateway(conf: SparkConf, log: Path) -> Iterator[Any]:
    """The JVM and the way into it. What the JVM says goes to `log`, never to the user's terminal."""
    with log.open("wb") as said, ThreadPoolExecutor(1) as starter:
        # Started in a thread, which alone knows its JVM: the wait in it has no end of its own.
        launched = starter.submit(launch_gateway, conf, {"stdout": said, "stderr": said, "process_group": 0})
        start = Starting("Spark", log, lambda: _children(log.parent))
        try:
            start.wait(lambda: wait([launched], 0.0).done != set())
            gateway = launched.result()
        except (KeyboardInterrupt, ExternalError):
            _kill_children(log.parent)
            raise
        except Exception as error:
            _kill_children(log.parent)
            raise ExternalError(f"Spark did not start: {last_words(log) or _brief(error)}") from None
        try:
            yield gateway
        finally:
            _end(gateway)


def _children(folder: Path) -> list[int]:
    """Our own children that were started with this session's folder: the JVM, or the scripts before it."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread, or a child, that has just ended
            children = task.read_text().split()
            found += [int(pid) for pid in children if os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


def _kill_children(folder: Path) -> None:
    for child in _children(folder):
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)


def _start(gateway: Any, master: str, log: Path) -> SparkSession:
    """The session in a fresh JVM; one that stands still is ended instead of holding the user."""
    handler = signal.getsignal(signal.SIGINT)
    start = Starting(f"Spark on {master}", log, lambda: [gateway.proc.pid])
    try:
        with start.beside(gateway.proc.kill):
            context = SparkContext(gateway=gateway, conf=None)
            # The JVM reports to this server until it is ended; a report cut short would print a traceback.
            context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
            spark = SparkSession.builder.getOrCreate()
        _wait_for_executors(context, master)
    except PenstockError:
        raise
    except Exception as error:
        if start.failure is not None:
            raise start.failure from None
        if "All masters are unresponsive" in log.read_text(encoding="utf-8", errors="replace"):
            raise ExternalError(f"the master {master} does not answer: Spark has asked it for a minute") from None
        raise ExternalError(f"Spark did not start on {master}: {last_words(log) or _brief(error)}") from None
    finally:
        # PySpark's own handler asks the busy JVM, on the busy connection, to cancel: Ctrl-C would wait
        # for the job to end. Ours ends the JVM.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
    return spark


def _wait_for_executors(context: SparkContext, master: str) -> None:
    if master.startswith("local"):
        return
    tick, begun_s, is_said = threading.Event(), time.monotonic(), False
    status = context._jsc.sc().getExecutorMemoryStatus
    while status().size() <= 1:  # the driver itself is one
        waited_s = time.monotonic() - begun_s
        if waited_s > EXECUTOR_S:
            raise ExternalError(
                f"the master {master} gave no executor within {waited_s:.0f} s: are its workers up and free?"
            )
        if waited_s > say_after_s() and not is_said:
            is_said = True
            say(f"waiting for a first executor of {master}: are its workers up and free?")
        tick.wait(0.25)


def _end(gateway: Any) -> None:
    """End the JVM: it leaves when its standard input closes, and is killed when it does not."""
    # An interrupted call leaves half an answer on the connection, so nothing more is asked of the JVM.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    # Python's collector would otherwise tell a JVM that is gone to forget objects, and log each failure.
    gateway._gateway_client.is_connected = False
    try:
        gateway.proc.stdin.close()
        # On a busy machine a JVM that has done its work may take longer to leave: it is ended, and nothing is wrong.
        with contextlib.suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(timeout=10)
    finally:
        gateway.proc.kill()
        gateway.proc.wait()
        with contextlib.suppress(Exception):
            gateway.close()


def reach(master: str) -> None:
    """Refuse a standalone master that nobody listens at, before a JVM is started."""
    known = ("local", "spark://", "yarn", "k8s://")
    if not master.startswith(known):
        raise BadInput(f"'{master}' is not a Spark master: write local[*], spark://host:7077, k8s://… or yarn")
    if not master.startswith("spark://"):
        return
    host, _, port = master.removeprefix("spark://").split(",")[0].rpartition(":")
    if not host or not port.isdigit():
        raise BadInput(f"'{master}' is not a standalone master: write spark://host:port")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ExternalError(f"the master {master} does not answer: {error.strerror or error}") from None


def _brief(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
