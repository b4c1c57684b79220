"""The demo's requests as rows of a landing table of others, and the files of a pipeline that parses them by the demo's own query."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import duckdb
from deltalake import write_deltalake

from tests.bench.parts import ROOT

A_COMMIT = 1_000_000  # rows
BEGIN = date(2026, 11, 1)
DAY_MICROSECONDS = 86_400_000_000
PARSE = (ROOT / "plans" / "web" / "materializations" / "parse_requests.sql").read_text()
TABLE = (ROOT / "plans" / "web" / "tables" / "requests.yaml").read_text()
# read from outside, and without a retention that would make the history shorter from day to day
LANDING = "kind: landing\ntime: ts\ncolumns: {id: string, region: string, ts: timestamp, payload: string}\n"


def land(path: Path, rows: int, days: int, first: int = 0, *, begin: date = BEGIN, a_commit: int = A_COMMIT) -> None:
    """Rows of so many days, in the order of their times, as the demo's producer writes them.

    first     number of the first row
    begin     the first day
    a_commit  rows of a commit, which is one file
    """
    step = days * DAY_MICROSECONDS // rows
    for at in range(first, first + rows, a_commit):
        until = min(at + a_commit, first + rows)
        made = duckdb.sql(
            f"""
            SELECT 'e' || i AS id, 'us' AS region, TIMESTAMPTZ '{begin} 00:00:00+00' + to_microseconds((i - {first}) * {step}) AS ts,
                   json_object('tenant', 't' || i % 9, 'ip', '192.0.2.' || i % 250, 'method', 'GET', 'path', '/a/' || i % 1000 || '?q=1',
                     'protocol', 'HTTP/1.1', 'status', CASE WHEN i % 50 = 0 THEN 500 ELSE 200 END, 'bytes', i % 9999, 'duration_ms',
                     (i % 777) / 7.0, 'referrer', 'http://example.org/x', 'user_agent', 'Mozilla/5.0 (X11; Linux) Firefox/99.0') AS payload
            FROM range({at}, {until}) r(i)
            """
        ).to_arrow_table()
        write_deltalake(str(path), made, mode="append")


def files(edition: int = 0) -> dict[str, str]:
    """Files of the pipeline. An edition above 0 has one column more, computed from the payload: its table has to be rebuilt, and all
    of its other columns stay as they are.
    """
    parse, table = PARSE, _without_retention(TABLE)
    if edition:
        name = f"size_{edition}"
        parse = _replaced(
            parse, "AS user_agent\n  FROM landing", f"AS user_agent,\n    length(payload) AS {name}\n  FROM landing"
        )
        parse = _replaced(parse, "\nFROM parsed", f",\n  {name}\nFROM parsed")
        table += f"  {name}: int\n"
    return {
        "pipeline.yaml": "description: measured\n",
        "tables/landing.yaml": LANDING,
        "tables/requests.yaml": table,
        "materializations/parse_requests.sql": parse,
    }


def below(edition: int = 0) -> dict[str, str]:
    """Files of a chain: two more tables, one below the other, whose own queries change with the edition as well."""
    more = f", size_{edition}" if edition else ""
    column = f"  size_{edition}: int\n" if edition else ""
    visits = "event_id, ts, day, tenant, path, status, bytes, duration_ms, user_agent_family"
    return {
        "tables/visits.yaml": "time: ts\npartition_by: [day]\ncolumns:\n  event_id: string\n  ts: timestamp\n  day: date\n  tenant: string\n  path: string\n"
        f"  status: int\n  bytes: bigint\n  duration_ms: double\n  user_agent_family: string\n{column}",
        "materializations/visits.sql": f"/* into: visits */\nSELECT {visits}{more} FROM requests WHERE NOT is_bot\n",
        "tables/sizes.yaml": f"time: ts\npartition_by: [day]\ncolumns:\n  event_id: string\n  ts: timestamp\n  day: date\n  bytes: bigint\n{column}",
        "materializations/sizes.sql": f"/* into: sizes */\nSELECT event_id, ts, day, bytes{more} FROM visits\n",
    }  # fmt: skip


def _without_retention(table: str) -> str:
    return _replaced(table, "retention: 30d\n", "")


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"the demo's files have changed: {old!r}"
    return text.replace(old, new)


def put(root: Path, named: Mapping[str, str]) -> None:
    """Write the files of the pipeline below a project's root."""
    for name, text in named.items():
        file = root / "plans" / "web" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
