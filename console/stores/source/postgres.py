"""A running PostgreSQL: its tables, as the statements that would create them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from console.errors import RegionError, Unreachable
from console.stores.protocol import missing_package

CONNECT_SECONDS: Final = 5

# one column of pg_attribute a, its default being pg_attrdef d; spelled so that no search_path changes its meaning
COLUMN: Final = """
       a.attnum AS num, a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
       a.attidentity AS identity, a.attgenerated AS generated,
       a.attnotnull OR EXISTS (
           SELECT FROM pg_catalog.pg_type y WHERE y.oid = a.atttypid AND y.typtype = 'd' AND y.typnotnull
       ) OR EXISTS (
           SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'c' AND k.convalidated
              AND k.conkey = ARRAY[a.attnum]
              AND pg_catalog.pg_get_constraintdef(k.oid) = pg_catalog.format('CHECK ((%I IS NOT NULL))', a.attname)
       ) AS required,
       CASE WHEN a.attgenerated = '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END AS expression,
       CASE WHEN a.atthasmissing THEN (a.attmissingval::text::text[])[1] END AS missing
"""
_COLUMNS: Final = f"""
SELECT a.attrelid::bigint AS rel, n.nspname AS schema, c.relname AS table, {COLUMN.replace("%", "%%")}
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%%'
   AND (%(tables)s::text[] IS NULL OR n.nspname || '.' || c.relname = ANY(%(tables)s::text[]))
 ORDER BY n.nspname, c.relname, a.attnum
"""
_KEYS: Final = """
SELECT i.indrelid::bigint AS rel, a.attname AS name
  FROM pg_index i
  JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(num, place) ON k.place <= i.indnkeyatts
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
 WHERE i.indisprimary
 ORDER BY i.indrelid, k.place
"""
_TYPES: Final = """
SELECT n.nspname AS schema, t.typname AS name, t.typtype AS kind, t.typnotnull AS required,
       CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END AS base,
       ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) AS labels
  FROM pg_type t
  JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE t.typtype IN ('e', 'd') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
 ORDER BY t.oid
"""


class Postgres:
    """One database. `dsn` as libpq takes it: a URL or key=value words."""

    def __init__(self, name: str, dsn: str) -> None:
        self.name = name
        self._dsn = dsn

    def statements(self, tables: Collection[str] | None = None) -> str:
        """CREATE statements of types and tables, as in a schema dump.

        tables  `schema.name`, or None for every table
        """
        with self.session() as connection:
            types = self.types(connection)
            wanted = {"tables": None if tables is None else sorted(tables)}
            columns, keys = self._rows(connection, _COLUMNS, wanted), self._rows(connection, _KEYS)
        return create_statements(types, columns, keys)

    def existing(self) -> frozenset[str]:
        """The names of all tables, `schema.name`."""
        with self.session() as connection:
            rows = self._rows(connection, _COLUMNS, {"tables": None})
        return frozenset(f"{row['schema']}.{row['table']}" for row in rows)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A connection that commits each statement.

        raises  Unreachable if there is no server; RegionError for refusals
        """
        try:
            import psycopg
            from psycopg.rows import dict_row
        except ImportError:
            raise missing_package("psycopg", self.name) from None
        try:
            with psycopg.connect(
                self._dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, row_factory=dict_row
            ) as connection:
                yield connection
        except psycopg.OperationalError as error:
            raise Unreachable(
                f"{self.name}: no answer from PostgreSQL: {_line(error)}",
                hint="check that it runs and that the address is right",
            ) from None
        except psycopg.Error as error:
            raise RegionError(f"{self.name}: PostgreSQL refused: {_line(error)}") from None

    def types(self, connection: Any) -> list[dict[str, Any]]:
        """Enums and domains; the connection qualifies every name from here on."""
        connection.execute("SET search_path = ''")
        return self._rows(connection, _TYPES)

    @staticmethod
    def _rows(connection: Any, sql: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = connection.execute(sql, values).fetchall()
        return rows


def create_statements(
    types: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]], keys: Sequence[Mapping[str, Any]]
) -> str:
    """Rows of the catalogs as CREATE statements: types first, then tables in their order."""
    statements = [_type(row) for row in types]
    tables: dict[tuple[str, str], list[str]] = {}
    rels: dict[tuple[str, str], int] = {}
    for row in columns:
        name = (row["schema"], row["table"])
        tables.setdefault(name, []).append(definition(row))
        rels[name] = row["rel"]
    primary: dict[int, list[str]] = {}
    for row in keys:
        primary.setdefault(row["rel"], []).append(quoted(row["name"]))
    for name, lines in tables.items():
        if key := primary.get(rels[name]):
            lines.append(f"PRIMARY KEY ({', '.join(key)})")
        statements.append(f"CREATE TABLE {quoted(name[0])}.{quoted(name[1])} (\n    " + ",\n    ".join(lines) + "\n);")
    return "\n".join(statements)


def definition(row: Mapping[str, Any]) -> str:
    """One column as CREATE TABLE has it."""
    words = [quoted(row["name"]), row["type"]]
    if row["identity"]:
        words.append("GENERATED BY DEFAULT AS IDENTITY")
    elif row["generated"]:
        words.append("GENERATED ALWAYS AS (NULL) STORED")
    elif row["expression"] is not None:
        words.append(f"DEFAULT {row['expression']}")
    return " ".join([*words, *(["NOT NULL"] if row["required"] else [])])


def _type(row: Mapping[str, Any]) -> str:
    name = f"{quoted(row['schema'])}.{quoted(row['name'])}"
    if row["kind"] == "d":
        return f"CREATE DOMAIN {name} AS {row['base']}{' NOT NULL' if row['required'] else ''};"
    labels = ", ".join("'" + label.replace("'", "''") + "'" for label in row["labels"])
    return f"CREATE TYPE {name} AS ENUM ({labels});"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(error: BaseException) -> str:
    import re

    text = " ".join(str(error).split())
    return re.sub(r"//[^/@\s]*@", "//", re.sub(r"password=\S+", "password=***", text))[:400]
