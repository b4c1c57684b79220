"""An access log as events to replay: the shipped one, or the user's own in common or combined format."""

import gzip
from pathlib import Path

import duckdb
import pyarrow as pa

from console.errors import DataError, UsageError

SHIPPED = Path(__file__).parent.parent / "data" / "access_2015.ndjson.gz"
READ_BYTES = 64 * 2**20  # bytes read from the end of the user's own log
_GZIP = b"\x1f\x8b"

_SHIPPED_SQL = """
SELECT line->>'$.timestamp' AS logged, line->>'$.ip' AS ip, line->>'$.method' AS method, line->>'$.path' AS path,
  line->>'$.protocol' AS protocol, (line->>'$.status')::int AS status, (line->>'$.bytes')::bigint AS bytes,
  line->>'$.referrer' AS referrer, line->>'$.user_agent' AS user_agent
FROM lines
"""
_COMBINED_SQL = r"""
SELECT try_strptime(f.logged, '%d/%b/%Y:%H:%M:%S %z') AS logged, f.ip AS ip, nullif(f.method, '') AS method,
  nullif(f.path, '') AS path, nullif(f.protocol, '') AS protocol, try_cast(f.status AS int) AS status,
  try_cast(f.bytes AS bigint) AS bytes,
  CASE WHEN f.referrer NOT IN ('', '-') THEN f.referrer END AS referrer,
  CASE WHEN f.user_agent NOT IN ('', '-') THEN f.user_agent END AS user_agent
FROM (
  SELECT regexp_extract(
    line,
    '^(\S+) \S+ \S+ \[([^\]]+)\] "(\S*) ?(\S*) ?((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?',
    ['ip', 'logged', 'method', 'path', 'protocol', 'status', 'bytes', 'referrer', 'user_agent']
  ) AS f
  FROM lines
)
"""
# Tenant: by address, three of unequal size. Duration: 8 to 80 ms and up to 10 more for large responses, to 0.1 ms.
# Both are functions of the request alone, so that equal requests stay equal.
_SEED_SQL = """
CREATE TABLE seed AS
WITH events AS (
  SELECT *, concat_ws(chr(31), 'demo 1', ip, method, path, protocol, status, bytes, referrer, user_agent) AS content
  FROM ({read}) WHERE logged IS NOT NULL
), chance AS (
  SELECT *, (md5_number_lower(content) % 1000000) / 1000000.0 AS dice, (md5_number_lower('tenant' || ip) % 100)::int AS share
  FROM events
), derived AS (
  SELECT *,
    CASE WHEN share < 40 THEN 'acme' WHEN share < 75 THEN 'globex' ELSE 'initech' END AS tenant,
    round(8 + 72 * dice + least(coalesce(bytes, 0), 1000000) / 100000.0, 1)::double AS duration_ms
  FROM chance
)
SELECT row_number() OVER () - 1 AS n, epoch_us(logged::timestamptz) % 86400000000 AS of_day_us,
  to_json({{tenant: tenant, ip: ip, method: method, path: path, protocol: protocol, status: status, bytes: bytes,
           duration_ms: duration_ms, referrer: referrer}})::varchar AS without_agent,
  to_json({{tenant: tenant, ip: ip, method: method, path: path, protocol: protocol, status: status, bytes: bytes,
           duration_ms: duration_ms, referrer: referrer, user_agent: user_agent}})::varchar AS with_agent
FROM derived
"""


def lines_of(path: Path) -> list[str]:
    """The last 64 MiB of a log, gzipped or not; invalid UTF-8 becomes U+FFFD.

    raises  UsageError if it cannot be read
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            size = file.seek(0, 2)
            start = 0 if packed else max(0, size - READ_BYTES)
            file.seek(start)
            data = file.read()
        data = gzip.decompress(data)[-READ_BYTES:] if packed else data
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot read the log {path}: {error}", hint="LOG= must name an access log") from None
    lines = data.decode("utf-8", "replace").replace("\0", "\ufffd").splitlines()
    return lines[1:] if start else lines


def seed(log: Path | None) -> tuple[duckdb.DuckDBPyConnection, int]:
    """Events in memory, ready to be replayed.

    log      the user's own, in common or combined format; None is the shipped one
    returns  a connection with the table `seed(n 0…E-1, of_day_us, without_agent, with_agent)`, times UTC, and E
    raises   UsageError if the log cannot be read, DataError if it has no line in that format
    """
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    connection.execute("SET TimeZone = 'UTC'")
    lines = lines_of(log or SHIPPED)
    connection.register("raw", pa.table({"line": pa.array(lines, pa.string())}))
    connection.execute("CREATE TEMP TABLE lines AS SELECT line FROM raw")
    connection.execute(_SEED_SQL.format(read=_COMBINED_SQL if log else _SHIPPED_SQL))
    row = connection.sql("SELECT count(*) FROM seed").fetchone()
    events = int(row[0]) if row else 0
    if not events:
        raise DataError(
            f"{log}: none of {len(lines)} lines is in common or combined log format",
            hint='a line looks like: 192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 512 "-" "curl/8"',
        )
    return connection, events


def payloads(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Every event in the service's current format, in the log's order."""
    return [str(row[0]) for row in connection.sql("SELECT with_agent FROM seed ORDER BY n").fetchall()]
