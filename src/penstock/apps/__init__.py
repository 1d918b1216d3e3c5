"""Streaming jobs to measure: the benchmark applications of the papers as Structured Streaming."""
