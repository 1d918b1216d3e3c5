"""What Spark makes of a query that is not started: its sources, its state, and whether Spark would take it."""

from __future__ import annotations

import re
from typing import Any

# Spark marks a streaming node by a tilde.
_STATEFUL = re.compile(
    r"^[\s:+!-]*~(Aggregate|Deduplicate|Distinct|FlatMapGroups|TransformWithState|Join)", re.MULTILINE
)


def look_at(frame: Any, mode: str) -> dict[str, Any]:
    """What Spark makes of the query, and whether it would start it; nothing of it is run."""
    found: dict[str, Any] = {"sources": [], "is_stateful": False, "error": ""}
    try:
        if not frame.isStreaming:
            return {**found, "error": "it is not streaming: read it with spark.readStream"}
        plan, jvm = frame._jdf.queryExecution().analyzed(), frame.sparkSession._jvm
        leaves = plan.collectLeaves()
        for leaf in (leaves.apply(place) for place in range(leaves.size())):
            if leaf.getClass().getSimpleName().startswith("StreamingRelation"):
                found["sources"].append([leaf.sourceName(), _options(leaf)])
        found["is_stateful"] = _STATEFUL.search(plan.toString()) is not None
        wanted = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
        jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, wanted)
    except Exception as error:
        found["error"] = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    return found


def _options(leaf: Any) -> list[str]:
    """Names of a source's options; their values may be secrets."""
    try:
        return [str(name) for name in leaf.extraOptions().keySet()]
    except Exception:
        return []
