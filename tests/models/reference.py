"""Arrival processes and queues whose answers are known to 12 digits and more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.models.markov.map import Map

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parent / "map_reference.json").read_text())
MAPS = {name: Map(arrival["D0"], arrival["D1"]) for name, arrival in REFERENCE["arrivals"].items()}
