"""From the account of runs to docs/reliability.md: each promise, how it is kept, what holds it, and the figures.

python -m tests.faults.report     writes docs/reliability.md anew, and the list of planted bugs in this folder's README
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.mutants import MUTANTS, RESULTS

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS = ROOT / "docs" / "reliability.jsonl"
LANDINGS = ROOT / "docs" / "landings.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
README = ROOT / "tests" / "faults" / "README.md"
LIST = "### The list (written by `report.py`)"

# (promise, mechanism, tests)
PROMISES = (
    (
        "P1 No gap, no duplicate",
        "rows and position in one commit (`agent/feeds/once`), a new epoch for whoever takes a feed over, every write read back",
        "`tests/faults/test_points.py`, `tests/faults/rules/`, `tests/life/`",
    ),
    (
        "P2 The region is the truth",
        "plan, events and releases in the region's own Delta tables; a missing record is read off the release table (`agent/rollout/settle`)",
        "`test_points.py` (a console killed at each journal entry), `test_damage.py`",
    ),
    (
        "P3 One commit promotes",
        "one conditional commit to `releases`; readers resolve names through it",
        "the reader beside all of `tests/faults`, `test_points.py` (`before-swap`, `after-swap`), `rivals` (two promote at once)",
    ),
    (
        "P4 One writer a region",
        "a `flock` that Python and JVM hold together; epochs behind it",
        "`tests/agent/test_lock.py`, `tests/faults/rivals/`, `test_outside.py` (`jvm killed`, `agent stopped`)",
    ),
    (
        "P5 What was reviewed is what runs",
        "plans bound by digest to pipeline and release",
        "`tests/project/`, `tests/cli/`, `tests/hostile/test_fuzz.py`",
    ),
    (
        "P6 Nothing destructive by surprise",
        "losses refused by code at planning (`planning/loss`), by count in the batch (C301)",
        "`tests/planning/`, `tests/life/test_lost_days.py`",
    ),
    (
        "P7 Failure leaves live alone",
        "a build writes only to versions that no release names; a failure is kept until there is room to record it",
        "`test_outside.py` (`warehouse full`), and the reader's 0 failed reads",
    ),
    (
        "P8 Rollback loses nothing",
        "the previous release is followed until cleanup; the judge compares it as well",
        "`test_points.py` (`before-RolledBack`), `test_outside.py`",
    ),
    (
        "P9 Move only what must move",
        "fingerprints of rows and values decide table by table",
        "`tests/planning/`, `tests/life/test_life.py` (the second plan keeps everything)",
    ),
)


def append(place: Path, run: dict[str, Any]) -> None:
    """Add one run to the account."""
    with place.open("a") as out:
        out.write(json.dumps(run) + "\n")


def lines(place: Path) -> list[dict[str, Any]]:
    """The entries of an account, oldest first; [] where there is none."""
    return [json.loads(line) for line in place.read_text().splitlines() if line] if place.is_file() else []


def figures(runs: list[dict[str, Any]], mutants: list[dict[str, Any]]) -> list[tuple[str, str]]:
    def total(name: str) -> str:
        return f"{sum(run.get(name, 0) for run in runs):,}"

    caught = {m["mutant"] for m in mutants if m["caught"]}
    return [
        ("faults injected", f"{sum(len(run['faults']) for run in runs):,}"),
        ("kinds of fault", f"{len({fault for run in runs for fault in run['faults']}):,}"),
        ("runs", f"{len(runs):,}"),
        ("minutes", f"{sum(run['seconds'] for run in runs) / 60:,.0f}"),
        ("rows sent", total("rows")),
        ("rows lost", total("lost")),
        ("rows duplicated", total("duplicated")),
        ("rows that nobody sent", total("unexpected")),
        ("reads through the release", total("reads")),
        ("torn reads", total("torn")),
        ("failed reads", total("failed")),
        ("runs that did not end whole", f"{sum(run['result'] != 'whole' for run in runs)}"),
        ("planted bugs caught", f"{len(caught)} of {len(MUTANTS)}"),
    ]


def kinds(runs: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Faults by kind, most frequent first; deaths at crash points, whose names have no blank, are one for each process."""
    counted: Counter[str] = Counter()
    points: dict[str, set[str]] = {}
    for fault in (fault for run in runs for fault in run["faults"]):
        if " " in fault:
            counted[fault] += 1
        else:
            who = "a console" if fault.startswith("console-") else "an agent"
            points.setdefault(who, set()).add(fault)
            counted[who] += 1
    named = {who: f"{who} killed at a crash point ({len(met)} different ones)" for who, met in points.items()}
    return [
        (named.get(fault, fault), number)
        for fault, number in sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    ]


def page(runs: list[dict[str, Any]], mutants: list[dict[str, Any]]) -> str:
    promises = [f"| {name} | {how} | {held} |" for name, how, held in PROMISES]
    counted = [f"| {name} | {value} |" for name, value in figures(runs, mutants)]
    return "\n".join(
        [
            "# Reliability",
            "",
            "Generated by `python -m tests.faults.report` from `reliability.jsonl` (one line a run, appended by `make soak`;",
            "seed 0 is the fixed set of `make test`) and from `tests/faults/mutants.jsonl`. Edit neither by hand.",
            "",
            "## What is promised, how it is kept, what holds it",
            "",
            "| promise | mechanism | tests |",
            "| --- | --- | --- |",
            *promises,
            "",
            "## Figures",
            "",
            "| | |",
            "| --- | ---: |",
            *counted,
            "",
            "| fault | times |",
            "| --- | ---: |",
            *(f"| {fault} | {number:,} |" for fault, number in kinds(runs)),
            "",
            "A run is judged by `tests/faults/judge.py`, which imports nothing of console: it compares landing with a ledger of",
            "every row sent, and each table of the live and of the previous release with landing, as multisets of whole rows.",
            "A read counts as torn unless every table that it saw equals the recomputation for one release at one landing",
            "position. Faults of the network between console and region are in `tests/ssh` and are not counted here.",
            "Where a clock is stepped, Python and JVM read it; the disk, and the library in Rust that commits what is live, tell",
            "the machine's time meanwhile, so that the clocks of one region disagree.",
            "",
            *landings(lines(LANDINGS)),
        ]
    )


def landings(runs: list[dict[str, Any]]) -> list[str]:
    """What `tests/worlds` drew: landing tables that went through the real agent."""
    kinds = sum((Counter(run["kinds"]) for run in runs), Counter[str]())
    return [
        "## Landing tables drawn at random",
        "",
        "`python -m tests.worlds.soak` draws tables (type and values of the partition, features, writer, what happens before and after the fence),",
        "carries them through a real region and compares whole rows with what was drawn; one line of `landings.jsonl` a seed.",
        "",
        "| | |",
        "| --- | ---: |",
        f"| seeds | {len(runs):,} |",
        f"| worlds | {sum(run['worlds'] for run in runs):,} |",
        f"| minutes | {sum(run['seconds'] for run in runs) / 60:,.0f} |",
        f"| differences | {sum(len(run['differences']) for run in runs):,} |",
        "",
        "| writer and feature | worlds |",
        "| --- | ---: |",
        *(f"| {kind} | {number:,} |" for kind, number in sorted(kinds.items())),
        "",
    ]


def planted(mutants: list[dict[str, Any]]) -> str:
    """The README with the list of planted bugs at its end."""
    results = {m["mutant"]: "caught" if m["caught"] else "missed" for m in mutants}
    rows = (
        f"| {mutant.name} | `{mutant.test.removeprefix('tests/')}` | {results.get(mutant.name, 'not run')} |"
        for mutant in MUTANTS
    )
    before = README.read_text().partition(LIST)[0]
    return f"{before}{LIST}\n\n| bug | test that must fail | |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"


def main() -> None:
    PAGE.write_text(page(lines(RUNS), lines(RESULTS)))
    README.write_text(planted(lines(RESULTS)))


if __name__ == "__main__":
    main()
