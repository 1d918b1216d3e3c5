"""The controller's figures for Prometheus, on loopback. Names follow what users of other autoscalers know."""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from typing import Any

from penstock.core.errors import BadInput
from penstock.core.loop import Step

PREFIX = "penstock"
CATCH_UP_S = 1800.0  # what waits is to be gone within half an hour, as with Flink's autoscaler


class Metrics:
    """What the last step showed, and what was counted since the start."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._step: Step | None = None
        self._scalings: Counter[tuple[str, str]] = Counter()
        self._balanced = self._errors = 0
        self._asked_s: float | None = None
        self._start_s: float | None = None

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
        lines = []
        for name, kind, value in self._values():
            lines += [f"# TYPE {PREFIX}_{name} {kind}", f'{PREFIX}_{name}{{job="{_escaped(self._job)}"}} {value:.10g}']
        lines.append(f"# TYPE {PREFIX}_scalings_total counter")
        for direction, reason in product(("up", "down"), ("decided", "limited")):
            labels = f'job="{_escaped(self._job)}",direction="{direction}",reason="{reason}"'
            lines.append(f"{PREFIX}_scalings_total{{{labels}}} {self._scalings[direction, reason]}")
        return "\n".join(lines) + "\n"

    def _values(self) -> list[tuple[str, str, float]]:
        counted = [("balanced_total", "counter", self._balanced), ("errors_total", "counter", self._errors)]
        if self._step is None:
            return [(name, kind, float(value)) for name, kind, value in counted]
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
        return [(name, "gauge", value) for name, value in shown.items()] + [(n, k, float(v)) for n, k, v in counted]


def serve_metrics(metrics: Metrics, port: int) -> ThreadingHTTPServer:
    """Answer `GET /metrics` on loopback from a thread of its own, until `shutdown`."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = metrics.text().encode() if self.path == "/metrics" else b"see /metrics\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """A line for each scrape would bury the decisions."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    except (OSError, OverflowError) as error:
        raise BadInput(f"metrics port {port} cannot be used: {getattr(error, 'strerror', None) or error}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="penstock-metrics", daemon=True).start()
    return server


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
