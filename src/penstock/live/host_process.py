"""A host as its controller sees it: a process with a limit on its CPU, and the line to it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.live.cgroup import PERIOD_S, Group, Groups
from penstock.live.cluster import START_CORES
from penstock.live.daemon import HOST
from penstock.live.fleet_spec import HostRules
from penstock.live.resources import Holding, end_marked, remove_cgroup
from penstock.pipeline.starting import last_words

# A host that says nothing for so long hangs: it is ended, and its queries go on elsewhere. It speaks every second; a
# collection of garbage on a tenth of a core held one for some seconds.
SILENT_S = 60.0
# From its start until it is ready it may be silent for longer: on half a core that took 20 s.
START_S = 300.0
END_S = 10.0
HOST_MARK = "PENSTOCK_HOST"


class FleetHost(Protocol):
    """What a fleet needs of a host."""

    name: str
    is_ready: bool
    asked_s: float
    """Unix time at which it was asked for."""
    ready_s: float | None

    def say(self, word: Mapping[str, Any]) -> None: ...
    def heard(self) -> list[dict[str, Any]]:
        """What it said since the last call."""

    def why_gone(self) -> str | None:
        """Why it is no more; None while it lives."""

    def cpu_s(self) -> float | None:
        """CPU used so far; None where nobody measures it."""

    def end(self) -> None:
        """Ask it to end. Returns at once."""

    def release(self) -> None:
        """It is gone: nothing of it stays."""


@dataclass(frozen=True, slots=True)
class HostMaker:
    """Starts hosts."""

    holding: Holding
    groups: Groups | None
    rules: HostRules
    settings: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, name: str) -> HostProcess:
        return HostProcess(name, self)

    def words(self) -> dict[str, str]:
        """Spark's settings on a host. On a part of a core, collector and compiler threads would stall all others."""
        scratch = self.holding.scratch
        java = f'-Djava.io.tmpdir="{scratch}" -XX:+UseSerialGC -XX:ActiveProcessorCount=2 -XX:-UsePerfData'
        ours = {
            "master": self.rules.master or f"local[{self.rules.threads}]",
            "spark.driver.memory": f"{self.rules.memory_mb}m",
            "spark.driver.extraJavaOptions": f"{java} -XX:TieredStopAtLevel=1",
            "spark.local.dir": str(scratch),
            "spark.ui.retainedJobs": "100",
            "spark.ui.retainedStages": "200",
            "spark.ui.retainedTasks": "1000",
            "spark.sql.ui.retainedExecutions": "1",
            "spark.sql.streaming.numRecentProgressUpdates": "20",
            "spark.sql.streaming.stopTimeout": "60s",
            "spark.sql.adaptive.enabled": "false",
        }
        return {**ours, **self.settings}


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """Another name of a socket: of more than 107 letters, as below a deep TMPDIR, the kernel takes none."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class HostProcess:
    """A host on this machine; its tasks run in it, or on the cluster whose client it is."""

    def __init__(self, name: str, maker: HostMaker) -> None:
        self.name, self._maker = name, maker
        self.is_ready = False
        self.asked_s = time.time()
        self.ready_s: float | None = None
        self._heard_s = time.monotonic()
        self._end_by_s: float | None = None
        self._ended = ""
        self._mark = mark = uuid.uuid4().hex
        self._log = maker.holding.scratch / f"{name}.log"
        self._path = maker.holding.scratch / f"{mark[:8]}.sock"
        self._server = socket.socket(socket.AF_UNIX)
        with short_name(self._path) as place:
            self._server.bind(place)
        self._server.listen(1)
        self._server.setblocking(False)
        self._peer: socket.socket | None = None
        self._rest = b""
        self._group = self._make_group(f"penstock-{maker.holding.mark}-{name}-{mark[:8]}")
        self._process = self._start()

    def _make_group(self, name: str) -> Group | None:
        if self._maker.groups is None:
            return None
        group = self._maker.groups(name)
        self._maker.holding.note_cgroups(group.folders)
        for folder in group.folders:
            folder.mkdir()
        group.limit(max(START_CORES, self._maker.rules.cores), PERIOD_S)
        return group

    def _start(self) -> subprocess.Popen[bytes]:
        words = json.dumps(self._maker.words())
        command = [sys.executable, "-m", "penstock.live.fleet_host", str(self._path), words]
        folders: Sequence[Path] = self._group.folders if self._group else ()
        settings = {"SPARK_LOCAL_IP": HOST, HOST_MARK: self._mark}
        return self._maker.holding.start(command, self._log, folders, settings)

    def say(self, word: Mapping[str, Any]) -> None:
        if self._peer is None:
            return
        try:
            self._peer.settimeout(5.0)
            self._peer.sendall((json.dumps(word) + "\n").encode())
        except OSError as error:
            self._ended = f"it does not listen ({error})"
        finally:
            self._peer.setblocking(False)

    def heard(self) -> list[dict[str, Any]]:
        words = [json.loads(line) for line in self._lines()]
        if words:
            self._heard_s = time.monotonic()
        for word in words:
            if word["says"] == "ready":
                self.is_ready, self.ready_s = True, time.time()
            # A first batch compiles for half a minute on half a core, which nobody measures: the limit holds after it.
            if word["says"] == "resumed" and self._group is not None:
                self._group.limit(self._maker.rules.cores, PERIOD_S)
        return words

    def _lines(self) -> list[bytes]:
        try:
            if self._peer is None:
                self._peer, _ = self._server.accept()
                self._peer.setblocking(False)
            while chunk := self._peer.recv(1 << 16):
                self._rest += chunk
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._ended = f"the line to it broke ({error})"
        *lines, self._rest = self._rest.split(b"\n")
        return lines

    def why_gone(self) -> str | None:
        now_s, silent_s = time.monotonic(), SILENT_S if self.is_ready else START_S
        if self._process.poll() is not None:
            return self._ended or f"it ended: {last_words(self._log) or f'exit code {self._process.returncode}'}"
        if self._end_by_s is not None:
            if now_s > self._end_by_s:
                self._kill()
            return None
        if now_s - self._heard_s > silent_s:
            self._ended = f"it said nothing for {silent_s:g} s"
        if self._ended:
            self._kill()
            return self._ended
        return None

    def _kill(self) -> None:
        """At once, and all that it started: a query must not run twice."""
        self._process.kill()
        self._process.wait()
        end_marked(self._mark, HOST_MARK)

    def cpu_s(self) -> float | None:
        return self._group.cpu_seconds() if self._group is not None else None

    def end(self) -> None:
        if self._end_by_s is None:
            self._end_by_s = time.monotonic() + END_S
            self.say({"do": "end"})

    def release(self) -> None:
        self._kill()
        for each in (self._peer, self._server):
            if each is not None:
                each.close()
        with contextlib.suppress(OSError):
            self._path.unlink()
        if self._group is not None:
            for folder in self._group.folders:
                remove_cgroup(folder)
