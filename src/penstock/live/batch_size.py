"""The batch size follows the workers, between two ticks: a policy gives the rule, the plant works it out."""

from __future__ import annotations

from collections.abc import Collection

from py4j.protocol import Py4JError

from penstock.core.allocation import BatchRule
from penstock.live.watched_query import WatchedQuery

# A limit is worked out no more often: to set one takes 1 to 8 ms, and the next batch alone obeys it.
EVERY_S = 1.0


class BatchSizes:
    """The row limits of a job's queries, by one rule. Queries share the workers, and so the rows, as they come."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self.wrong = ""
        """Why limits could not be set last; empty when they could."""

    def follow(self, queries: Collection[WatchedQuery], rule: BatchRule | None, workers: int, now_s: float) -> None:
        """Set what the rule allows now; without one, what the user gave."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        running = [each for each in queries if not each.has_ended]
        total = sum(each.queue.input_rate for each in running)
        try:
            for each in running:
                if rule is None or not workers:
                    each.row_limit.restore()
                    continue
                part = each.queue.input_rate / total if total > 0 else 1 / len(running)
                each.limit_rows(max(1.0, part * rule.rows(workers, each.queue.latency_s(now_s) or 0.0)))
        except (AttributeError, Py4JError, TypeError) as error:
            self.wrong = f"the row limit cannot be set: {(str(error).splitlines() or [type(error).__name__])[0][:200]}"
        else:
            self.wrong = ""

    def restore(self, queries: Collection[WatchedQuery]) -> None:
        """Every limit as the user gave it: a job that nobody controls any more must not be held by an old one."""
        self._next_s = 0.0
        self.follow(queries, None, 0, 0.0)
