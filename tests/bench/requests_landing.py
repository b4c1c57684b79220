"""Landing rows of the demo's web service over whole days, a commit for each day, always the same: what the larger benches read."""

from datetime import UTC, datetime, timedelta

import duckdb
from deltalake import write_deltalake

FIRST_DAY = datetime(2026, 10, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000


def write_landing(path: str, rows: int, days: int) -> None:
    """rows  in all, the same number each day as far as that divides evenly;  days: from `FIRST_DAY` on"""
    for day in range(days):
        first, end = rows * day // days, rows * (day + 1) // days
        write_deltalake(path, _day(FIRST_DAY + timedelta(days=day), first, end - first), mode="append")


def _day(start: datetime, first: int, rows: int) -> object:
    """An Arrow table of one day. first: number of its first row among all"""
    return duckdb.sql(
        f"""
        SELECT 'e' || ({first} + i) AS id, 'us' AS region, TIMESTAMPTZ '{start.isoformat()}' + to_microseconds(i * {_DAY_US // rows}) AS ts,
               json_object('tenant', 't' || i % 9, 'ip', '192.0.2.' || i % 250, 'method', 'GET', 'path', '/a/' || i % 1000 || '?q=1',
                 'protocol', 'HTTP/1.1', 'status', CASE WHEN i % 50 = 0 THEN 500 ELSE 200 END, 'bytes', i % 9999, 'duration_ms',
                 (i % 777) / 7.0, 'referrer', 'http://example.org/x',
                 'user_agent', 'Mozilla/5.0 (X11; Linux) Firefox/' || i % 90 || '.0') AS payload
        FROM range({rows}) r(i)
        """
    ).to_arrow_table()
