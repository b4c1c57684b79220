"""Fourteen days of a busy service, generated from one access log: replicated, shifted and written as a landing table.

Without Spark: DuckDB multiplies, deltalake writes, one commit a day (docs/demo.md: what is real, what is generated).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
from deltalake import WriterProperties, write_deltalake

from console.demo.traffic.access_log import seed

DAYS = 14
AGENT_DAYS = 5  # since the service began to log the user agent
HEAVY_DAY = 6  # days ago
TICK_SECONDS = 2.0  # seconds between two polls of an agent for new rows: three Sparks share two cores here
_STRIDES = (7919, 7907, 7901, 7883, 7879, 7877, 7873, 7867)  # primes, one of which does not divide the log's length
_WRITER = WriterProperties(compression="ZSTD", compression_level=1, max_row_group_size=50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The amount of a region's traffic.

    rows_a_day  on an ordinary day;  heavy  on the one heavy day;  live  rows a second from now on
    external    its landing table has a column of its own, `ext_id`
    """

    region: str
    rows_a_day: int
    heavy: int
    live: float
    external: bool = False

    def rows(self, days_ago: int) -> int:
        return self.heavy if days_ago == HEAVY_DAY else self.rows_a_day


@dataclass(frozen=True, slots=True, kw_only=True)
class DayWritten:
    """A day of history has been written. rows: of that day;  done, of: days"""

    day: date
    rows: int
    done: int
    of: int


TRAFFIC = {
    "eu": Traffic(region="eu", rows_a_day=102_000, heavy=310_000, live=200),
    "us": Traffic(region="us", rows_a_day=31_000, heavy=36_000, live=50),
    "ap": Traffic(region="ap", rows_a_day=4_800, heavy=5_500, live=5, external=True),
}

# A log replayed ten times a day would put ten requests on one instant, so each round is shifted. The stride takes
# events from the whole log even if a day is shorter than one round.
_DAY_SQL = """
SELECT $region || '-' || $label || '-' || i AS id, $region AS region,
  make_timestamptz(CAST($start_us + (of_day_us + shift_us) % 86400000000 AS bigint)) AS ts,
  CASE WHEN $agent THEN with_agent ELSE without_agent END AS payload{external}
FROM (
  SELECT i, (i * $stride + $first) % $events AS n, ((i // $events) * 421000000) % 3600000000 AS shift_us
  FROM range($rows) AS r(i)
) JOIN seed USING (n)
WHERE $start_us + (of_day_us + shift_us) % 86400000000 <= $now_us
ORDER BY ts
"""
_EXTERNAL_SQL = ",\n  CASE WHEN i % 4 <> 0 THEN 'x' || (i * 2654435761 % 4294967296) END AS ext_id"


def build(
    traffic: Traffic, warehouse: Path, now: datetime, log: Path | None, report: Callable[[DayWritten], None]
) -> int:
    """Write `<warehouse>/landing`: 14 days, the last one up to now. The directory must not exist yet.

    now      UTC
    report   called after each day
    returns  rows written
    """
    connection, events = seed(log)
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    stride = next(prime for prime in _STRIDES if events % prime)
    written = first = 0
    for done, days_ago in enumerate(reversed(range(DAYS)), 1):
        rows = traffic.rows(days_ago)
        day = midnight - timedelta(days_ago)
        new = _write_day(
            connection, traffic, warehouse / "landing", day,
            {"rows": rows, "first": first, "events": events, "stride": stride, "agent": days_ago < AGENT_DAYS, "now_us": _us(now)},
        )  # fmt: skip
        written, first = written + new, first + rows
        report(DayWritten(day=day.date(), rows=new, done=done, of=DAYS))
    connection.close()
    return written


def _write_day(
    connection: duckdb.DuckDBPyConnection, traffic: Traffic, table: Path, start: datetime, numbers: dict[str, int]
) -> int:
    query = _DAY_SQL.format(external=_EXTERNAL_SQL if traffic.external else "")
    names = {"region": traffic.region, "label": f"{start:%Y%m%d}", "start_us": _us(start)}
    rows = connection.execute(query, names | numbers).to_arrow_table()
    if rows.num_rows:
        write_deltalake(str(table), rows, mode="append", writer_properties=_WRITER)
    return int(rows.num_rows)


def _us(at: datetime) -> int:
    """Microseconds since 1970, UTC, exactly."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
