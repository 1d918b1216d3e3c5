"""A policy that never rests: two hosts, and every few ticks the next query moves to the other. For chaos only."""

from dataclasses import replace

from penstock import Decision, Job, Knob, Observation


class Shuttle:
    needs = frozenset({Knob.WORKERS, Knob.PLACEMENT})
    memory_s = 0.0

    def __init__(self, job: Job, every: int = 2) -> None:
        self.names = [operator.name for operator in job.dataflow.operators]
        self.every, self.ticks, self.moved = every, 0, 0

    def decide(self, seen: Observation) -> Decision:
        target, runs = seen.target, seen.running.instances
        self.ticks += 1
        if len(target.workers) < 2:
            return Decision(target.grown(1), "two hosts")
        if seen.pending or dict(runs) != dict(target.instances) or self.ticks % self.every:
            return Decision(target, "waits")
        name = self.names[self.moved % len(self.names)]
        self.moved += 1
        there = next(worker.name for worker in target.workers if (worker.name,) != target.instances[name])
        return Decision(replace(target, instances={**target.instances, name: (there,)}), f"{name} to {there}")
