"""What a process holds is given back, however the process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from penstock.core.errors import ExternalError
from penstock.live.resources import MARK, hold, marked, runtime_folder
from tests.live.processes import first_line, left_in, started


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for holdings that nobody else uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 120
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not marked(mark)


def test_a_process_and_what_it_started_end_with_the_block(home: Path) -> None:
    with hold("test") as holding:
        holding.start(["sh", "-c", "sleep 600 & sleep 600"], holding.scratch / "log")
        deadline = time.monotonic() + 120
        while len(marked(holding.mark)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(marked(holding.mark)) == 3
    assert marked(holding.mark) == []
    assert left_in(home) == ["lock"]


def test_a_child_dies_with_a_parent_that_is_killed(home: Path) -> None:
    code = (
        "import json, os, signal; from penstock.live.resources import hold\n"
        "with hold('test') as held:\n"
        "    held.start(['sleep', '600'], held.scratch / 'log')\n"
        "    print(held.mark, flush=True)\n"
        "    import time; time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with started(["-c", code], home) as process:
        mark = first_line(process).strip()
        assert process.wait(120) == -signal.SIGKILL
    assert gone(mark)


def test_the_next_start_clears_what_a_killed_one_left_and_nothing_else(home: Path) -> None:
    with started(["-m", "tests.live.jobs", "keep", '["nothing"]'], home) as process:
        held = json.loads(first_line(process))
        environment = {**os.environ, MARK: held["mark"]}
        orphan = subprocess.Popen(["sleep", "600"], env=environment)
        bystander = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: "0" * 32})
        with hold("other"):
            assert orphan.poll() is None  # its owner lives
        process.kill()
        process.wait(120)
        assert Path(held["folder"]).exists()
        with hold("next"):
            assert orphan.wait(10) == -signal.SIGKILL
            assert not Path(held["folder"]).exists()
            assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_sigterm_gives_everything_back(home: Path) -> None:
    with started(["-m", "tests.live.jobs", "keep", '["nothing"]'], home) as process:
        first_line(process)
        process.terminate()
        assert process.wait(120) == 128 + signal.SIGTERM
    assert left_in(home) == ["lock"]


def test_a_folder_that_is_not_ours_is_refused(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / f"penstock-{os.getuid()}").symlink_to(home / "elsewhere")
    with pytest.raises(ExternalError, match="belongs to somebody else"):
        runtime_folder()


def test_a_lock_that_is_a_link_is_refused_and_linked_folders_are_left_alone(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (runtime_folder() / "cluster-0123").symlink_to(outside)
    with hold("test"):
        assert list(outside.iterdir()) == []
    (runtime_folder() / "lock").unlink()
    (runtime_folder() / "lock").symlink_to(outside / "made")
    with pytest.raises(ExternalError, match="lock cannot be locked: its lock is a link"), hold("test"):
        pass
    assert list(outside.iterdir()) == []
