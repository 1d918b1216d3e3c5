"""The page of figures of `scripts/bench shares`: docs/live/shares/README.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def page(folder: Path, done: Mapping[str, Mapping[str, Any]], bound_s: float) -> str:
    return ""
