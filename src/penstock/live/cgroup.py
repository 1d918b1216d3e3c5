"""A limit on CPU for processes: cgroups of version 1 and 2, behind one shape."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.core.errors import BadInput
from penstock.live import launcher as child

ROOT = Path("/sys/fs/cgroup")
# With the kernel's default of 100 ms a short queue is served at full speed before the quota runs out; with 5 ms a quota
# is nearer to a slower machine (`models/queues/quota.py`).
PERIOD_S = 0.1
QUOTA_MIN_S = 0.001  # the kernel's own floor


@dataclass(frozen=True, slots=True)
class GroupV1:
    """A cgroup of version 1: the limit and the account may be two hierarchies, or one under two names."""

    cpu: Path
    account: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.cpu,) if self.cpu.resolve() == self.account.resolve() else (self.cpu, self.account)

    def limit(self, cores: float, period_s: float = PERIOD_S) -> None:
        """At most `cores` seconds of CPU a second, from now on."""
        quota_us, period_us = _microseconds(cores, period_s)
        # Unlimited in between: an old quota in a new period could exceed the parent's and be refused.
        (self.cpu / "cpu.cfs_quota_us").write_text("-1")
        (self.cpu / "cpu.cfs_period_us").write_text(str(period_us))
        (self.cpu / "cpu.cfs_quota_us").write_text(str(quota_us))

    def cpu_seconds(self) -> float:
        """CPU used since the group was made, by what has ended too."""
        return int((self.account / "cpuacct.usage").read_text()) / 1e9


@dataclass(frozen=True, slots=True)
class GroupV2:
    """A cgroup of version 2."""

    folder: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.folder,)

    def limit(self, cores: float, period_s: float = PERIOD_S) -> None:
        """At most `cores` seconds of CPU a second, from now on."""
        quota_us, period_us = _microseconds(cores, period_s)
        (self.folder / "cpu.max").write_text(f"{quota_us} {period_us}")

    def cpu_seconds(self) -> float:
        """CPU used since the group was made, by what has ended too."""
        lines = (line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(dict(lines)["usage_usec"]) / 1e6


Group = GroupV1 | GroupV2
Groups = Callable[[str], Group]  # a group by its name, not made yet


def need_quota(cores: float, period_s: float) -> None:
    """Refuse a limit that the kernel would refuse."""
    if not 0 < cores < float("inf"):
        raise BadInput(f"a worker of {cores:g} cores: write a number above 0, such as 0.25")
    if not QUOTA_MIN_S <= period_s <= 1:
        raise BadInput(f"a period of {period_s:g} s: the kernel takes 0.001 to 1")
    if cores * period_s < QUOTA_MIN_S:
        least = QUOTA_MIN_S / period_s
        raise BadInput(f"{cores:g} cores in periods of {period_s:g} s are too few: at least {least:g}")


def _microseconds(cores: float, period_s: float) -> tuple[int, int]:
    need_quota(cores, period_s)
    return round(cores * period_s * 1e6), round(period_s * 1e6)


def find_groups(root: Path = ROOT, own: Path = Path("/proc/self/cgroup")) -> list[Groups]:
    """Places where groups may perhaps be made, the nearest to this process first."""
    paths = dict(_own_paths(own.read_text(encoding="utf-8")))
    if (root / "cpu" / "cgroup.procs").exists():  # also where version 2 runs beside version 1
        cpu, account = (_parent(root / name, paths.get(name, "/")) for name in ("cpu", "cpuacct"))
        return [partial(_group_v1, cpu, account)]
    if (root / "cgroup.controllers").exists():
        nearest = _parent(root, paths.get("", "/"))
        ancestors = [place for place in (nearest, *nearest.parents) if place == root or root in place.parents]
        return [partial(_group_v2, place) for place in ancestors if _hands_out_cpu(place)]
    return []


def _group_v1(cpu: Path, account: Path, name: str) -> Group:
    return GroupV1(cpu / name, account / name)


def _group_v2(place: Path, name: str) -> Group:
    return GroupV2(place / name)


def _own_paths(text: str) -> list[tuple[str, str]]:
    """Controller → path of this process's cgroup, of lines such as `4:cpu,cpuacct:/user.slice`; version 2 is ``."""
    rows = (line.split(":", 2) for line in text.splitlines())
    return [(name, path) for _, names, path in rows for name in names.split(",")]


def _parent(root: Path, path: str) -> Path:
    # In a container the path is often the host's, and what is mounted is already our own cgroup.
    inside = root / path.strip("/")
    return inside if inside.is_dir() else root


def _hands_out_cpu(place: Path) -> bool:
    """Whether cgroups below get a CPU limit; switched on where that is allowed."""
    control = place / "cgroup.subtree_control"
    # Refused where processes sit in `place` itself (then an ancestor may do), or without the right.
    with suppress(OSError):
        if "cpu" in control.read_text().split():
            return True
        control.write_text("+cpu")
        return True
    return False


def works(group: Group) -> bool:
    """Whether a process can really be put into the group, and limited there; the group is made."""
    try:
        for folder in group.folders:
            folder.mkdir()
        group.limit(1.0)
    except OSError:
        return False
    words = [sys.executable, "-ISE", child.__file__, "0", *map(str, group.folders), "--"]
    # A wrong parent's number makes the script stop after it has joined.
    return not subprocess.run(words, stderr=subprocess.PIPE, check=False).stderr
