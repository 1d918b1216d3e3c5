"""A calibration as a scenario file: comments say from how much each figure comes, and what was not learnt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.core.errors import BadInput
from penstock.core.files import whole
from penstock.core.journal import Header
from penstock.models.calibration import Calibration
from penstock.models.evidence import Evidence
from penstock.models.meters import trigger_offset_s
from penstock.models.throughput_curves import Linear, Table
from penstock.sim.specs import WorkerSpec

# A job without a trigger begins the next batch at once; a clock that strikes this often is near enough.
AT_ONCE_S = 0.1
LEARNT = "# Learnt by `penstock calibrate`"


def write_scenario(path: Path, found: Calibration, evidence: Sequence[Evidence], with_load: bool = True) -> None:
    """The scenario, and beside it the arrivals of the first journal as a rate series."""
    rates = path.with_suffix(".csv")
    if with_load:
        need_series(path)
        first = evidence[0]
        rows = (f"{number * first.header.tick_s:.9g},{count:.9g}" for number, count in enumerate(first.arrivals()))
        with whole(rates) as scratch:
            scratch.write_text("\n".join(("t_s,arrivals", *rows)) + "\n", encoding="utf-8")
    lines = scenario_lines(found, evidence, rates.name if with_load else None)
    with whole(path) as scratch:
        scratch.write_text("\n".join(lines) + "\n", encoding="utf-8")


def need_series(scenario: Path) -> None:
    """Refuse to replace a series beside the scenario that no earlier calibration wrote: nobody named that file."""
    rates = scenario.with_suffix(".csv")
    before = scenario.read_bytes() if scenario.is_file() else b""
    ours = before.startswith(LEARNT.encode()) and f"path = {_text(rates.name)}".encode() in before
    if rates.exists() and not ours:
        raise BadInput(f"{rates} exists, and the load would go there: name the scenario otherwise, or give --no-load")


def scenario_lines(found: Calibration, evidence: Sequence[Evidence], rates: str | None) -> Iterator[str]:
    """The file, line by line."""
    header = evidence[0].header
    hours = sum(each.score.duration_s for each in evidence) / 3600
    yield f"{LEARNT} from {_several(len(evidence), 'journal')}, {hours:.3g} h in all."
    yield from (f"# Not learnt: {what}." for what in found.unknown)
    yield f"name = {_text(header.job)}"
    yield f"tick_s = {header.tick_s!r}"
    yield f"workers_at_start = {header.limits.clamp(evidence[0].workers_at_start)}"
    yield from _header(header)
    yield from _worker(found)
    yield from _capacity(found)
    yield from _batch(found, evidence[0])
    yield from _noise(found)
    if rates is not None:
        yield "\n[trace]  # the arrivals of the first journal; without this table, any rate series can be given"
        yield f"path = {_text(rates)}"
        yield f"every_s = {header.tick_s!r}"


def _header(header: Header) -> Iterator[str]:
    yield f"objective = {_text(str(header.objective))}"
    yield f"# policy = {_text(header.policy)}: a replay names it with --policy"
    yield "\n[limits]  # as in the journal's header, like the price"
    yield f"workers_min = {header.limits.workers_min}"
    yield f"workers_max = {header.limits.workers_max}"
    yield "\n[price]"
    yield f"per_hour = {header.price.per_hour!r}"
    yield f"billing = {_text(header.price.billing)}"


def _worker(found: Calibration) -> Iterator[str]:
    starts, service = found.starts, found.service
    yield "\n[worker]"
    if starts is None:
        yield "start_s = 0.0  # default"
    else:
        odd = f", {starts.odd} far slower ones left out" if starts.odd else ""
        none = f", {found.given_up} given up before they ran" if found.given_up else ""
        yield f"start_s = [{starts.low_s!r}, {starts.high_s!r}]  # {_several(starts.seen, 'start')}{odd}{none}"
    if service is not None and service.warm_s:
        seen = _several(service.warm_seen, "batch")
        yield f"warm_s = {service.warm_s!r}  # {seen} on workers younger than that"
        yield f"warm_speed = {service.warm_speed!r}"
    else:
        yield f"warm_s = {WorkerSpec().warm_s!r}  # no slow first minutes were seen"


def _capacity(found: Calibration) -> Iterator[str]:
    curve, service = found.capacity.curve, found.service
    yield "\n[capacity]  # events per second, in one endless batch"
    if service is not None:
        counts = ", ".join(f"{count}: {seen}" for count, seen in sorted(service.seen.items()))
        yield f"# settled batches by worker count: {counts or 'none'}; counts with fewer than 8 lie on the fitted curve"
        yield f"# predicted batch times are off by {service.error:.1%} in the median"
    if isinstance(curve, Table):
        yield f"workers = {list(curve.workers)}"
        yield f"rates = {list(curve.rates)}"
    elif isinstance(curve, Linear):
        yield f"per_worker = {curve.per_worker!r}"
    yield f"fixed_s = {found.capacity.fixed.base_s!r}"
    if found.capacity.fixed.shared_s:
        yield f"fixed_shared_s = {found.capacity.fixed.shared_s!r}  # task launches on one worker; more share it"


def _batch(found: Calibration, first: Evidence) -> Iterator[str]:
    service = found.service
    if service is None or found.trigger_s is None:
        return
    yield "\n[batch]"
    yield f"trigger_s = {found.trigger_s or AT_ONCE_S!r}"
    yield f"offset_s = {trigger_offset_s(first)!r}"
    if found.tasks:
        yield f"tasks = {found.tasks}  # the job's partitions"
    yield f"first_s = {service.first_s!r}  # a new worker's first task, from {_several(service.first_seen, 'batch')}"
    yield f"busy = {service.busy!r}  # of the fixed time, what the engine does not tell: workers have tasks then"
    yield f"spread = {service.spread!r}  # batches that should take equally long"
    yield f"drains = {str(found.drains).lower()}  # workers that are given up end with their batch"
    seen = "counts the service to come" if found.latency_includes_service else "is the age of the oldest event"
    yield f"latency_includes_service = {str(found.latency_includes_service).lower()}  # the journals' latency {seen}"


def _noise(found: Calibration) -> Iterator[str]:
    yield "\n[noise]"
    yield f"rate_over_s = {found.rate_over_s!r}  # the rate that is seen is a mean over so long; 0 for a tick"
    if found.cpu is not None:
        cpu = found.cpu
        yield f"# the CPU's meter, from {_several(cpu.seen, 'tick')}; its noise from {cpu.noise_seen}"
        yield f"cpu = {cpu.noise!r}"
        yield f"cpu_shared = {cpu.shared!r}"
        yield f"cpu_idle = {cpu.idle!r}"
        yield f"cpu_busy = {cpu.busy!r}"


def _text(value: str) -> str:
    """A TOML string: its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _several(number: int, noun: str) -> str:
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{ending}"
