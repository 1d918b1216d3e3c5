"""Policies by name: `threshold`, `static:workers=8`, `mine.py:Mine:spare=0.2`; guards are parameters of any."""

from __future__ import annotations

import importlib.util
import os.path
import reprlib
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.core.allocation import Knob
from penstock.core.bounds import SPAN_MOST_S
from penstock.core.errors import BadInput, PenstockError, unknown
from penstock.core.files import reads
from penstock.core.job import Job
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.policies.alternates import Following, knowing_alternates
from penstock.policies.batch_size import BatchSize
from penstock.policies.clairvoyant import Clairvoyant
from penstock.policies.deadline import Deadline
from penstock.policies.filtered import Filtered
from penstock.policies.fugu import Fugu
from penstock.policies.fugu_learning import Learning
from penstock.policies.fugu_tuned import TunedFugu
from penstock.policies.guards import OPTIONS, Guards, IsPaused, safe, safety
from penstock.policies.mead import Mead
from penstock.policies.mst import Mst
from penstock.policies.parameters import parameters_of, read_parameters
from penstock.policies.peers import PEERS
from penstock.policies.plasticc import Plasticc
from penstock.policies.safety import check_sense, describe, said
from penstock.policies.shares import ShareThreshold, StaticShare
from penstock.policies.static import Static, StaticAverage, StaticPeak
from penstock.policies.threshold import Threshold
from penstock.policies.tuned import Tuned, tunable

POLICIES: Mapping[str, type] = {
    "static": Static,
    "static-peak": StaticPeak,
    "static-average": StaticAverage,
    "threshold": Threshold,
    "tuned": Tuned,
    "filtered": Filtered,
    "deadline": Deadline,
    "batch-size": BatchSize,
    "mst": Mst,
    "plasticc": Plasticc,
    "fugu": Fugu,
    "fugu-tuned": TunedFugu,
    "fugu-rl": Learning,
    "mead": Mead,
    "share-threshold": ShareThreshold,
    "static-share": StaticShare,
    "clairvoyant": Clairvoyant,
    **PEERS,
}

Tuned.among = POLICIES

Around = Callable[[Policy], Policy]


@dataclass(frozen=True, slots=True)
class Named:
    """A policy that can be built for any job.

    >>> Named.parse("threshold:upper=0.7,cooldown_s=5m").parameters
    {'upper': 0.7, 'cooldown_s': 300.0}
    """

    name: str
    maker: type = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Named:
        first, _, rest = text.partition(":")
        if first.endswith(".py"):
            class_name, _, rest = rest.partition(":")
            maker = _class_in_file(Path(first), class_name)
        elif first in POLICIES:
            maker = POLICIES[first]
        else:
            raise unknown("policy", first, POLICIES)
        if maker is Tuned:
            rest = _around(text, rest)
        return cls(text, maker, read_parameters(text, rest, parameters_of(maker)))

    @property
    def guards(self) -> dict[str, Any]:
        """The guards among the parameters."""
        return {key: value for key, value in self.parameters.items() if key in OPTIONS}

    def rules(self, job: Job) -> dict[str, Any]:
        """The safety rules of a replay: those of a live run, but that a policy which fails ends it with its error.

        One that knows the future has none: its plan is made already. Nor has a peer: nobody who has it today has them.
        """
        if getattr(self.maker, "knows_future", False) or getattr(self.maker, "is_peer", False):
            return {}
        return {**safety(job), "failures_max": 0}

    def build(self, job: Job, rules: Mapping[str, Any] | None = None) -> Policy:
        """The policy with its guards around it: those that its name gives, and those of `rules` that it does not."""
        guards = Guards(**{**(rules or {}), **self.guards})
        return guards.around(self._bare(job), job, os.path.exists if guards.pause_file else None)

    def build_safe(self, job: Job, paused: IsPaused = os.path.exists, inside: Around = lambda bare: bare) -> Policy:
        """The policy as the live controller runs it: safety rules that were not given are there by default.

        `inside` may put something around the bare policy, within all rules.
        """
        return safe(inside(self._bare(job)), job, self.guards, paused)

    def _bare(self, job: Job) -> Policy:
        own = {key: value for key, value in self.parameters.items() if key not in OPTIONS}
        for name, parameter in parameters_of(self.maker).items():
            if parameter.default is parameter.empty and name not in own:
                raise BadInput(f"policy {self.name} needs {name}: write {self.name}:{name}=…")
        job = knowing_alternates(job)
        policy: Policy = _explained(self.name, lambda: self.maker(job, **own))
        if self.maker not in POLICIES.values():
            _check_policy(policy, self.name)
            policy = _Watched(policy, self.name)
        return Following(policy, job.capacity) if isinstance(job.capacity, AlternateCapacity) else policy


def _around(text: str, rest: str) -> str:
    """`tuned:threshold:budget=50` is the tuner around `threshold`."""
    inside, _, rest = rest.partition(":")
    if not inside or "=" in inside:
        raise BadInput(f"policy {text}: name what it tunes, as in tuned:threshold")
    if inside not in POLICIES:
        raise unknown(f"policy in {text}", inside, POLICIES)
    tunable(inside, POLICIES[inside])
    return ",".join(filter(None, (f"inside={inside}", rest)))


class _Watched:
    """A user's policy: what it raises becomes one line that says where."""

    def __init__(self, policy: Policy, name: str) -> None:
        self.inside, self._name = policy, name
        self.needs, self.memory_s = policy.needs, policy.memory_s

    def decide(self, seen: Observation) -> Decision:
        decision: Decision = _explained(f"{self._name} at {seen.time_s:g} s", lambda: self.inside.decide(seen))
        try:
            check_sense(decision)
        except BadInput as error:
            raise BadInput(f"policy {self._name} {error}") from None
        return decision


def _check_policy(policy: Any, name: str) -> None:
    """Refuse what is no policy, before it is asked anything."""
    for needed in ("decide", "needs", "memory_s"):
        if not hasattr(policy, needed):
            raise BadInput(f"policy {name} has no '{needed}': a policy has decide(seen), needs and memory_s")
    needs, memory_s = policy.needs, policy.memory_s
    if not isinstance(needs, (frozenset, set)) or not all(isinstance(each, Knob) for each in needs):
        right = "it must be a set, as in frozenset({Knob.WORKERS})"
        raise BadInput(f"policy {name}: needs is {reprlib.repr(needs)}; {right}")
    if not isinstance(memory_s, (int, float)) or not 0 <= memory_s <= SPAN_MOST_S:
        raise BadInput(f"policy {name}: memory_s is {reprlib.repr(memory_s)}; it must be seconds, 0 or more")


def _explained(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except PenstockError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadInput(f"policy {name} failed: {describe(error)}") from error


def _class_in_file(path: Path, class_name: str) -> type:
    if not reads(path).is_file():
        raise BadInput(f"no such policy file: {path}")
    if not class_name:
        raise BadInput(f"policy {path}: name the class in it, as in {path}:Mine")
    module = _module(path)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise unknown(f"class in {path}", class_name, classes)
    return found


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"penstock_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        own = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).name == path.name
        ]
        line = getattr(error, "lineno", None) or (own[-1] if own else 1)
        raise BadInput(f"{path} cannot be loaded: {type(error).__name__}: {said(error)} (line {line})") from error
    return module
