"""Kafka's jars: fetched once by coordinates, with the Ivy that is inside PySpark, and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

from penstock.core.errors import ExternalError
from penstock.core.files import remove_own, whole_folder
from penstock.live.daemon import SPARK_HOME, java_executable
from penstock.live.locks import open_lock, take
from penstock.pipeline.java import need_java

KAFKA_VERSION = "4.2.0"
ASSETS = Path(__file__).parent / "assets"
FETCH_S = 900.0  # 63 MB in 56 files: 45 s on a good line


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """The broker's own jars, and those of Spark's Kafka connector."""

    broker: tuple[Path, ...]
    connector: tuple[Path, ...]

    @property
    def spark_jars(self) -> str:
        """The connector, as the setting `spark.jars` wants it."""
        return ",".join(map(str, self.connector))


def kafka_jars() -> KafkaJars:
    """The jars, from the cache or fetched now. No Kafka installation, no Maven, no address of ours."""
    folder = jar_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open_lock(folder.parent / "lock") as lock:
        take(lock)  # a second process waits for the first one's download
        if not folder.is_dir():
            _fetch(folder)
    return KafkaJars(*(tuple(sorted((folder / kind).glob("*.jar"))) for kind in ("broker", "connector")))


def jar_folder() -> Path:
    """Where the jars of these versions are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / "jars" / f"kafka-{KAFKA_VERSION}-spark-{pyspark.__version__}"


def _fetch(folder: Path) -> None:
    need_java()
    for killed in folder.parent.glob(f".{folder.name}.*.part"):
        remove_own(killed)
    with whole_folder(folder) as scratch:
        _run_ivy(scratch)
        shutil.rmtree(scratch / "ivy", ignore_errors=True)


def _run_ivy(scratch: Path) -> None:
    versions = {"penstock.kafka": KAFKA_VERSION, "penstock.spark": pyspark.__version__}
    # Ivy would otherwise keep its own copy of everything in the user's home.
    own = {**versions, "ivy.default.ivy.user.dir": str(scratch / "ivy")}
    (ivy,) = (SPARK_HOME / "jars").glob("ivy-*.jar")
    java = [java_executable(), *(f"-D{name}={value}" for name, value in own.items()), "-jar", str(ivy)]
    pattern = f"{scratch}/[conf]/[artifact]-[revision].[ext]"
    # Without `bundle` six jars are missing: zstd, snappy and others are OSGi bundles.
    wanted = ["-retrieve", pattern, "-types", "jar", "bundle", "-confs", "broker", "connector"]
    try:
        done = subprocess.run(
            [*java, "-ivy", str(ASSETS / "ivy.xml"), *wanted], capture_output=True, text=True, timeout=FETCH_S
        )
    except subprocess.TimeoutExpired:
        raise ExternalError(f"Kafka's jars could not be fetched within {FETCH_S:.0f} s") from None
    if done.returncode or not (scratch / "broker").is_dir() or not (scratch / "connector").is_dir():
        raise ExternalError(f"Kafka's jars could not be fetched: {_why(done.stdout + done.stderr)}")


def _why(said: str) -> str:
    """The line of Ivy's page that names the cause."""
    lines = [line.strip() for line in said.splitlines()]
    for sign in ("Host ", "UnknownHost", "SocketException", "timed out", "not found", "rror", "xception"):
        for line in lines:
            if sign in line:
                return line[:200]
    return lines[-1][:200] if lines else "Ivy said nothing"
