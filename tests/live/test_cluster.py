"""A real Spark cluster: it works, it is limited, it grows and shrinks, and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.core.errors import BadInput
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.daemon import workers_alive
from penstock.live.resources import marked
from tests.live.processes import first_line, left_in, lines_of, run_job, run_lines, started, wait_for_none

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.start(ClusterSpec(workers=2, cores=1.0)) as running:
        yield running


def alive(cluster: Cluster) -> int:
    return len(workers_alive(int(cluster.page.rpartition(":")[2])))


def executors(cluster: Cluster) -> list[int]:
    """Processes of executors."""
    mark = cluster._holding.mark
    return [pid for pid in marked(mark) if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def cores_used(cluster: Cluster, seconds: float) -> float:
    before, began = cluster.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    after = cluster.cpu_seconds()
    return sum(after[name] - before[name] for name in after) / (time.monotonic() - began)


def test_all_workers_are_registered_and_run_a_job_by_the_url(cluster: Cluster) -> None:
    assert alive(cluster) == 2
    assert run_job("count", cluster.settings) == {"rows": 100_000, "doubled": 9900}


def test_a_real_plant_keeps_the_contract_and_its_row_limit_follows_the_rule(cluster: Cluster, tmp_path: Path) -> None:
    checked, limited, restored, unlimited = run_lines("plant", cluster.settings, str(tmp_path))
    assert checked == {"knobs": ["batch sizes", "the workers"]}
    assert limited == {"limited": 300, "rule": True, "workers": 1}
    assert restored == {"restored": 2000}
    # A folder obeys limits by files alone, also where its user gave none: a limit by rows ended the query.
    assert unlimited == {"unlimited": [500, 300, 300, 100, 700]}


def test_it_listens_on_loopback_alone(cluster: Cluster) -> None:
    files = (path for pid in marked(cluster._holding.mark) for path in Path(f"/proc/{pid}/fd").iterdir())
    own = {str(path.readlink()) for path in files if path.is_socket()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    listening = [row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert listening
    assert set(listening) <= loopback


def test_it_grows_and_shrinks_and_never_uses_a_name_twice(cluster: Cluster) -> None:
    cluster.resize(3)
    assert (alive(cluster), cluster.workers) == (3, ("worker-1", "worker-2", "worker-3"))
    cluster.resize(1)
    deadline = time.monotonic() + 120
    while alive(cluster) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (alive(cluster), cluster.workers) == (1, ("worker-1",))
    cluster.resize(2)
    assert cluster.workers == ("worker-1", "worker-4")
    with pytest.raises(BadInput, match="at least 1"):
        cluster.resize(0)


def test_an_executor_is_limited_and_the_limit_can_be_changed_while_it_works(cluster: Cluster) -> None:
    if not cluster.is_limited:
        pytest.skip("NO RIGHT TO MAKE CGROUPS: limits are not tested")
    cluster.resize(1)
    cluster.set_cores(1.0)
    words = ["-m", "tests.live.jobs", "burn", json.dumps([cluster.settings])]
    with started(words) as process:
        assert json.loads(first_line(process)) == {"rows": 1000}
        (executor,) = executors(cluster)
        assert f"penstock-{cluster._holding.mark}-worker-1" in Path(f"/proc/{executor}/cgroup").read_text()
        cluster.set_cores(0.25)
        quarter = cores_used(cluster, 5)
        cluster.set_cores(0.75)
        three_quarters = cores_used(cluster, 5)
        os.killpg(process.pid, signal.SIGKILL)
    assert quarter < 0.35
    assert three_quarters < 0.9
    # 3, where nobody else wants the processor.
    assert three_quarters / quarter > 1.5


def test_nothing_is_left_of_a_cluster_that_ended(tmp_path: Path) -> None:
    words = ["-m", "penstock", "cluster", "--workers", "1", "--cores", "0.5"]
    with started(words, tmp_path) as process:
        assert "1 workers, each:" in first_line(process)
        assert left_in(tmp_path) != ["lock"]
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, lines_of(err)) == (0, [])
    assert out.endswith("stopped: nothing is left running\n")
    assert wait_for_none(tmp_path, 0) == []
    assert left_in(tmp_path) == ["lock"]


def test_after_kill_9_the_next_start_clears_what_was_left(tmp_path: Path) -> None:
    with started(["-m", "tests.live.jobs", "keep", '["cluster"]'], tmp_path) as process:
        cgroups = [Path(folder) for folder in json.loads(first_line(process))["cgroups"]]
        (left,) = [name for name in left_in(tmp_path) if name != "lock"]
        process.kill()
    assert wait_for_none(tmp_path) == []  # the kernel ends its children
    assert not cgroups or any(folder.is_dir() for folder in cgroups)
    with started(["-m", "tests.live.jobs", "keep", '["nothing"]'], tmp_path) as process:
        first_line(process)
        assert left not in left_in(tmp_path)
        assert not any(folder.exists() for folder in cgroups)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--workers", "0"],
            "penstock: argument --workers: 0 is no whole number from 1 to 1000 (try penstock cluster --help)\n",
        ),
        (
            ["--cores", "-1"],
            "penstock: argument --cores: -1 is no number from 0.01 to 1024 (try penstock cluster --help)\n",
        ),
        (["--memory", "lots"], "penstock: --memory 'lots' is not a size: write 1g or 1536m\n"),
        (["--memory", "64m"], "penstock: workers of 64 MB: Spark needs at least 512\n"),
        (["--port", "80"], "penstock: port 80: write a number from 1024 to 65535\n"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    with started(["-m", "penstock", "cluster", *words]) as process:
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (2, said)


def test_a_port_in_use_is_one_line(cluster: Cluster) -> None:
    port = cluster.url.rpartition(":")[2]
    with started(["-m", "penstock", "cluster", "--port", port]) as process:
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (2, f"penstock: port {port} cannot be used: Address already in use\n")
