"""Capacity planning and autoscaling for Spark Structured Streaming."""

__version__ = "0.1.0"
