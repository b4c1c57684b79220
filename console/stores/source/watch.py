"""DDL as a running PostgreSQL executes it: console's event trigger records the state of each altered table after the command.

Columns are identified by PostgreSQL's own numbers, so a renaming is never mistaken for a drop and an addition.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from console.errors import RegionError
from console.stores.source.postgres import COLUMN, Postgres, create_statements, definition, quoted

SCHEMA: Final = "console_ddl"
_STATE: Final = f"""
SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.num), '[]'::jsonb) FROM (
    SELECT {COLUMN}
      FROM pg_catalog.pg_attribute a
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped
) c
"""
_TABLES: Final = f"""
CREATE SCHEMA {SCHEMA};
CREATE TABLE {SCHEMA}.log (
    id bigserial PRIMARY KEY, xid bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    tag text NOT NULL, object text NOT NULL, rel bigint, schema text, name text, columns jsonb
);
CREATE TABLE {SCHEMA}.known (rel bigint PRIMARY KEY, columns jsonb NOT NULL);
"""
# also run over the trigger of an older release
_FUNCTIONS: Final = f"""
ALTER TABLE {SCHEMA}.known ADD COLUMN IF NOT EXISTS schema text, ADD COLUMN IF NOT EXISTS name text;
CREATE OR REPLACE FUNCTION {SCHEMA}.state(rel oid) RETURNS jsonb LANGUAGE sql STABLE SET search_path = ''
    SET datestyle = 'ISO, YMD' SET timezone = 'UTC' SET intervalstyle = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 AS $state${_STATE}$state$;
CREATE OR REPLACE FUNCTION {SCHEMA}.record() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $record$
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
        -- an ALTER TABLE also reaches the tables that inherit from it, which the trigger is not called for
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
    -- no trigger reports what these reach: columns dropped with their type, attributes of typed tables
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
        INSERT INTO {SCHEMA}.log (xid, tag, object, rel, schema, name)
        SELECT pg_catalog.txid_current(), tg_tag, pg_catalog.format('%I.%I', k.schema, k.name), k.rel, k.schema, k.name
          FROM {SCHEMA}.known k
         WHERE k.name IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_class t WHERE t.oid = k.rel)
           AND NOT EXISTS (SELECT FROM {SCHEMA}.log l WHERE l.rel = k.rel AND l.columns IS NULL);
    END IF;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'console could not record a command: %', SQLERRM;
END
$record$;
"""
_INSTALL: Final = f"""
{_TABLES}{_FUNCTIONS}
INSERT INTO {SCHEMA}.known (rel, columns, schema, name)
SELECT c.oid, {SCHEMA}.state(c.oid), n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', '{SCHEMA}');
CREATE EVENT TRIGGER {SCHEMA}_record ON ddl_command_end EXECUTE FUNCTION {SCHEMA}.record();
"""
_REMOVE: Final = f"DROP EVENT TRIGGER IF EXISTS {SCHEMA}_record; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDdl:
    """One transaction's DDL.

    xid     its number in PostgreSQL;  at  seconds since 1970, UTC
    before  CREATE statements of the existing types, and of the altered tables before the transaction
    script  statements from there to the tables after the transaction, in a transaction of their own
    others  (command, object) of commands that altered no known table
    """

    xid: int
    at: float
    before: str
    script: str
    others: tuple[tuple[str, str], ...]


class Watch:
    """The recorder in one database; it runs from `install` to `remove`, whether or not a console is attached."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def install(self) -> bool:
        """False if it is installed already: its records are still to be taken."""
        with self._postgres.session() as connection, self._as_superuser():
            if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone() is not None:
                named = "SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'name'"
                if connection.execute(named, (f"{SCHEMA}.known",)).fetchone() is None:
                    with connection.transaction():
                        connection.execute(_FUNCTIONS)
                return False
            with connection.transaction():
                connection.execute(_INSTALL)
            return True

    def remove(self) -> None:
        with self._postgres.session() as connection, self._as_superuser(), connection.transaction():
            connection.execute(_REMOVE)

    @contextmanager
    def _as_superuser(self) -> Iterator[None]:
        """raises  RegionError naming the privilege that is missing"""
        from psycopg.errors import InsufficientPrivilege

        try:
            yield
        except InsufficientPrivilege as error:
            raise RegionError(
                f"{self._postgres.name}: the recorder is an event trigger, which only a superuser may create or remove:"
                f" {' '.join(str(error).split())}",
                hint="give --dsn the address of a superuser, or observe the SQL: console schema observe FILE.sql",
            ) from None

    def take(self) -> tuple[RecordedDdl, ...]:
        """The committed transactions that are not settled yet."""
        with self._postgres.session() as connection, connection.transaction():
            rows = connection.execute(
                f"SELECT id, xid, extract(epoch FROM at)::float8 AS at, tag, object, rel, schema, name, columns"
                f" FROM {SCHEMA}.log ORDER BY id"
            ).fetchall()
            known = {
                row["rel"]: WatchedTable(row["columns"], row.get("schema"), row.get("name"))
                for row in connection.execute(f"SELECT * FROM {SCHEMA}.known").fetchall()
            }
            types = self._postgres.types(connection)
        recorded = []
        for xid in dict.fromkeys(row["xid"] for row in rows):
            mine = [row for row in rows if row["xid"] == xid]
            recorded.append(_recorded(xid, mine, known, types))
            known |= {
                row["rel"]: WatchedTable(row["columns"] or [], row["schema"], row["name"]) for row in mine if row["rel"]
            }
        return tuple(recorded)

    def settle(self, recorded: RecordedDdl) -> None:
        """Drop a transaction that has been stored elsewhere, and keep the tables in their state after it."""
        with self._postgres.session() as connection, connection.transaction():
            rows = connection.execute(
                f"DELETE FROM {SCHEMA}.log WHERE xid = %s RETURNING id, rel, columns, schema, name", (recorded.xid,)
            ).fetchall()
            for row in sorted(rows, key=lambda row: row["id"]):
                if row["rel"] is not None and row["columns"] is None:
                    connection.execute(f"DELETE FROM {SCHEMA}.known WHERE rel = %s", (row["rel"],))
                elif row["rel"] is not None:
                    connection.execute(
                        f"INSERT INTO {SCHEMA}.known (rel, columns, schema, name) VALUES (%s, %s, %s, %s) ON CONFLICT (rel)"
                        " DO UPDATE SET columns = excluded.columns, schema = excluded.schema, name = excluded.name",
                        (row["rel"], json.dumps(row["columns"]), row["schema"], row["name"]),
                    )


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table before the recorded transactions. schema, name: None if an older release recorded it without them"""

    columns: Sequence[Mapping[str, Any]]
    schema: str | None
    name: str | None


def _recorded(
    xid: int, rows: Sequence[Mapping[str, Any]], known: Mapping[int, WatchedTable], types: Sequence[Mapping[str, Any]]
) -> RecordedDdl:
    last = {row["rel"]: row for row in rows if row["rel"] is not None}
    added: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in rows:
        for column in (row["columns"] or ()) if row["rel"] is not None else ():
            added.setdefault((row["rel"], column["num"]), column)
    before: list[dict[str, Any]] = []
    script = list(_renamed(last, known))
    for rel, row in last.items():
        if rel in known:
            name = {"rel": rel, "schema": known[rel].schema or row["schema"], "table": known[rel].name or row["name"]}
            before += [{**column, **name} for column in known[rel].columns]
        if rel in known and row["columns"] is not None:
            there = {column["num"] for column in known[rel].columns}
            now = [
                one if one["num"] in there else {**one, "expression": _older(added[rel, one["num"]], one)}
                for one in row["columns"]
            ]
            script += altered(f"{quoted(row['schema'])}.{quoted(row['name'])}", known[rel].columns, now)
    others = [(row["tag"], row["object"]) for row in rows if row["rel"] not in known or row["columns"] is None]
    whole = "\n".join(["BEGIN;", *script, "COMMIT;"]) if script else ""
    return RecordedDdl(
        xid=xid,
        at=max(row["at"] for row in rows),
        before=create_statements(types, before, ()),
        script=whole,
        others=tuple(dict.fromkeys(others)),
    )


def _renamed(last: Mapping[int, Mapping[str, Any]], known: Mapping[int, WatchedTable]) -> Iterator[str]:
    """Tables that lose their names, and those that take them: for the stores a name stays one table."""
    names = {rel: (table.schema, table.name) for rel, table in known.items() if rel in last and table.name is not None}
    freed = set(names.values())
    for rel in [rel for rel in names if last[rel]["columns"] is None]:
        yield f"DROP TABLE {_full(names.pop(rel))};"
    to = {rel: (last[rel]["schema"], last[rel]["name"]) for rel in names}
    moving = {rel for rel in names if names[rel] != to[rel]}
    while moving:
        free = (rel for rel in moving if to[rel] not in names.values())
        rel = next(free, min(moving))
        target = to[rel] if to[rel] not in names.values() else (names[rel][0], _interim_name(rel))
        if target[0] != names[rel][0]:
            temporary = (names[rel][0], _interim_name(rel))
            yield f"ALTER TABLE {_full(names[rel])} RENAME TO {quoted(temporary[1])};"
            yield f"ALTER TABLE {_full(temporary)} SET SCHEMA {quoted(str(target[0]))};"
            names[rel] = (target[0], temporary[1])
        if target != names[rel]:
            yield f"ALTER TABLE {_full(names[rel])} RENAME TO {quoted(str(target[1]))};"
        names[rel] = target
        moving -= {rel} if target == to[rel] else set()
    made = [rel for rel, row in last.items() if rel not in known and row["columns"] is not None]
    for rel in made:
        row = last[rel]
        if (row["schema"], row["name"]) in freed:
            name = {"rel": rel, "schema": row["schema"], "table": row["name"]}
            yield create_statements((), [{**column, **name} for column in row["columns"]], ())


def _full(name: tuple[str | None, str | None]) -> str:
    return f"{quoted(str(name[0]))}.{quoted(str(name[1]))}"


def _older(first: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    """The default of an added column: the value that PostgreSQL keeps for older rows, regardless of later changes.

    first  the column as it was added;  last  as the transaction left it
    """
    recorded = last if last.get("missing") is not None else first
    if recorded.get("missing") is not None:
        value = recorded["missing"].replace("'", "''")
        return f"'{value}'::{recorded['type']}"
    expression: str | None = first["expression"]
    return expression


def altered(table: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """The statements between two states of a table: drops, renamings, changes, additions."""
    old, new = ({column["num"]: column for column in columns} for columns in (before, after))
    words = [f"DROP COLUMN {quoted(old[num]['name'])}" for num in old if num not in new]
    renamed = [num for num in old if num in new and old[num]["name"] != new[num]["name"]]
    words += [f"RENAME COLUMN {quoted(old[num]['name'])} TO {quoted(_interim_name(num))}" for num in renamed]
    words += [f"RENAME COLUMN {quoted(_interim_name(num))} TO {quoted(new[num]['name'])}" for num in renamed]
    for num, column in new.items():
        if num in old:
            words += [f"ALTER COLUMN {quoted(column['name'])} {change}" for change in _changes(old[num], column)]
        else:
            words.append(f"ADD COLUMN {definition(column)}")
    return [f"ALTER TABLE {table} {word};" for word in words]


def _interim_name(num: int) -> str:
    return f"console renames {num}"


def _changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    actions = []
    if was["type"] != now["type"]:
        actions.append(f"TYPE {now['type']}")
    if was["expression"] != now["expression"]:
        actions.append("DROP DEFAULT" if now["expression"] is None else f"SET DEFAULT {now['expression']}")
    if was["required"] != now["required"]:
        actions.append("SET NOT NULL" if now["required"] else "DROP NOT NULL")
    return actions
