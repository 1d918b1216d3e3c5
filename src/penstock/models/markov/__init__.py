"""Markovian processes: arrivals (MAP), durations (phase type), and how they are made from their moments."""
