"""docs/benchmarks.md, as it follows from the record and from the explanations of its misses."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from tests.bench.parts import BY_NAME, MOST_MINUTES, TOPICS
from tests.bench.record import CHANGED, Machine, Record, Row
from tests.bench.size import Size

EXPLANATIONS = Path(__file__).with_name("misses.yaml")  # what was measured → why it misses its goal
UNKNOWN = "before 0.3"  # in place of a commit: no row kept its own until then
UNEXPLAINED = "not explained yet"
HEAD = """# Benchmarks

Written by `make bench` and `make bench-long` (`python -m tests.bench`) from [benchmarks.jsonl](benchmarks.jsonl), and by nobody's hand: a row keeps
commit, time, load and machine of its own run, until the same is measured again. `make bench` takes the small sizes, in less than {small} minutes on two
idle cores; `ONLY=following` runs one part of them, `ONLY=backfill,idle` two, and `python -m tests.bench --list` names all. `make bench-long` takes
the sizes of the goals, in less than {long} hours; a part that is on record at this commit is passed over, unless `AGAIN=1`.

A figure is a ratio within one run, a distribution, or processor seconds of all processes that take part: what a busy machine changes least. Of a JVM that
compares two queries (`from_json`, a batch, the gate's comparison, an aggregate) and of one that follows they are without its compilers, which differ by a third between equal runs.
*Load* is that of the machine's last minute, `{changed}` behind a commit that the tree differed from it. A **miss** is explained
below its table; a wrong result ends the run.
"""
MACHINES = """
| machine | cores | memory | processor | Java | Python | Spark | Delta |
|---|---|---|---|---|---|---|---|
"""
ROWS = """
| part | what | measured | goal | met | commit | at | load | machine |
|---|---|---|---|---|---|---|---|---|
"""


def explanations(path: Path = EXPLANATIONS) -> dict[str, str]:
    data: dict[str, str] | None = yaml.safe_load(path.read_text())
    return data or {}


def goal(limit: float | None, at_least: bool) -> str:
    if limit is None:
        return "none"
    return f"{'≥' if at_least else '≤'} {limit:,.4g}"


def rendered(record: Record, explained: Mapping[str, str]) -> str:
    """The page's text."""
    return "".join(_blocks(record, explained))


def _blocks(record: Record, explained: Mapping[str, str]) -> Iterator[str]:
    yield HEAD.format(small=MOST_MINUTES[Size.SMALL], long=f"{MOST_MINUTES[Size.LONG] / 60:g}", changed=CHANGED)
    if record.machines:
        yield MACHINES + "".join(map(_machine, record.machines))
    for topic, heading in TOPICS.items():
        rows = [row for row in record.rows.values() if BY_NAME[row.part].topic == topic]
        if rows:
            yield f"\n## {topic}. {heading}\n"
            yield from _topic(sorted(rows, key=lambda row: (row.part, row.what)), record, explained)


def _topic(rows: list[Row], record: Record, explained: Mapping[str, str]) -> Iterator[str]:
    yield ROWS + "".join(map(_row, rows))
    took = [ended for part in dict.fromkeys(row.part for row in rows) if (ended := record.ended.get(part))]
    if took:
        yield "\n" + "; ".join(f"{each.part} took {each.minutes:.1f} minutes at {each.commit}" for each in took) + ".\n"
    missed = [row for row in rows if row.met is False]
    if missed:
        yield "\n" + "".join(f"- **miss**, {row.what}: {explained.get(row.what, UNEXPLAINED)}\n" for row in missed)


def _machine(each: Machine) -> str:
    cells = (each.name, each.cores, f"{each.memory:g} GiB", each.cpu, each.java, each.python, each.spark, each.delta)
    return f"| {' | '.join(map(str, cells))} |\n"


def _row(row: Row) -> str:
    met = "" if row.met is None else "yes" if row.met else "**miss**"
    cells = (row.part, row.what, row.text, goal(row.limit, row.at_least) if row.limit is not None else "", met)
    return f"| {' | '.join(cells)} | {row.commit or UNKNOWN} | {row.at} | {row.load:.1f} | {row.machine} |\n"
