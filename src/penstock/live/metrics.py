"""The controller's figures for Prometheus, on loopback. Names follow what users of other autoscalers know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from penstock.core.loop import Step

PREFIX = "penstock"
CATCH_UP_S = 1800.0  # what waits is to be gone within half an hour, as with Flink's autoscaler

HELP: Mapping[str, str] = {
    "executors": "Executors that run, those that are about to leave too.",
    "recommended_executors": "Executors that the policy wants, before the limits.",
    "target_data_rate": "Rows per second that arrive.",
    "true_processing_rate": "Rows per second that the running executors can do.",
    "expected_processing_rate": "Rows per second that the executors asked for can do.",
    "load": "Load of the executors, from 0 to 1, their mean.",
    "lag_records": "Rows that wait; absent where the source does not tell.",
    "lag_seconds": "Age of the oldest row that waits or is in work; absent where the source does not tell.",
    "catch_up_data_rate": "Rows per second beyond what arrives that empty the backlog within half an hour.",
    "scale_up_rate_threshold": "Rows per second at which the load reaches the upper threshold.",
    "scale_down_rate_threshold": "Rows per second at which the load reaches the lower threshold.",
    "restart_duration_seconds": "How long the executors of the last scale-out took to come.",
    "balanced_total": "Decisions that changed nothing.",
    "errors_total": "Failures of the plant, the journal or the policy that were survived.",
    "skipped_ticks_total": "Ticks left out because the one before took too long.",
    "scalings_total": "Changes of the number of executors: as decided, or cut by the limits.",
}


class Metrics:
    """What the last step showed, and what was counted since the start."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._step: Step | None = None
        self._scalings: Counter[tuple[str, str]] = Counter()
        self._balanced = self._errors = 0
        self._asked_s: float | None = None
        self._start_s: float | None = None
        self.skipped = 0
        """Ticks that were left out."""

    def note(self, step: Step, is_dry: bool = False) -> None:
        """Take in one step of the loop; in a dry run nothing is scaled."""
        asked, wanted = len(step.seen.target.workers), len(step.target.workers)
        if wanted == asked or is_dry:
            self._balanced += 1
        else:
            is_cut = wanted != len(step.decision.target.workers)
            self._scalings["up" if wanted > asked else "down", "limited" if is_cut else "decided"] += 1
            self._asked_s = step.seen.time_s if wanted > asked else None
        if self._asked_s is not None and len(step.seen.running.workers) >= wanted:
            self._start_s, self._asked_s = step.seen.time_s - self._asked_s, None
        self._step = step

    def note_error(self) -> None:
        self._errors += 1

    def text(self) -> str:
        """In Prometheus' format of lines."""
        job = f'job="{_escaped(self._job)}"'
        lines = [line for name, value in self._gauges().items() for line in _metric(name, "gauge", {job: value})]
        counts = {"balanced": self._balanced, "errors": self._errors, "skipped_ticks": self.skipped}
        for name, count in counts.items():
            lines += _metric(f"{name}_total", "counter", {job: count})
        kinds = [(direction, reason) for direction in ("up", "down") for reason in ("decided", "limited")]
        scalings = {f'{job},direction="{up}",reason="{why}"': self._scalings[up, why] for up, why in kinds}
        return "\n".join([*lines, *_metric("scalings_total", "counter", scalings)]) + "\n"

    def _gauges(self) -> dict[str, float]:
        if self._step is None:
            return {}
        seen, signals = self._step.seen, self._step.decision.signals
        running = len(seen.running.workers)
        shown: dict[str, float] = {
            "executors": running,
            "recommended_executors": len(self._step.decision.target.workers),
            "target_data_rate": seen.input_rate,
            "true_processing_rate": seen.capacity,
            "expected_processing_rate": seen.capacity * len(self._step.target.workers) / max(1, running),
            "load": seen.workers.mean("cpu"),
        }
        if seen.backlog is not None and seen.latency_s is not None:  # no figure is better than a 0 nobody can trust
            shown |= {"lag_records": seen.backlog, "lag_seconds": seen.latency_s}
            shown["catch_up_data_rate"] = seen.backlog / CATCH_UP_S
        if (load := signals.get("load", 0.0)) > 0:  # the rate at which the load would reach a threshold
            for signal, name in (("upper", "scale_up_rate_threshold"), ("lower", "scale_down_rate_threshold")):
                if signal in signals:
                    shown[name] = seen.input_rate * signals[signal] / load
        if self._start_s is not None:
            shown["restart_duration_seconds"] = self._start_s
        return shown


def _metric(name: str, kind: str, values: Mapping[str, float]) -> Iterator[str]:
    """HELP, TYPE and one line for each set of labels."""
    yield f"# HELP {PREFIX}_{name} {HELP[name]}"
    yield f"# TYPE {PREFIX}_{name} {kind}"
    for labels, value in values.items():
        yield f"{PREFIX}_{name}{{{labels}}} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
