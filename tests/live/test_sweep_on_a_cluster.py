"""A sweep on a real cluster: the executors get this package and the user's policy, and nothing stays behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.live.cluster import Cluster, ClusterSpec
from tests.live.processes import lines_of

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_a_sweep_runs_on_a_cluster_by_its_url(tmp_path: Path) -> None:
    with Cluster.start(ClusterSpec(workers=1, cores=0.9)) as cluster:
        words = [str(ROOT / "examples" / "flash_crowd.toml"), "--policy", f"{ROOT / 'examples' / 'mine.py'}:Mine"]
        command = [sys.executable, "-m", "penstock", "sweep", *words, "--seeds", "2", "--master", cluster.url]
        done = subprocess.run(
            [*command, "-o", "results.parquet"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
    assert (done.returncode, lines_of(done.stderr)) == (0, [])
    assert done.stdout.startswith("2 cells")
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]
