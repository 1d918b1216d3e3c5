"""How much workers can do where nobody measured it: learnt from the batches that run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.core.loop import Step

FORGET = 0.2
# Batches of one size on the same workers differ by this much, and by this many seconds whatever their size.
NOISE, NOISE_S = 0.15, 0.05
# From batch to batch both numbers may change by this share: with the noise above, a fifth of what is new counts.
DRIFT = 0.03
# Of a first batch nobody knows what was work on rows.
UNSURE = 0.5
# Batches of one size alone leave 0.35 of the work in doubt.
SURE = 0.25
# An error beyond this many standard deviations (a collection, a neighbour) counts as this many.
ERRORS = 3.0
# Rows take at least this share of a batch's work.
ROWS_LEAST = 0.02


class Learned:
    """A capacity model that follows the job: as many rows a second of work for each worker as its batches show.

    The worker-seconds of a batch are `launching its tasks + rows · seconds a row`: live, 120 rows took 6 s, 2,800 rows
    20 s. Both numbers are followed by a Kalman filter, which does not forget one of them while batches tell only of
    the other: where sizes are alike, the seconds a row stay as they were.

    >>> model = Learned()
    >>> model.note(rows=8000.0, work_s=4.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> model.capacity(4), model.sustainable(4, trigger_s=10.0)
    (4000.0, 3600.0)

    A batch that waits for a new worker's first task tells nothing of its workers:

    >>> model.note(rows=8000.0, work_s=40.0, fixed_s=1.0, crew=("w1", "w2", "w3"))
    >>> model.capacity(4)
    4000.0
    """

    def __init__(self) -> None:
        self.per_worker = 0.0
        self._fixed_s = 0.0
        self._launch_s = self._row_s = 0.0
        self._launch_var = self._row_var = self._both_var = 0.0
        self._crew: frozenset[str] = frozenset()
        self._is_sure = False

    def note(self, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch that ended on these workers."""
        is_cold = self.per_worker > 0 and not self._crew.issuperset(crew)
        self._crew = frozenset(crew)
        if is_cold or not crew or work_s <= 0 or rows <= 0:
            return
        total_s = work_s * len(crew)
        if self.per_worker:
            self._fixed_s += FORGET * (fixed_s - self._fixed_s)
            self._correct(rows, total_s, (NOISE * total_s) ** 2 + (NOISE_S * len(crew)) ** 2)
        else:
            self._fixed_s, self._row_s = fixed_s, total_s / rows
            self._launch_var, self._row_var = (UNSURE * total_s) ** 2, (UNSURE * total_s / rows) ** 2
        # Have batches of different sizes told what of this one was work on rows?
        self._is_sure = self._row_var * rows * rows < (SURE * total_s) ** 2
        self.per_worker = 1 / self._row_s

    def _correct(self, rows: float, total_s: float, noise: float) -> None:
        """One step of a Kalman filter of two states, (launch, seconds a row), seen as launch + rows · seconds a row."""
        usual = total_s / 10  # a number near 0 must be able to grow again
        self._launch_var += (DRIFT * (self._launch_s + usual)) ** 2
        self._row_var += (DRIFT * (self._row_s + usual / rows)) ** 2
        launch = self._launch_var + rows * self._both_var
        row = self._both_var + rows * self._row_var
        spread = launch + rows * row + noise
        most = ERRORS * spread**0.5
        error = max(-most, min(most, total_s - self._launch_s - rows * self._row_s))
        self._launch_s = max(0.0, self._launch_s + launch / spread * error)
        self._row_s = max(ROWS_LEAST * total_s / rows, self._row_s + row / spread * error)
        self._launch_var -= launch * launch / spread
        self._both_var -= launch * row / spread
        self._row_var -= row * row / spread

    def remember(self, past: Iterable[Step]) -> None:
        """What an earlier controller saw."""
        processed = -1.0
        for seen in (step.seen for step in past):
            batch = seen.batch
            if batch is not None and seen.processed > processed:
                ended_s = seen.time_s - batch.age_s
                crew = [name for name, worker in seen.workers.items() if worker.paid_since_s < ended_s]
                self.note(batch.rows, batch.execution_s - batch.fixed_s, batch.fixed_s, crew)
            processed = seen.processed

    def needed(self, rate: float, batch_s: float) -> float | None:
        """Workers, in parts too, that keep up with a rate in batches of this length; None before that is known.

        They do rows · seconds a row, and once a batch its launches, while the fixed time leaves them nothing to do.
        """
        if not self._is_sure or self._fixed_s >= batch_s:
            return None
        return (rate * self._row_s + self._launch_s / batch_s) / (1 - self._fixed_s / batch_s)

    def capacity(self, workers: float) -> float:
        return self.per_worker * workers

    def fixed_s(self, workers: float) -> float:
        """Planning and commits, and the launch of its tasks, which workers share."""
        return self._fixed_s + self._launch_s / max(1.0, workers)

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        share = 1.0 if trigger_s is None else max(0.0, 1.0 - self.fixed_s(workers) / trigger_s)
        return self.capacity(workers) * share
