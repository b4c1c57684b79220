"""DDL as a running PostgreSQL executes it: an event trigger of ours keeps how each altered table looks afterwards.

Columns are told apart by PostgreSQL's own numbers, so that a renamed one is never taken for one dropped and one added.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from console.errors import RegionError
from console.stores.source.postgres import COLUMN, Postgres, definition, quoted, told

SCHEMA: Final = "console_ddl"
_STATE: Final = f"""
SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.num), '[]'::jsonb) FROM (
    SELECT {COLUMN}
      FROM pg_catalog.pg_attribute a
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped
) c
"""
_INSTALL: Final = f"""
CREATE SCHEMA {SCHEMA};
CREATE TABLE {SCHEMA}.log (
    id bigserial PRIMARY KEY, xid bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    tag text NOT NULL, object text NOT NULL, rel bigint, schema text, name text, columns jsonb
);
CREATE TABLE {SCHEMA}.known (rel bigint PRIMARY KEY, columns jsonb NOT NULL);
CREATE FUNCTION {SCHEMA}.state(rel oid) RETURNS jsonb LANGUAGE sql STABLE SET search_path = ''
    SET datestyle = 'ISO, YMD' SET timezone = 'UTC' SET intervalstyle = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 AS $state${_STATE}$state$;
CREATE FUNCTION {SCHEMA}.record() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $record$
DECLARE command record;
BEGIN
    FOR command IN SELECT DISTINCT ON (c.objid, c.command_tag) c.* FROM pg_catalog.pg_event_trigger_ddl_commands() c LOOP
        CONTINUE WHEN command.schema_name = '{SCHEMA}' OR command.schema_name LIKE 'pg\\_temp%';
        INSERT INTO {SCHEMA}.log (xid, tag, object, rel, schema, name, columns)
        SELECT pg_catalog.txid_current(), command.command_tag, coalesce(command.object_identity, ''), t.oid,
               command.schema_name, t.relname, CASE WHEN t.oid IS NOT NULL THEN {SCHEMA}.state(t.oid) END
          FROM (VALUES (1)) one
          LEFT JOIN pg_catalog.pg_class t ON t.oid = command.objid AND t.relkind IN ('r', 'p')
                AND command.classid = 'pg_catalog.pg_class'::pg_catalog.regclass;
        -- what a table is altered by reaches those that inherit from it, of which the trigger is told nothing
        INSERT INTO {SCHEMA}.log (xid, tag, object, rel, schema, name, columns)
        WITH RECURSIVE below (rel) AS (
            SELECT i.inhrelid FROM pg_catalog.pg_inherits i
             WHERE i.inhparent = command.objid AND command.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
             UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below b ON i.inhparent = b.rel
        )
        SELECT pg_catalog.txid_current(), command.command_tag, pg_catalog.format('%I.%I', n.nspname, t.relname), t.oid,
               n.nspname, t.relname, {SCHEMA}.state(t.oid)
          FROM below b
          JOIN pg_catalog.pg_class t ON t.oid = b.rel AND t.relkind IN ('r', 'p') AND NOT t.relispartition
          JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace;
    END LOOP;
    -- what these reach is told to nobody: columns that go with their type, attributes of typed tables
    IF tg_tag LIKE 'DROP %' OR tg_tag IN ('ALTER TYPE', 'ALTER DOMAIN') THEN
        INSERT INTO {SCHEMA}.log (xid, tag, object, rel, schema, name, columns)
        SELECT pg_catalog.txid_current(), tg_tag, pg_catalog.format('%I.%I', n.nspname, t.relname), t.oid, n.nspname,
               t.relname, now.columns
          FROM {SCHEMA}.known k
          JOIN pg_catalog.pg_class t ON t.oid = k.rel AND NOT t.relispartition
          JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
          CROSS JOIN LATERAL (SELECT {SCHEMA}.state(t.oid) AS columns) now
         WHERE now.columns IS DISTINCT FROM coalesce(
               (SELECT l.columns FROM {SCHEMA}.log l WHERE l.rel = k.rel ORDER BY l.id DESC LIMIT 1), k.columns);
    END IF;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'console could not record a command: %', SQLERRM;
END
$record$;
INSERT INTO {SCHEMA}.known (rel, columns)
SELECT c.oid, {SCHEMA}.state(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', '{SCHEMA}');
CREATE EVENT TRIGGER {SCHEMA}_record ON ddl_command_end EXECUTE FUNCTION {SCHEMA}.record();
"""
_REMOVE: Final = f"DROP EVENT TRIGGER IF EXISTS {SCHEMA}_record; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"


@dataclass(frozen=True, slots=True)
class Told:
    """One transaction's DDL.

    xid     PostgreSQL's number of it;  at  seconds since 1970, UTC
    before  CREATE statements of the types there are, and of the altered tables as they were
    script  statements that lead from there to what the transaction left, in a transaction of their own
    others  (command, object) of what altered no table that was known before
    """

    xid: int
    at: float
    before: str
    script: str
    others: tuple[tuple[str, str], ...]


class Watch:
    """The recorder in one database: there from `install` to `remove`, also while nobody looks."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def install(self) -> bool:
        """False where it already is: what it recorded since is still to be taken."""
        with self._postgres.session() as connection, self._as_superuser():
            if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone() is not None:
                return False
            with connection.transaction():
                connection.execute(_INSTALL)
            return True

    def remove(self) -> None:
        with self._postgres.session() as connection, self._as_superuser(), connection.transaction():
            connection.execute(_REMOVE)

    @contextmanager
    def _as_superuser(self) -> Iterator[None]:
        """raises  RegionError that says who may do it"""
        from psycopg.errors import InsufficientPrivilege

        try:
            yield
        except InsufficientPrivilege as error:
            raise RegionError(
                f"{self._postgres.name}: the recorder is an event trigger, which only a superuser may make or remove:"
                f" {' '.join(str(error).split())}",
                hint="give --dsn the address of a superuser, or observe the SQL: console schema observe FILE.sql",
            ) from None

    def take(self) -> tuple[Told, ...]:
        """What has been committed and not settled, transaction by transaction."""
        with self._postgres.session() as connection, connection.transaction():
            rows = connection.execute(
                f"SELECT id, xid, extract(epoch FROM at)::float8 AS at, tag, object, rel, schema, name, columns"
                f" FROM {SCHEMA}.log ORDER BY id"
            ).fetchall()
            known = {r["rel"]: r["columns"] for r in connection.execute(f"SELECT * FROM {SCHEMA}.known").fetchall()}
            types = self._postgres.types(connection)
        found = []
        for xid in dict.fromkeys(row["xid"] for row in rows):
            mine = [row for row in rows if row["xid"] == xid]
            found.append(_told(xid, mine, known, types))
            known |= {row["rel"]: row["columns"] for row in mine if row["rel"] is not None}
        return tuple(found)

    def settle(self, told: Told) -> None:
        """It is written down elsewhere: forget it, and know the tables as it left them."""
        with self._postgres.session() as connection, connection.transaction():
            rows = connection.execute(
                f"DELETE FROM {SCHEMA}.log WHERE xid = %s RETURNING id, rel, columns", (told.xid,)
            ).fetchall()
            for row in sorted(rows, key=lambda row: row["id"]):
                if row["rel"] is not None:
                    connection.execute(
                        f"INSERT INTO {SCHEMA}.known (rel, columns) VALUES (%s, %s)"
                        " ON CONFLICT (rel) DO UPDATE SET columns = excluded.columns",
                        (row["rel"], json.dumps(row["columns"])),
                    )


def _told(
    xid: int, rows: Sequence[Mapping[str, Any]], known: Mapping[int, Any], types: Sequence[Mapping[str, Any]]
) -> Told:
    last = {row["rel"]: row for row in rows if row["rel"] is not None}
    before: list[dict[str, Any]] = []
    script = []
    came: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in rows:
        for column in (row["columns"] or ()) if row["rel"] is not None else ():
            came.setdefault((row["rel"], column["num"]), column)
    for rel, row in last.items():
        if rel in known:
            name = {"rel": rel, "schema": row["schema"], "table": row["name"]}
            before += [{**column, **name} for column in known[rel]]
            after = [{**column, "expression": _older(came[rel, column["num"]], column)} for column in row["columns"]]
            new = {column["num"] for column in after} - {column["num"] for column in known[rel]}
            now = [one if one["num"] in new else column for one, column in zip(after, row["columns"], strict=True)]
            script += altered(f"{quoted(row['schema'])}.{quoted(row['name'])}", known[rel], now)
    others = [(row["tag"], row["object"]) for row in rows if row["rel"] not in known]
    whole = "\n".join(["BEGIN;", *script, "COMMIT;"]) if script else ""
    return Told(xid, max(row["at"] for row in rows), told(types, before, ()), whole, tuple(dict.fromkeys(others)))


def _older(first: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    """The default of a column that came: what PostgreSQL has recorded for the rows from before, whatever came later.

    first  the column as it came;  last  as the transaction left it
    """
    recorded = last if last.get("missing") is not None else first
    if recorded.get("missing") is not None:
        value = recorded["missing"].replace("'", "''")
        return f"'{value}'::{recorded['type']}"
    expression: str | None = first["expression"]
    return expression


def altered(table: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """The statements between two states of a table: what goes, new names, what changes, what comes."""
    old, new = ({column["num"]: column for column in columns} for columns in (before, after))
    words = [f"DROP COLUMN {quoted(old[num]['name'])}" for num in old if num not in new]
    renamed = [num for num in old if num in new and old[num]["name"] != new[num]["name"]]
    words += [f"RENAME COLUMN {quoted(old[num]['name'])} TO {quoted(_aside(num))}" for num in renamed]
    words += [f"RENAME COLUMN {quoted(_aside(num))} TO {quoted(new[num]['name'])}" for num in renamed]
    for num, column in new.items():
        if num in old:
            words += [f"ALTER COLUMN {quoted(column['name'])} {change}" for change in _changes(old[num], column)]
        else:
            words.append(f"ADD COLUMN {definition(column)}")
    return [f"ALTER TABLE {table} {word};" for word in words]


def _aside(num: int) -> str:
    return f"console renames {num}"


def _changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    found = []
    if was["type"] != now["type"]:
        found.append(f"TYPE {now['type']}")
    if was["expression"] != now["expression"]:
        found.append("DROP DEFAULT" if now["expression"] is None else f"SET DEFAULT {now['expression']}")
    if was["required"] != now["required"]:
        found.append("SET NOT NULL" if now["required"] else "DROP NOT NULL")
    return found
