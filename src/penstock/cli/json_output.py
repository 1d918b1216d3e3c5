"""What --output json prints: JSON that every reader takes."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(content: Any, indent: int | None = 1) -> str:
    """The content as JSON.

    >>> as_json({"skewness": float("nan")}, None)
    '{"skewness": null}'
    """
    # ASCII: a terminal takes U+009B for an escape code, and one without UTF-8 would be sent "\\xe9", which is no JSON.
    return json.dumps(finite(content), indent=indent, allow_nan=False)


def finite(value: Any) -> Any:
    """NaN and infinity are not JSON: they become null."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
