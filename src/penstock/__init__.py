"""Capacity planning and autoscaling for Spark Structured Streaming."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.core.version import VERSION

if TYPE_CHECKING:
    from penstock.core.allocation import Allocation, Knob, Worker
    from penstock.core.job import Job
    from penstock.core.loop import Decision, Plant, Policy, Step
    from penstock.core.observation import Observation
    from penstock.live.attach import attach

__version__ = VERSION
__all__ = ["Allocation", "Decision", "Job", "Knob", "Observation", "Plant", "Policy", "Step", "Worker", "attach"]

_HOMES = {
    "core.allocation": ("Allocation", "Knob", "Worker"),
    "core.job": ("Job",),
    "core.loop": ("Decision", "Plant", "Policy", "Step"),
    "core.observation": ("Observation",),
    "live.attach": ("attach",),
}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are asked for: PySpark takes half a second that a replay does not need."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"penstock.{home}"), name)
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")
