"""What paper 4 prints: response in seconds and CPU in percent, by trace, model and bound."""

from __future__ import annotations

from collections.abc import Mapping

Cell = tuple[float, float]
"""Response in seconds, CPU in percent."""

TABLE_1: Mapping[tuple[str, float], Mapping[str, Cell]] = {
    ("SYNT", 0.1): {"m": (0.254, 46.4), "gi": (0.177, 46.4), "map": (0.056, 53.2)},
    ("SYNT", 0.2): {"m": (0.393, 46.4), "gi": (0.208, 46.4), "map": (0.127, 50.2)},
    ("SYNT", 0.3): {"m": (0.609, 46.5), "gi": (0.263, 48.3), "map": (0.142, 48.1)},
    ("BC", 0.3): {"m": (0.906, 46.9), "gi": (0.820, 47.0), "map": (0.035, 55.8)},
    ("BC", 0.5): {"m": (2.101, 46.8), "gi": (1.194, 46.9), "map": (0.158, 53.1)},
    ("BC", 0.75): {"m": (2.800, 46.9), "gi": (2.210, 46.8), "map": (0.368, 50.3)},
    ("LM", 1.5): {"m": (7.499, 45.4), "gi": (6.077, 45.5), "map": (0.751, 61.2)},
    ("LM", 3.0): {"m": (7.931, 45.0), "gi": (6.344, 45.4), "map": (1.580, 56.9)},
    ("LM", 5.0): {"m": (9.382, 45.4), "gi": (6.311, 45.4), "map": (2.698, 53.8)},
}
TABLE_2: Mapping[tuple[str, float], Mapping[str, Cell]] = {
    ("SYNT", 0.5): {"m": (1.478, 46.6), "map": (0.371, 60.0)},
    ("SYNT", 0.75): {"m": (1.184, 46.6), "map": (0.590, 49.7)},
    ("BC", 0.5): {"m": (3.871, 47.1), "map": (0.195, 58.6)},
    ("BC", 1.0): {"m": (3.711, 47.1), "map": (0.274, 54.5)},
    ("LM", 7.0): {"m": (30.057, 45.5), "map": (4.830, 60.2)},
    ("LM", 10.0): {"m": (29.642, 45.7), "map": (9.546, 55.9)},
}
TABLE_3: Mapping[tuple[str, int], Cell] = {
    ("SYNT", 25_000): (0.126, 49.9),
    ("SYNT", 50_000): (0.141, 48.7),
    ("SYNT", 100_000): (0.468, 47.6),
    ("BC", 25_000): (0.175, 53.0),
    ("BC", 50_000): (0.217, 51.2),
    ("BC", 100_000): (0.516, 49.8),
    ("LM", 25_000): (2.126, 54.2),
    ("LM", 50_000): (2.415, 52.3),
    ("LM", 100_000): (2.267, 53.0),
}
THRESHOLDS: Mapping[str, Cell] = {"SYNT": (0.122, 49.0), "BC": (0.310, 49.0), "LM": (2.4, 48.0)}


def cell(stream: str, percentile: float, bound_s: float, model: str) -> Cell:
    """A cell of Table I or II."""
    return (TABLE_2 if percentile else TABLE_1)[stream, bound_s][model]
