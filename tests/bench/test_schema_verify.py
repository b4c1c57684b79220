"""`console schema verify` beside what the stores take: 1,000 tables are compared and told in 5 seconds of one processor."""

import time

import pytest

from console.propagation.check.compare import Report, compare
from console.propagation.check.render import data, junit, text
from console.propagation.clickhouse.types import TYPES as CLICKHOUSE
from console.propagation.clickhouse.types import is_nullable
from console.propagation.observe.read import read_schema
from console.propagation.replication import from_data
from console.propagation.tables import StoreColumn, StoreTable
from tests.bench.report import Measurement, check

pytestmark = pytest.mark.bench
TABLES = 1000
SECONDS = 5.0
TYPES = ("bigint NOT NULL", "text", "timestamp with time zone", "numeric(10,2)", "boolean DEFAULT false NOT NULL", "jsonb",
         "uuid", "text[]", "date", "character varying(255)", "double precision", "integer")  # fmt: skip


def test_a_thousand_tables_are_read_compared_and_told_in_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ", ".join(f"c{number} {TYPES[number % len(TYPES)]}" for number in range(30))
    dump = "".join(f"CREATE TABLE public.t{n} (id bigint PRIMARY KEY, {columns});\n" for n in range(TABLES))
    stores = {kind: {"kind": kind} for kind in ("clickhouse", "iceberg", "delta")}
    started = time.process_time()
    tables = read_schema([("dump.sql", dump)])
    config = from_data({"tables": {table.name: None for table in tables}, "stores": stores})
    read = time.process_time()
    results = {}
    for table in tables:
        words = [
            (
                c,
                CLICKHOUSE.nullable(CLICKHOUSE.store_type(c.type).word)
                if c.nullable
                else CLICKHOUSE.store_type(c.type).word,
            )
            for c in table.columns
        ]
        results[table.name] = StoreTable(
            name=table.name,
            columns=tuple(StoreColumn(name=c.name, type=w, nullable=is_nullable(w)) for c, w in words[:-1]),
            key=("id",),
        )
    described = time.process_time()
    report = Report(compare(tables, config, config.stores[0], results))
    assert report.wrong == TABLES
    assert text(report)
    assert junit(report)
    assert data(report)["differences"] == TABLES
    took = read - started + time.process_time() - described
    words = f"{took:.2f} processor seconds, {read - started:.2f} of them to read the dump"
    with capsys.disabled():
        check(
            Measurement(
                what=f"`schema verify` of {TABLES:,} tables of 31 columns", figure=took, limit=SECONDS, text=words
            )
        )
