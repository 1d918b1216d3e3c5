"""A policy that never rests: one worker more every other tick, then one fewer. For chaos only."""

from penstock import Decision, Job, Knob, Observation


class UpDown:
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, job: Job, every_s: float = 6.0) -> None:
        self.most, self.every_s = job.limits.workers_max, every_s

    def decide(self, seen: Observation) -> Decision:
        place = int(seen.time_s / self.every_s) % (2 * self.most - 2)
        workers = 1 + min(place, 2 * self.most - 2 - place)
        return Decision(seen.target.resized(workers), f"it is time for {workers}")
