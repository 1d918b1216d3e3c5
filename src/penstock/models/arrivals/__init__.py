"""Arrivals as Markovian processes, fitted to what was seen (paper 4 §IV)."""

from penstock.models.markov.map import Map

__all__ = ["Map"]
