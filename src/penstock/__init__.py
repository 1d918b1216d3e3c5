"""Capacity planning and autoscaling for Spark Structured Streaming."""

from typing import TYPE_CHECKING, Any

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.job import Job
from penstock.core.loop import Decision, Plant, Policy, Step
from penstock.core.observation import Observation
from penstock.core.version import VERSION

if TYPE_CHECKING:
    from penstock.live.attach import attach

__version__ = VERSION
__all__ = ["Allocation", "Decision", "Job", "Knob", "Observation", "Plant", "Policy", "Step", "Worker", "attach"]


def __getattr__(name: str) -> Any:
    """`attach` is loaded when it is asked for: PySpark takes half a second that a replay does not need."""
    if name == "attach":
        from penstock.live.attach import attach

        return attach
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")
