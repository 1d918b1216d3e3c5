"""How much workers can do where nobody measured it: learnt from the batches that run."""

from __future__ import annotations

from penstock.live.progress import Report

FORGET = 0.2
# Below this much work beside its fixed time, a batch tells how long planning takes and little else.
WORK_LEAST_S = 0.5


class Learned:
    """A capacity model that follows the job: as many rows a second of work for each worker as its batches show.

    >>> model = Learned()
    >>> model.note(Report("q", 0, 0.0, 5.0, 1.0, 8000.0, None, 0.0, ()), workers=2)
    >>> model.capacity(4), model.sustainable(4, trigger_s=10.0)
    (4000.0, 3600.0)
    """

    def __init__(self) -> None:
        self.per_worker = 0.0
        self._fixed_s = 0.0

    def note(self, report: Report, workers: int) -> None:
        """Take in a batch that ended on so many workers."""
        work_s = report.execution_s - report.fixed_s
        if workers < 1 or work_s < WORK_LEAST_S or not report.rows:
            return
        rate = report.rows / work_s / workers
        share = FORGET if self.per_worker else 1.0
        self.per_worker += share * (rate - self.per_worker)
        self._fixed_s += share * (report.fixed_s - self._fixed_s)

    def capacity(self, workers: float) -> float:
        return self.per_worker * workers

    def fixed_s(self, workers: float) -> float:  # noqa: ARG002
        return self._fixed_s

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        share = 1.0 if trigger_s is None else max(0.0, 1.0 - self._fixed_s / trigger_s)
        return self.capacity(workers) * share
