"""Statements of other engines: what they read and write, where no column tells it."""

import pytest

from console.planning.lineage import lineage

STATEMENTS = [
    ("COPY hits FROM 's3://logs/2026/'", "redshift", ["s3://logs/2026/"], ["hits"]),
    ("COPY INTO hits (a, b) FROM 's3://logs/2026/'", "snowflake", ["s3://logs/2026/"], ["hits"]),
    ("COPY (SELECT a FROM hits h JOIN geo ON h.ip = geo.ip) TO '/tmp/out.csv'", "duckdb", ["geo", "hits"], ["/tmp/out.csv"]),
    ("ALTER TABLE hits EXCHANGE PARTITION (day = '2026-11-01') WITH TABLE staged", "hive", ["staged"], ["hits"]),
    ("alter table web.hits swap with web.rebuilt;", "snowflake", ["web.rebuilt"], ["web.hits"]),
    ("SELECT swap_partitions_between_tables('staged', 'a', 'b', 'hits')", "ansi", ["staged"], ["hits"]),
    ("ALTER TABLE hits RENAME TO seen", "sparksql", [], []),
    ("ALTER TABLE hits ADD COLUMN agent STRING", "sparksql", [], []),
    ("UPDATE hits h INNER JOIN geo g ON h.ip = g.ip SET h.city = g.city", "mysql", ["geo"], ["hits"]),
    ("MERGE INTO hits h USING new n ON h.id = n.id WHEN NOT MATCHED THEN INSERT ROW", "bigquery", ["new"], ["hits"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "dialect", "sources", "targets"), STATEMENTS)
def test_the_tables_and_files_of_a_statement(sql: str, dialect: str, sources: list[str], targets: list[str]) -> None:
    edges = lineage(sql, dialect)
    assert (sorted(edges.sources), sorted(edges.targets)) == (sources, targets)


def test_a_merge_that_names_no_columns_fills_those_of_its_target() -> None:
    merge = "MERGE INTO hits USING new ON hits.id = new.id WHEN NOT MATCHED THEN INSERT VALUES (new.id, new.address)"
    pairs = {(("new", "id"), ("hits", "id")), (("new", "address"), ("hits", "ip"))}
    assert lineage(merge, schema={"hits": ["id", "ip"]}).columns == pairs
    assert lineage(merge).columns == frozenset()


def test_a_field_left_out_of_a_star_leaves_its_column_in() -> None:
    edges = lineage("INSERT INTO a SELECT * EXCEPT (geo.city) FROM (SELECT id, geo FROM b)")
    assert edges.columns == {(("b", "id"), ("a", "id")), (("b", "geo"), ("a", "geo"))}
