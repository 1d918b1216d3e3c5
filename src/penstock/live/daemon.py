"""Spark's standalone master and workers as processes, and what they say about themselves."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

from penstock.core.errors import ExternalError
from penstock.pipeline.starting import Starting

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
# The wheel has no start scripts. Its `spark-class` would first start another JVM to put the words together;
# on a quarter of a core that alone takes seconds. -XX:TieredStopAtLevel=1: a daemon lives too briefly to repay C2.
_JVM = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dspark.port.maxRetries=0"]


def java_executable() -> str:
    """The Java that `need_java` found."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def spark_command(daemon: str, words: list[str], scratch: Path) -> list[str]:
    """The command line of `org.apache.spark.deploy.<daemon>`."""
    own = [f"-Djava.io.tmpdir={scratch}", "-Dspark.master.rest.enabled=false", "-cp", f"{SPARK_HOME}/jars/*"]
    return [java_executable(), *_JVM, *own, f"org.apache.spark.deploy.{daemon}", "--host", HOST, *words]


def spark_environment(scratch: Path) -> dict[str, str]:
    """What daemons, and the executors that inherit it, see: loopback only, scratch in one place, no user settings."""
    python = Path(sys.executable).parent
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": "2.13",  # Spark 4 has no other; a worker that is not told looks for build folders
        "SPARK_LOCAL_IP": HOST,  # where the web pages are bound; without it on every interface
        "SPARK_CONF_DIR": str(scratch),
        "SPARK_LOCAL_DIRS": str(scratch),
        # Executors look for `python3` on their path: it has to be the one that has this PySpark.
        "PATH": f"{python}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def starting(process: subprocess.Popen[bytes], log: Path, what: str = "") -> Starting:
    """A daemon that starts; it is called as its log is."""
    return Starting(what or log.stem, log, lambda: [process.pid], process.poll)


def port_in_log(log: Path, service: str) -> int:
    """The port that a service took; 0 until its log says so."""
    match = re.search(rf"Successfully started service '{service}' on port (\d+)", log.read_text(errors="replace"))
    return int(match[1]) if match else 0


def page_answers(port: int) -> bool:
    """Whether the master's page is up; it takes its port a moment before it has anything to say."""
    try:
        return port > 0 and workers_alive(port) is not None
    except ExternalError:
        return False


def workers_alive(port: int) -> list[dict[str, Any]]:
    """Workers that the master knows and that live, as its web page tells it."""
    # Not urllib, which would ask a proxy for 127.0.0.1.
    page = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        page.request("GET", "/json/")
        workers = json.loads(page.getresponse().read())["workers"]
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ExternalError(f"the master's page on port {port} does not answer: {error}") from None
    finally:
        page.close()
    return [worker for worker in workers if worker["state"] == "ALIVE"]
