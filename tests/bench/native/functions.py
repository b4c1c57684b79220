"""Functions in Spark SQL and the nearest text in DuckDB, and odd values on which both are asked: those that agree on all of them may
mean the same, the others do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

INT, LONG, DOUBLE, TEXT, TIME = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.timestamp("us", "UTC")
NULL: list[Any] = [None]
NAN, INF = float("nan"), float("inf")
INTS = [0, 1, -1, 7, 2**31 - 1, -(2**31), *NULL]
LONGS = [0, 1, -7, 2**31, 2**63 - 1, -(2**63), *NULL]
DOUBLES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    0.125,
    1.005,
    1e10,
    1e-7,
    123456789.125,
    2.0**53,
    1e300,
    INF,
    -INF,
    NAN,
    *NULL,
]
TEXTS = [
    "", " ", "a", "A", "a?b?c", "?x", "x?", "/a/b", "//", "a/b", "a\nb", "ünï", "ß", "\u212a", "e\u0301", "😀x", "100%", "a_b", "a\\b", "\tx ", "İ", *NULL,
]  # fmt: skip
URLS = [
    "http://a.b/c?d", "HTTP://a.b", "http://", "ftp://x#y", "x http://a", "http://a\nb/c", "https://ü.de/", "", *NULL,
]  # fmt: skip
AGENTS = ["GoogleBOT", "robot\n", "\u212aBot", "ſpider", "crawl", "Firefox/1", "feed", "RSS", "", *NULL]
TIMES = [
    datetime(2026, 11, 1, 23, 59, 59, 999999, UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
    datetime(1883, 11, 18, 12, 3, 58, tzinfo=UTC), datetime(1582, 10, 4, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, tzinfo=UTC), *NULL,
]  # fmt: skip
NUMBERS = [
    "1", "+1", "-1", " 1 ", "\t1", "1.5", "1e3", "1.", ".5", "", " ", "0x10", "1_000", "1,0", "2147483647", "2147483648", "9223372036854775808", "1L",
    "1d", "1.0f", "NaN", "nan", "Infinity", "inf", "-Infinity", "１", "true", *NULL,
]  # fmt: skip
MOMENTS = [
    "2026-11-01", "2026-11-01 10:00:00", "2026-11-01T10:00:00Z", "2026-11-01T10:00:00+02:00", "2026-11-01 10:00", "2026-11-01 10", "2026-1-1", "2026",
    "2026-11", "2026-02-30", "2026-11-01 24:00:00", "2026-11-01 10:00:00.1234567", "2026-03-29 02:30:00 Europe/Madrid", "epoch", "10:00", "", " 2026-11-01 ",
    "infinity", "12026-01-01", *NULL,
]  # fmt: skip
DOCUMENTS = [
    '{"a":1}', '{"a":1.0}', '{"a":1.50}', '{"a":1e3}', '{"a":-0}', '{"a":"x"}', '{"a":"1"}', '{"a":""}', '{"a":null}', '{"a":true}', '{"a":{"b": 1}}',
    '{"a":[1, 2]}', '{"a":"\\u00e9\\n"}', '{"a":"\\ud83d\\ude00"}', '{"a":12345678901234567890}', '{"a":3000000000}', '{"a":1.5e400}', '{"a":NaN}', "{a:1}",
    "{'a':1}", '{"a":1', '{"a":1}x', '{"a":1}{"a":2}', '{"a":1,"a":2}', '{"A":1}', '{"a.b":1}', '{}', '[]', '[{"a":1}]', "null", "1", '"a"', "", " ", '{"a":01}',
    '{"a":"x\ty"}', '{"a": /* c */ 1}', *NULL,
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One function in both engines, over a column `v`.

    values   that it is asked with;  type: of `v`
    differs  a value on which the engines answer otherwise, as `engines.named` names it; "" where they agree on all
    """

    name: str
    spark: str
    duckdb: str
    type: pa.DataType
    values: Sequence[Any]
    differs: str = ""


def _json(kind: str, duckdb: str, differs: str) -> Pair:
    """from_json of one field beside a cast of the extracted text."""
    extracted = "CASE WHEN json_valid(v) THEN json_extract_string(v, '$.a') END"
    return Pair(
        name=f"from_json of {kind}", spark=f"from_json(v, 'a {kind}').a", duckdb=f"TRY_CAST({extracted} AS {duckdb})", type=TEXT, values=DOCUMENTS,
        differs=differs,
    )  # fmt: skip


def _same(name: str, sql: str, kind: pa.DataType, values: Sequence[Any], differs: str = "") -> Pair:
    """A function that both spell alike."""
    return Pair(name=name, spark=sql, duckdb=sql, type=kind, values=values, differs=differs)


PAIRS = (
    # what the demo's query of requests uses
    Pair(name="get_json_object", spark="get_json_object(v, '$.a')", duckdb="CASE WHEN json_valid(v) THEN json_extract_string(v, '$.a') END", type=TEXT, values=DOCUMENTS, differs='str \'{"a":1}x\''),
    _json("STRING", "VARCHAR", 'str \'{"a":1}x\''),
    _json("INT", "INTEGER", 'str \'{"a":1.50}\''),
    _json("BIGINT", "BIGINT", 'str \'{"a":1.50}\''),
    _json("DOUBLE", "DOUBLE", 'str \'{"a":"1"}\''),
    Pair(name="to_date of a timestamp", spark="to_date(v)", duckdb="CAST(v AS DATE)", type=TIME, values=TIMES),
    Pair(name="date_trunc to the hour", spark="date_trunc('HOUR', v)", duckdb="date_trunc('hour', v)", type=TIME, values=TIMES),
    Pair(name="substring_index", spark="substring_index(v, '?', 1)", duckdb="string_split(v, '?')[1]", type=TEXT, values=TEXTS),
    Pair(name="instr", spark="instr(v, '?')", duckdb="CAST(strpos(v, '?') AS INTEGER)", type=TEXT, values=TEXTS),
    Pair(name="substr from a place", spark="substr(v, instr(v, '?') + 1)", duckdb="substr(v, strpos(v, '?') + 1)", type=TEXT, values=TEXTS),
    _same("split_part", "split_part(v, '/', 2)", TEXT, TEXTS),
    Pair(name="regexp_extract of a host", spark="regexp_extract(v, '^[a-z]+://([^/?#]+)', 1)", duckdb="regexp_extract(v, '^[a-z]+://([^/?#]+)', 1)", type=TEXT, values=URLS),
    Pair(name="RLIKE without case", spark="v RLIKE '(?i)(bot|crawl|spider|slurp)'", duckdb="regexp_matches(v, '(?i)(bot|crawl|spider|slurp)')", type=TEXT, values=AGENTS, differs="str 'ſpider'"),
    _same("LIKE without _ and backslash", "v LIKE '%Firefox/%'", TEXT, [*AGENTS, *TEXTS]),
    _same("nullif", "nullif(v, '')", TEXT, TEXTS),
    _same("CASE and comparison of whole numbers", "CASE WHEN v >= 500 THEN '5xx' WHEN v >= 0 THEN 'ok' END", INT, INTS),
    # others that queries use often
    Pair(name="RLIKE with a dot", spark="v RLIKE '^.*$'", duckdb="regexp_matches(v, '^.*$')", type=TEXT, values=TEXTS),
    Pair(name="RLIKE with \\w", spark=r"v RLIKE '^\\w+$'", duckdb=r"regexp_matches(v, '^\w+$')", type=TEXT, values=TEXTS),
    Pair(name="RLIKE without case of k", spark="v RLIKE '(?i)k'", duckdb="regexp_matches(v, '(?i)k')", type=TEXT, values=TEXTS, differs="str 'K'"),
    _same("LIKE with _", "v LIKE 'a_b'", TEXT, TEXTS),
    Pair(name="LIKE with a backslash", spark=r"v LIKE 'a\\\\b'", duckdb=r"v LIKE 'a\\b'", type=TEXT, values=TEXTS, differs="str 'a\\\\b'"),
    Pair(name="length", spark="length(v)", duckdb="CAST(length(v) AS INTEGER)", type=TEXT, values=TEXTS),
    _same("upper", "upper(v)", TEXT, TEXTS, differs="str 'ß'"),
    _same("lower", "lower(v)", TEXT, TEXTS, differs="str 'İ'"),
    _same("trim", "trim(v)", TEXT, TEXTS),
    _same("concatenation", "v || 'x'", TEXT, TEXTS),
    _same("concat", "concat(v, 'x')", TEXT, TEXTS, differs='NoneType None'),
    Pair(name="sha2", spark="sha2(v, 256)", duckdb="sha256(v)", type=TEXT, values=TEXTS),
    Pair(name="substr from 0", spark="substr(v, 0, 2)", duckdb="substr(v, 0, 2)", type=TEXT, values=TEXTS, differs="str 'a?b?c'"),
    _same("CAST of text to INT", "CAST(v AS INT)", TEXT, NUMBERS, differs="str '1.5'"),
    _same("CAST of text to BIGINT", "CAST(v AS BIGINT)", TEXT, NUMBERS, differs="str '1.5'"),
    _same("CAST of text to DOUBLE", "CAST(v AS DOUBLE)", TEXT, NUMBERS, differs="str '1_000'"),
    _same("CAST of text to DATE", "CAST(v AS DATE)", TEXT, MOMENTS, differs="str '2026'"),
    Pair(name="CAST of text to TIMESTAMP", spark="CAST(v AS TIMESTAMP)", duckdb="CAST(v AS TIMESTAMPTZ)", type=TEXT, values=MOMENTS, differs="str '2026-11-01 10'"),
    Pair(name="CAST of a whole number to text", spark="CAST(v AS STRING)", duckdb="CAST(v AS VARCHAR)", type=LONG, values=LONGS),
    Pair(name="CAST of DOUBLE to text", spark="CAST(v AS STRING)", duckdb="CAST(v AS VARCHAR)", type=DOUBLE, values=DOUBLES, differs='float 10000000000.0'),
    _same("CAST of DOUBLE to BIGINT", "CAST(v AS BIGINT)", DOUBLE, DOUBLES, differs='float 1.5'),
    _same("CAST of BIGINT to INT", "CAST(v AS INT)", LONG, LONGS),
    _same("sum of two INT", "v + v", INT, INTS),
    _same("sum of two BIGINT", "v + v", LONG, LONGS),
    _same("product of two BIGINT", "v * v", LONG, LONGS),
    Pair(name="division of INT", spark="7 / v", duckdb="7 / v", type=INT, values=INTS, differs='int 0'),
    _same("remainder of INT", "7 % v", INT, INTS, differs='int 0'),
    _same("division of DOUBLE", "CAST(1 AS DOUBLE) / v", DOUBLE, DOUBLES, differs='float 0.0'),
    _same("comparison of DOUBLE", "v > CAST(1 AS DOUBLE)", DOUBLE, DOUBLES),
    _same("equality of DOUBLE", "v = v", DOUBLE, DOUBLES),
    _same("round to a place", "round(v, 1)", DOUBLE, DOUBLES, differs='float -0.0'),
    _same("round", "round(v)", DOUBLE, DOUBLES, differs='float -0.0'),
    Pair(name="floor", spark="floor(v)", duckdb="CAST(floor(v) AS BIGINT)", type=DOUBLE, values=DOUBLES, differs='float 1e+300'),
    Pair(name="date_format", spark="date_format(v, 'yyyy-MM-dd HH:mm:ss')", duckdb="strftime(v, '%Y-%m-%d %H:%M:%S')", type=TIME, values=TIMES),
    Pair(name="unix_micros", spark="unix_micros(v)", duckdb="epoch_us(v)", type=TIME, values=TIMES),
    Pair(name="from_utc_timestamp", spark="from_utc_timestamp(v, 'Europe/Madrid')", duckdb="timezone('UTC', timezone('Europe/Madrid', v))", type=TIME, values=TIMES),
)  # fmt: skip
