"""Kernels: loaded late, and compiled also where nothing can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_importing_the_models_does_not_load_numba() -> None:
    code = "import sys, penstock, penstock.models.arrivals, penstock.models.queues; print('numba' in sys.modules)"
    assert run(code).stdout.strip() == "False"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_a_kernel_is_compiled_where_neither_the_installation_nor_the_cache_can_be_written(tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "penstock", tmp_path / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "penstock" / "models" / "markov"
    # A file in the folder's place: not even root can make a cache in it.
    (kernels / "__pycache__").write_text("")
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("")
    code = (
        "from penstock.models.markov import absorbing; import numpy as np;"
        "print(absorbing.__file__, absorbing.solve_m(np.zeros((1, 1)), np.ones(1) * 2, np.ones((1, 1)))[0, 0])"
    )
    places = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "NUMBA_CACHE_DIR": ""}
    done = run(code, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", **places)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(kernels / "absorbing.py"), "0.5"]
