"""Sessions that cannot start say so in one line."""

from __future__ import annotations

import gc
import socket
import time
from pathlib import Path

import pytest

from penstock.core.errors import BadInput, ExternalError
from penstock.pipeline.java import need_java
from penstock.pipeline.session import reach, session


def test_without_java_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="default-jre-headless, or set JAVA_HOME"):
        need_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="none was found"):
        need_java()


def test_an_old_java_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="is version 8"):
        need_java()


def test_a_master_that_nobody_listens_at_fails_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = time.monotonic()
    with pytest.raises(ExternalError, match="does not answer: Connection refused"):
        reach(f"spark://127.0.0.1:{port}")
    assert time.monotonic() - before < 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PySpark leaves its pipe open
def test_a_start_that_hangs_is_given_up_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr("penstock.pipeline.starting.STILL_S", 1.0)
    monkeypatch.setattr("penstock.pipeline.session.SparkSession.getActiveSession", lambda: None)
    before = time.monotonic()
    with pytest.raises(ExternalError, match="Spark did not start"), session("local[1]"):
        pass
    gc.collect()  # while the warning is ignored
    assert time.monotonic() - before < 30


@pytest.mark.parametrize("master", ["mesos://x", "spark://nowhere", "127.0.0.1:7077"])
def test_what_is_not_a_master_is_refused(master: str) -> None:
    with pytest.raises(BadInput, match="is not a"):
        reach(master)
