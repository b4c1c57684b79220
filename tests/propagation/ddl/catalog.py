"""PostgreSQL's own catalog, before and after a script: read with psycopg, without any of console's code."""

import re
from dataclasses import dataclass, field
from typing import Any

Name = tuple[str, str]
_TYPES = """
SELECT t.oid::bigint AS oid, t.typname AS name, n.nspname AS schema, t.typtype AS kind, t.typbasetype::bigint AS base,
       t.typtypmod AS mod, t.typnotnull AS required, CASE WHEN t.typcategory = 'A' THEN t.typelem::bigint ELSE 0 END AS element,
       pg_catalog.pg_get_expr(t.typdefaultbin, 0) AS preset,
       EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.convalidated
                AND pg_catalog.pg_get_constraintdef(k.oid) LIKE '%(VALUE IS NOT NULL)%') AS checked
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
"""
_COLUMNS = """
SELECT c.oid::bigint AS rel, n.nspname AS schema, c.relname AS table, c.relkind AS relkind, c.relpersistence AS persistence,
       c.relispartition AS partition, a.attnum AS num, a.attname AS name, a.atttypid::bigint AS type, a.atttypmod AS mod,
       a.attnotnull AS required, a.attgenerated AS generated, a.attidentity AS identity,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS expression, pg_catalog.format_type(a.atttypid, a.atttypmod) AS shown,
       ARRAY(SELECT pg_catalog.pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint k
              WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.convalidated) AS checks
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'console_ddl')
   AND n.nspname NOT LIKE 'pg\\_toast%'
 ORDER BY c.oid, a.attnum
"""
_PLAIN = {
    "bool": "boolean", "int2": "int16", "int4": "int32", "int8": "int64", "oid": "int64", "float4": "float32", "float8": "float64",
    "text": "string", "varchar": "string", "bpchar": "string", "char": "string", "name": "string", "bytea": "bytes", "date": "date",
    "uuid": "uuid", "json": "json", "jsonb": "json", "interval": "interval",
}  # fmt: skip
_TIMES = {"time": "time", "timetz": "time_tz", "timestamp": "timestamp", "timestamptz": "timestamp_tz"}
_NOT_NULL = re.compile(r'\(\(?(?:"((?:[^"]|"")+)"|([^\s"()]+)) IS NOT NULL\)')


@dataclass(frozen=True)
class Truth:
    """One column as the catalog has it. generic: what its type means, in the words of docs/types.md"""

    num: int
    name: str
    generic: str
    shown: str
    nullable: bool
    expression: str | None
    generated: bool
    identity: bool


@dataclass
class Relation:
    rel: int
    kind: str
    temporary: bool
    partition: bool
    columns: list[Truth] = field(default_factory=list)

    @property
    def replicates(self) -> bool:
        return self.kind in "rp" and not self.temporary and not self.partition


def snapshot(connection: Any) -> dict[Name, Relation]:
    """Every relation by its name."""
    types = {row["oid"]: row for row in connection.execute(_TYPES).fetchall()}
    results: dict[Name, Relation] = {}
    for row in connection.execute(_COLUMNS).fetchall():
        temporary = row["persistence"] == "t"
        name = ("pg_temp" if temporary else row["schema"], row["table"])
        relation = results.setdefault(name, Relation(row["rel"], row["relkind"], temporary, row["partition"]))
        if row["num"] is not None:
            relation.columns.append(_column(row, types))
    return results


def _column(row: Any, types: dict[int, Any]) -> Truth:
    generic, required = _meaning(row["type"], row["mod"], types)
    plain = {quoted.replace('""', '"') or bare for check in row["checks"] for quoted, bare in _kept(check)}
    expression = (
        types[row["type"]]["preset"] if row["expression"] is None else row["expression"]
    )  # a domain's is its columns'
    return Truth(
        row["num"], row["name"], generic, row["shown"], not (row["required"] or required or row["name"] in plain),
        None if row["generated"] else expression, bool(row["generated"]), bool(row["identity"]),
    )  # fmt: skip


def _kept(check: str) -> list[tuple[str, str]]:
    """Columns that a CHECK keeps from being NULL: those of a condition of nothing but ANDs."""
    return [] if " OR " in check or "NOT VALID" in check or " NOT (" in check else _NOT_NULL.findall(check)


def _meaning(oid: int, mod: int, types: dict[int, Any]) -> tuple[str, bool]:
    result = types[oid]
    if result["element"]:
        return f"array<{_meaning(result['element'], mod, types)[0]}>", False
    if result["kind"] == "d":
        generic, required = _meaning(result["base"], result["mod"], types)
        return generic, required or result["required"] or result["checked"]
    if result["kind"] == "e":
        return "enum", False
    if result["schema"] == "pg_catalog":
        name = result["name"]
        if name in _PLAIN:
            return _PLAIN[name], False
        if name == "numeric":
            return _decimal(mod), False
        if name in _TIMES:
            digits = 6 if mod < 0 else mod
            return _TIMES[name] + ("" if digits == 6 else f"({digits})"), False
    return "text_of", False


def _decimal(mod: int) -> str:
    if mod < 0:
        return "decimal"
    precision, scale = (mod - 4) >> 16 & 0xFFFF, (mod - 4) & 0x7FF
    scale = scale - 2048 if scale >= 1024 else scale
    return f"decimal({max(precision - min(scale, 0), scale)},{max(scale, 0)})"
