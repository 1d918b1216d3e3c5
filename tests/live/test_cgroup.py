"""Limits on CPU: version 2 on a plain folder that looks like it, the real kernel where we may."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import BadInput
from penstock.live.cgroup import GroupV1, GroupV2, find_groups, works
from penstock.live.cluster import usable_groups
from penstock.live.resources import hold


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    """`user.slice/session.scope` under a root that hands out cpu; the slice does, the scope (where we are) cannot."""
    root = tmp_path / "cgroup"
    (root / "user.slice" / "session.scope").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (root / "cgroup.subtree_control").write_text("cpu memory\n")
    (root / "user.slice" / "cgroup.subtree_control").write_text("cpu memory pids\n")
    return root


def own(folder: Path, text: str) -> Path:
    path = folder / "own"
    path.write_text(text)
    return path


def test_version_2_offers_the_nearest_cgroup_that_hands_out_cpu(version_2: Path, tmp_path: Path) -> None:
    places = find_groups(version_2, own(tmp_path, "0::/user.slice/session.scope\n"))
    assert [place("a") for place in places] == [GroupV2(version_2 / "user.slice" / "a"), GroupV2(version_2 / "a")]


def test_version_2_switches_cpu_on_where_it_may(version_2: Path, tmp_path: Path) -> None:
    control = version_2 / "user.slice" / "cgroup.subtree_control"
    control.write_text("memory\n")
    find_groups(version_2, own(tmp_path, "0::/user.slice\n"))
    assert control.read_text() == "+cpu"


def test_in_a_container_the_host_s_path_is_not_there_and_the_root_is_taken(version_2: Path, tmp_path: Path) -> None:
    places = find_groups(version_2, own(tmp_path, "0::/docker/4711\n"))
    assert [place("a") for place in places] == [GroupV2(version_2 / "a")]


def test_version_2_writes_quota_and_period_and_reads_seconds(tmp_path: Path) -> None:
    group = GroupV2(tmp_path)
    group.limit(0.25)
    assert (tmp_path / "cpu.max").read_text() == "25000 100000"
    group.limit(0.4, period_s=0.005)
    assert (tmp_path / "cpu.max").read_text() == "2000 5000"
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n")
    assert group.cpu_seconds() == 1.5


def test_version_1_keeps_limit_and_account_apart_where_the_kernel_does(tmp_path: Path) -> None:
    for name in ("cpu", "cpuacct"):
        (tmp_path / name / "here").mkdir(parents=True)
        (tmp_path / name / "cgroup.procs").touch()
    (place,) = find_groups(tmp_path, own(tmp_path, "2:cpuacct:/here\n1:cpu:/here\n0::/\n"))
    group = place("a")
    assert group == GroupV1(tmp_path / "cpu" / "here" / "a", tmp_path / "cpuacct" / "here" / "a")
    assert len(group.folders) == 2


def test_version_1_mounted_as_one_is_one_folder(tmp_path: Path) -> None:
    (tmp_path / "cpu,cpuacct").mkdir()
    (tmp_path / "cpu,cpuacct" / "cgroup.procs").touch()
    for name in ("cpu", "cpuacct"):
        (tmp_path / name).symlink_to("cpu,cpuacct")
    (place,) = find_groups(tmp_path, own(tmp_path, "4:cpu,cpuacct:/\n"))
    assert place("a").folders == (tmp_path / "cpu" / "a",)


def test_a_machine_without_cgroups_offers_none(tmp_path: Path) -> None:
    assert find_groups(tmp_path, own(tmp_path, "")) == []


@pytest.mark.parametrize(("cores", "period_s"), [(0, 0.1), (-1, 0.1), (float("nan"), 0.1), (0.1, 0.005), (1, 2)])
def test_a_limit_that_the_kernel_would_refuse_is_bad_input(tmp_path: Path, cores: float, period_s: float) -> None:
    with pytest.raises(BadInput):
        GroupV2(tmp_path).limit(cores, period_s)


def test_a_place_without_the_right_to_make_groups_does_not_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not works(GroupV2(tmp_path / "file" / "group"))


def test_without_cgroups_that_is_said_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with hold("test") as holding:
        assert usable_groups(holding, [lambda name: GroupV2(tmp_path / "file" / name)]) is None
    said = capsys.readouterr().err
    assert said == "penstock: no right to make cgroups here: each worker may use whole cores\n"
