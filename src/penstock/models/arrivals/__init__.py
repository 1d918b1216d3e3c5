"""Arrivals as Markovian processes, fitted to what was seen (paper 4 §IV)."""

from penstock.models.arrivals.fitted import FittedMap
from penstock.models.arrivals.map_fitting import DEFAULT, METHODS, fit_maps
from penstock.models.arrivals.window import Window, gaps_of, tails
from penstock.models.markov.kpc import compose
from penstock.models.markov.map import Map, poisson, renewal

__all__ = [
    "DEFAULT", "METHODS", "FittedMap", "Map", "Window", "compose", "fit_maps", "gaps_of", "poisson", "renewal", "tails",
]  # fmt: skip
