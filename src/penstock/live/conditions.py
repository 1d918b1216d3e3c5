"""What a measurement was made on, kept with its samples: two measurements are compared, or refused, by it."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

from penstock.apps.app import App
from penstock.live.sampler import Sampling
from penstock.live.settling import WINDOW

KEPT = (
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.sql.adaptive.enabled",
    "spark.sql.streaming.stateStore.providerClass",
)


def describe(app: App, settings: Mapping[str, str], sampling: Sampling, own_cluster: bool) -> str:
    """The app, Spark and the machine as one line of JSON; no names of people, hosts or folders."""
    setup: dict[str, Any] = {
        "app": {"output_mode": app.output_mode, "code": _code(app)},
        "spark": {"version": pyspark.__version__, **{key: settings[key] for key in KEPT if key in settings}},
        "sampling": {"batches": sampling.batches, "long_s": sampling.long_s, "settling": _settling(sampling)},
        "machine": _machine() if own_cluster else "the cluster's",
    }
    return json.dumps(setup, sort_keys=True)


def _settling(sampling: Sampling) -> str:
    return f"drift below 4 % a batch, {WINDOW} batches" if sampling.settles else "not tested"


def _code(app: App) -> str:
    """A mark of the app's code: samples of an app that was changed since are not of the same app."""
    try:
        text = inspect.getsource(app.transform)
    except (OSError, TypeError):
        text = app.name
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _machine() -> dict[str, Any]:
    model = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "")
    return {
        "cpu": model.partition(":")[2].strip() or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gb": round(int("".join(filter(str.isdigit, memory)) or 0) / 1e6),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
