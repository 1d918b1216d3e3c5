"""Capacity planning and autoscaling for Spark Structured Streaming."""

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.job import Job
from penstock.core.loop import Decision, Plant, Policy, Step
from penstock.core.observation import Observation

__version__ = "0.1.0"
__all__ = ["Allocation", "Decision", "Job", "Knob", "Observation", "Plant", "Policy", "Step", "Worker"]
