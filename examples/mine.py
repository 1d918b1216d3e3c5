"""A policy in twelve lines: size for the rate that is seen, and some spare."""

from penstock import Decision, Job, Knob, Observation


class Mine:
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, job: Job, spare: float = 0.3) -> None:
        self.job, self.spare = job, spare

    def decide(self, seen: Observation) -> Decision:
        wanted = self.job.workers_for(seen.input_rate * (1 + self.spare))
        return Decision(seen.target.resized(wanted), f"{seen.input_rate:.0f}/s needs {wanted}")
