"""Paper 2's result as a page of documentation: every figure in it is a claim's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.policies.fugu_settings import TABLE_2
from penstock.reproduce.claims import Claim
from penstock.reproduce.claims_page import Section, failures, sections
from penstock.reproduce.fugu_table import KINDS

HEAD = """\
# Placement, and thresholds that tune themselves (paper 2)
`fugu` places operators on hosts: one above the upper threshold gives operators away, and where the hosts are not
above the lower one on average, the least loaded goes. `fugu-tuned` searches its six parameters anew when the load
changes; `fugu-rl` learns them. They need a plant that places operators: a scenario with `[placed]`
([examples/placed.toml](../examples/placed.toml)), or, live, a fleet of queries on several Spark applications:
`penstock fleet` ([fleet.md](fleet.md)), where an operator is a whole query.
```
penstock replay --scenario examples/placed.toml --policy fugu:pause_s=1,move_mb_s=10 \\
    --policy fugu-tuned:pause_s=1,move_mb_s=10
penstock tune TRACE --policy threshold          # the same search for any policy that has a `space`
```
Nine scenarios of 90 minutes, three of each workload; hosts, pauses and queries are simulated. They were committed
before anything was tuned. Pairs are dollars for the 90 minutes and measurements above 3 s. Which loads are real and
which are generated stands in each line. The figures are those of
```
penstock reproduce fugu --traces DIR --output json > docs/fugu.json
penstock reproduce fugu --claims docs/fugu.json --output page > docs/fugu.md
```
"""
READ = """\
## How it was read
- *Underloaded* means an average load of at most the lower threshold: else Figure 3 does not cost 10. Of equally
  loaded hosts the youngest goes.
- Loads are whole thousandths of a host. A measured CPU is full at 100 %, so the load is what comes and waits, times
  what an event costs.
- A host that gave or took operators rests for the grace period, counted from the end of the move: nobody leaves it;
  it may still take.
- Of the sets that are equally large, the one with the large states stays. An operator larger than the threshold
  stays where it is.
- A scale-in that would make the queries late on average is left out. The peak of a move is p·(p + catch-up)/2 over
  a measurement.
- Thresholds' upper ends are left out of the tuned space (only then has it 720,000 points), so the rows of Table 2
  at 0.9 lie outside it.
- The adaptive window is on the summed load, as printed; a window has at least 12 measurements, or it could not show
  a scale-in.
- Each operator has one instance: one that needs more than a host stays late.
- Tuned figures are means of two runs, in the paper of three; of each learning setting there is one, in the paper three.
  The best learner of a scenario is chosen as the top 3 are: by the mean of cost and violations, relative to the most.
- Learning acts every 30 s on the mean load alone. (At first it acted every 10 s; that was changed after a look at
  two of these scenarios, so its figures are not blind.)
"""
SECTIONS: tuple[Section, ...] = (
    ("What it comes to", ("figure-3", "table-1", "ours-naive", "as-printed-naive", "top3", "rl-", "frontier"), ""),
    ("How much the thresholds matter (§5.1)", ("cost-ratio", "violation-ratio", "rank-"), ""),
    ("The bound (Figure 11)", ("bound-",), ""),
    ("What decides it", ("ablation-", "fixed-"), "Against naive; then the parameters that Table 2 leaves open."),
)
SUMS = {
    "naive": "naive (median of 16)",
    "top-3": "top 3 of 16",
    "ours": "tuned",
    "as-printed": "tuned as printed",
    "rl": "learning, mean of nine",
    "rl-best": "learning, the best",
}
FIXED = {f"{each.upper:g}-{each.lower:g}": f"({each.upper:g}, {each.lower:g})" for each in TABLE_2}


def as_page(claims: Sequence[Claim]) -> str:
    """The page, in Markdown."""
    of_worlds = {each.id: each for each in claims if each.id.startswith(KINDS)}
    rest = [each for each in claims if each.id not in of_worlds]
    worlds = [each.removesuffix("-naive") for each in of_worlds if each.endswith("-naive")]
    tables = [
        *_table("Cost and violations (Figures 7, 9 and 10)", SUMS, worlds, of_worlds),
        *_table("Each of the 16", FIXED, worlds, of_worlds),
    ]
    return "\n".join([HEAD, *sections(rest, SECTIONS), *tables, READ, *failures(claims), ""])


def _table(title: str, rows: Mapping[str, str], worlds: Sequence[str], claims: Mapping[str, Claim]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    real = {world: "" if "real load" in claims[f"{world}-naive"].text else " *" for world in worlds}
    yield "| | " + " | ".join(f"{world}{real[world]}" for world in worlds) + " |"
    yield "|---" + "|--:" * len(worlds) + "|"
    for key, label in rows.items():
        yield f"| {label} | " + " | ".join(str(claims[f"{world}-{key}"].ours) for world in worlds) + " |"
    yield ""
    if any(real.values()):
        yield "\\* a generated stand-in; the others are real loads."
        yield ""
