"""From the record of runs to docs/reliability.md: each promise, its mechanism, its tests, and the figures.

python -m tests.faults.report     writes docs/reliability.md anew, and the list of planted bugs in this folder's README
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.faults.mutants import MUTANTS, RESULTS
from tests.soak import DOCS, WORLDS, Line, lines

RUNS = DOCS / "reliability.jsonl"
LANDINGS = DOCS / "landings.jsonl"
SQL = DOCS / "sql-oracle.jsonl"
CHANGES = DOCS / "mutation.jsonl"
PAGE = DOCS / "reliability.md"
README = Path(__file__).with_name("README.md")
LIST = "### The list (written by `report.py`)"

# those of WORLDS: what a seed draws, and what judges it
GENERATORS = {
    "clean rounds": ("clean rollouts that are watched beside a writer, without Spark", "none is taken back"),
    "clean watches": ("clean rollouts that are watched beside a writer, on Spark", "none is taken back"),
    "defects after a promotion": (
        "releases with a defect that shows only after their promotion, on Spark",
        "taken back within 60 s, no row lost",
    ),
    "changes": (
        "pipelines, the contents of their regions, and edits; the remedy of every refusal is followed",
        "days and columns, by the edits",
    ),
    "changes from now": (
        "edits whose files are taken over (`history: from now`), without Spark",
        "whole rows by DuckDB",
    ),
    "changes carried": ("edits carried out on Spark, rolled back and promoted again", "whole rows by DuckDB"),
    "clients": ("files sent, edited and sent again by clients that die", "a ledger of every line"),
    "days": ("rows of any day, at both ends of the calendar, and without a day", "whole numbers of microseconds"),
    "ddl": ("scripts of DDL", "PostgreSQL's own catalog"),
    "doubles": ("sums of doubles in other orders", "Python's fractions"),
    "stores": ("ClickHouse schemas and their migrations", "ClickHouse's own catalog, rows in plain Python"),
}

# (promise, mechanism, tests)
PROMISES = (
    (
        "P1 No gap and no duplicate",
        "rows and position in one commit (`agent/feeds/commit`), a new epoch for every owner of a feed, every write read back",
        "`tests/faults/test_points.py`, `tests/faults/rules/`, `tests/life/`",
    ),
    (
        "P2 The region is the truth",
        "plan, events and releases in the region's own Delta tables; a missing record is derived from the release table (`agent/rollout/recover`)",
        "`test_points.py` (a console killed at each journal entry), `test_damage.py`",
    ),
    (
        "P3 One commit promotes",
        "one conditional commit to `releases`; readers resolve names through it",
        "the reader that runs beside all of `tests/faults`, `test_points.py` (`before-swap`, `after-swap`), `rivals` (two promote at once)",
    ),
    (
        "P4 One writer per region",
        "a `flock` that Python and JVM hold together; epochs behind it",
        "`tests/agent/test_lock.py`, `tests/faults/rivals/`, `test_outside.py` (`jvm killed`, `agent stopped`)",
    ),
    (
        "P5 The reviewed plan is the plan that runs",
        "plans bound by digest to pipeline and release",
        "`tests/project/`, `tests/cli/`, `tests/hostile/test_fuzz.py`",
    ),
    (
        "P6 No loss without consent",
        "losses are refused with a code at planning (`planning/loss`), with a count in the batch (C301)",
        "`tests/planning/`, `tests/closure/test_carried.py`",
    ),
    (
        "P7 A failure leaves the live release alone",
        "a build writes only to versions that no release names; a failure is kept until there is space to record it",
        "`test_outside.py` (`warehouse full`), and the reader's 0 failed reads",
    ),
    (
        "P8 A rollback loses nothing",
        "the previous release is fed until cleanup; the independent judge compares it as well",
        "`test_points.py` (`before-RolledBack`), `test_outside.py`",
    ),
    (
        "P9 Only what must move is moved",
        "fingerprints of rows and values decide table by table",
        "`tests/planning/`, `tests/life/test_life.py` (the second plan keeps everything)",
    ),
)


def figures(runs: list[Line]) -> list[tuple[str, str]]:
    """Of runs whose warehouses lie in one kind of store."""

    def total(name: str) -> str:
        return f"{sum(run.get(name, 0) for run in runs):,}"

    return [
        ("faults injected", f"{sum(len(run['faults']) for run in runs):,}"),
        ("kinds of fault", f"{len({fault for run in runs for fault in run['faults']}):,}"),
        ("crash points met", f"{len({fault for run in runs for fault in run['faults'] if _crash_point(fault)}):,}"),
        ("runs", f"{len(runs):,}"),
        ("minutes", f"{sum(run['seconds'] for run in runs) / 60:,.0f}"),
        ("rows sent", total("rows")),
        ("rows lost", total("lost")),
        ("rows duplicated", total("duplicated")),
        ("rows that nobody sent", total("unexpected")),
        ("reads through the release", total("reads")),
        ("torn reads", total("torn")),
        ("failed reads", total("failed")),
        ("runs that the judge did not pass", f"{sum(run['result'] != 'whole' for run in runs)}"),
    ]


def places(runs: list[Line]) -> list[str]:
    """The demo's rollout in a bucket, by the kind of Spark that carried it."""
    if not runs:
        return []
    rows = (
        f"| {run['spark'].replace('_', ' ')} | {len(run['faults'])} | {run['seconds'] / 60:,.0f} | {run['rows']:,} | {run['lost']} | "
        f"{run['duplicated']} | {run['unexpected']} | {run['reads']:,} | {run['torn']} | {run['failed']} | {run['result']} |"
        for run in runs
    )
    return [
        "Among those in a bucket: the demo's rollout, there and back and there again under its producer and reader, while agents and",
        "consoles die at every crash point on the way (`tests/objects/test_demo_in_bucket.py`); its judge is the demo's own check.",
        "",
        "| Spark | deaths | minutes | rows | gaps | duplicates | changed | reads | torn | failed | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        *rows,
        "",
    ]


def kinds(runs: list[Line]) -> dict[str, int]:
    """Faults by kind, most frequent first; deaths at crash points are one for each process."""
    counted = Counter(_crash_point(fault) or fault for run in runs for fault in run["faults"])
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def _crash_point(fault: str) -> str:
    """The process that died, where the fault is a crash point: their names have no blank."""
    who = "a console" if fault.startswith("console-") else "an agent"
    return "" if " " in fault else f"{who} killed at a crash point"


def page(runs: list[Line], mutants: list[Line]) -> str:
    promises = [f"| {name} | {how} | {item} |" for name, how, item in PROMISES]
    disk, bucket = ([run for run in runs if run.get("store", "disk") == store] for store in ("disk", "s3"))
    counted = [
        f"| {name} | {value} | {other} |"
        for (name, value), (_, other) in zip(figures(disk), figures(bucket), strict=True)
    ]
    times = [kinds(of) for of in (disk, bucket)]
    injected = [
        f"| {fault} | {' | '.join(f'{of.get(fault, 0):,}' for of in times)} |"
        for fault in dict.fromkeys([*times[0], *times[1]])
    ]
    caught = {m["mutant"] for m in mutants if m["caught"]} & {mutant.name for mutant in MUTANTS}
    return "\n".join(
        [
            "# Reliability",
            "",
            "Generated by `python -m tests.faults.report` from `reliability.jsonl` (one line per run, appended by `make soak`;",
            "seed 0 is the fixed set of `make test`) and from `tests/faults/mutants.jsonl`. Edit neither by hand.",
            "",
            "## Promises, mechanisms and tests",
            "",
            "| promise | mechanism | tests |",
            "| --- | --- | --- |",
            *promises,
            "",
            "## Figures",
            "",
            "Warehouses on a disk (`make soak`), and in a bucket of a local S3 server (`make soak STORE=s3`). Of planted bugs",
            f"{len(caught)} of {len(MUTANTS)} were caught.",
            "",
            "| | disk | bucket |",
            "| --- | ---: | ---: |",
            *counted,
            "",
            "| fault | disk | bucket |",
            "| --- | ---: | ---: |",
            *injected,
            "",
            *places([run for run in runs if "spark" in run]),
            "A run is judged by `tests/faults/judge.py`, which imports nothing of console: it compares landing with a ledger of",
            "every row sent, and each table of the live and of the previous release with landing, as multisets of whole rows.",
            "A read counts as torn unless every table that it saw equals the recomputation for one release at one landing",
            "position. Faults of the network between console and region are in `tests/ssh` and are not counted here.",
            "Python and the JVM read a stepped clock; the disk, and the Rust library that commits live rows, still use",
            "the machine's clock, so that the clocks of one region disagree. Of a bucket, judge and reader see a copy that a",
            "module of its own brings up to date (`tests/faults/mirror.py`), around the proxy that cuts agents and consoles off.",
            "",
            *generators(),
            *landings(lines(LANDINGS)),
            *changes(lines(CHANGES)),
        ]
    )


@dataclass
class Account:
    """Worlds that a generator has drawn in total, and since its last difference."""

    drawn: int = 0
    minutes: float = 0
    differences: int = 0
    drawn_since: int = 0
    minutes_since: float = 0

    def add(self, drawn: int, minutes: float, differences: int) -> None:
        self.drawn += drawn
        self.minutes += minutes
        self.differences += differences
        self.drawn_since = 0 if differences else self.drawn_since + drawn
        self.minutes_since = 0 if differences else self.minutes_since + minutes

    def row(self, what: str, judge: str) -> str:
        return (
            f"| {what} | {judge} | {self.drawn:,} | {self.minutes:,.0f} | {self.differences:,} | "
            f"{self.drawn_since:,} | {self.minutes_since:,.0f} |"
        )


def generators() -> list[str]:
    """One row per generator of worlds, other than the faults above."""
    results = {name: Account() for name in (*GENERATORS, "landings", "sql")}
    for line in lines(WORLDS):
        results[line["generator"]].add(line.get("drawn", line["until"] - line["from"]), line["minutes"], line["wrong"])
    for line in lines(LANDINGS):
        results["landings"].add(line["worlds"] + line.get("read", 0), line["seconds"] / 60, len(line["differences"]))
    for line in lines(SQL):
        drawn = sum(line[what] for what in ("expressions", "statements", "pairs"))
        results["sql"].add(drawn + line["wrong"], line.get("minutes", 0), line["wrong"])
    reports = {
        **GENERATORS,
        "landings": ("landing tables of any writer", "whole rows as drawn"),
        "sql": ("expressions, statements and pairs of queries", "Spark's own parser and rows"),
    }
    return [
        "## Worlds drawn at random",
        "",
        "For each generator run by `make soak`: worlds drawn, minutes, differences from its judge, and worlds and minutes since",
        "the last difference. Lines of `worlds.jsonl`, `landings.jsonl` and `sql-oracle.jsonl`.",
        "",
        "| drawn | judge | worlds | minutes | differences | worlds since | minutes since |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        *(results[name].row(*reports[name]) for name in sorted(results) if results[name].drawn),
        "",
    ]


def landings(runs: list[Line]) -> list[str]:
    """The draws of `tests/worlds`: landing tables read through the real agent."""
    kinds = sum((Counter(run["kinds"]) for run in runs), Counter[str]())
    acts = sum((Counter(run.get("acts", {})) for run in runs), Counter[str]())
    return [
        "## Landing tables drawn at random",
        "",
        "`python -m tests.worlds.soak` draws tables (type and values of the partition, features, writer, operations before and after the fence),",
        "runs them through a real region up to live rows and `verify`, and compares whole rows with those drawn; one line of `landings.jsonl` per",
        "seed. Lines with differences are kept; `tests/worlds/README.md` explains them.",
        "",
        "| | |",
        "| --- | ---: |",
        f"| seeds | {len(runs):,} |",
        f"| tables read through an agent | {sum(run['worlds'] for run in runs):,} |",
        f"| tables read without one | {sum(run.get('read', 0) for run in runs):,} |",
        f"| minutes | {sum(run['seconds'] for run in runs) / 60:,.0f} |",
        f"| agents that ended before their live rows arrived | {sum(bool(run.get('agent')) for run in runs):,} |",
        f"| tables and folders that must be refused by name | {sum(run.get('refused', 0) for run in runs):,} |",
        f"| differences | {sum(len(run['differences']) for run in runs):,} |",
        "",
        "| writer and feature | worlds |",
        "| --- | ---: |",
        *(f"| {kind} | {number:,} |" for kind, number in sorted(kinds.items())),
        "",
        "| between two commits of the history, or between two live ones | worlds |",
        "| --- | ---: |",
        *(f"| {act} | {number:,} |" for act, number in sorted(acts.items())),
        "",
    ]


def changes(runs: list[Line]) -> list[str]:
    """Results of the last mutation run, file by file."""
    last = {file: counts for run in runs for file, counts in run.items() if isinstance(counts, dict)}
    rows = (
        f"| {file} | {sum(counts.values()):,} | {counts.get('killed', 0) + counts.get('endless', 0):,} | "
        f"{counts.get('equivalent', 0):,} | {counts.get('survived', 0):,} |"
        for file, counts in sorted(last.items())
    )
    return [
        "## Mutations of the code",
        "",
        "`python -m tests.mutation.soak` makes each small change that cosmic-ray supports (operators, comparisons, numbers, conditions, loops) and runs",
        "the tests that execute the changed line: all changes of the files named here, and a random sample (`others`). Figures are from the last line of `mutation.jsonl` for each file.",
        "",
        "| file | changes | noticed | explained | survived |",
        "| --- | ---: | ---: | ---: | ---: |",
        *rows,
        "",
    ]


def planted(mutants: list[Line]) -> str:
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
