"""One random world: made, migrated and compared with ClickHouse's own catalogue and with rows computed here."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from clickhouse_connect.driver.exceptions import DatabaseError

from console.errors import DataError
from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Migration,
    Operation,
    ReplaceColumn,
    SwapColumns,
    default_phase,
)
from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.test_dependents import Base
from tests.propagation.worlds.draw import World, drawn

WIDE: Final = 3_000_000_000
OLD: Final[dict[str, Any]] = {"id": 1, "n": 5, "m": 50, "s": "one", "d": "2020-01-02 03:04:05"}
NEW: Final[dict[str, Any]] = {"id": 2, "n": 6, "m": 60, "s": "two", "d": "2021-01-02 03:04:05"}
NO_WORLD: Final = "ClickHouse does not make it"


def judged(server: ClickHouse, seed: int) -> str | None:
    """Why a seed's migration was refused, or None where it was carried over whole; raises AssertionError for anything else."""
    world = drawn(seed)
    base = Base(server, f"w{seed}")
    try:
        return lived(base, world)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {world.operation}\n" + "\n".join(world.made)) from error
    finally:
        with suppress(
            DatabaseError
        ):  # ClickHouse fails now and then to move a view's file away; no other world sees it
            base.do(f"DROP DATABASE {base.name} SYNC")
        base.close()


def lived(base: Base, world: World) -> str | None:
    """Carry a world's migration over; the reason why it was refused, or None where all of it holds."""
    try:
        base.do(*(statement.replace("{db}", base.name) for statement in world.made))
    except DatabaseError:
        return NO_WORLD
    _write(base, OLD)
    before = base.made()
    refusal = _refusal(base, world.operation)
    if refusal is not None:
        assert base.made() == before, "a refusal changed something"
        assert refusal.hint
        return str(refusal)
    old, new = _rows(world.operation)
    _write(base, new)
    expected = [old, new]
    _compare(base, "src", "", expected)
    shown = {name: made for name, made in base.made() if "VIEW" in made}
    if "mv" in shown:
        arrived = _passed(expected, shown["mv"])
        _compare(base, "target", shown["mv"], arrived)
        if "lower_mv" in shown:
            _compare(base, "lower", shown["lower_mv"], _passed(arrived, shown["lower_mv"]))
    for name, made in base.made():
        assert not name.endswith("__next"), name
        if made.startswith("CREATE VIEW"):
            base.ask(f"SELECT * FROM db.{name}")
            _faithful(base, name, made)
    if any(name == "buffer" for name, _ in base.made()):
        third = {**new, "id": 3}
        _write(base, third, "buffer")
        base.do("OPTIMIZE TABLE db.buffer")
        _compare(base, "src", "", [*expected, third])
    return None


def _refusal(base: Base, operation: Operation) -> DataError | None:
    try:
        list(_statements(base, operation))
    except DataError as error:
        return error
    return None


def _statements(base: Base, operation: Operation) -> Iterator[str]:
    """Everything is judged before the first statement, as `apply` does; from then on nothing may be refused."""
    staged = operation.staged if isinstance(operation, ReplaceColumn) else None
    left = [*([staged] if staged is not None else []), operation]
    if staged is not None:
        # what would be refused afterwards is refused now
        table = base.store.describe(["src"])["src"]
        base.left(staged)
        migration = Migration(default_phase(operation), "public", "src", operation)
        CLICKHOUSE.translate(migration, CLICKHOUSE.after(Migration("pre", "public", "src", staged), table, "m0"), "m1")
    for one in left:
        first = base.left(one)
        for _ in range(60):
            if not first:
                break
            try:
                base.do(first[0])
                yield first[0]
                first = base.left(one)
            except Exception as error:
                raise AssertionError(f"begun, and then: {error}") from error
        assert not first, "it never ended"


def _rows(operation: Operation) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row from before and a row from after, as they are to be."""
    old, new = dict(OLD), dict(NEW)
    match operation:
        case AddColumn():
            old["extra"] = None if operation.default is None else operation.default.strip("'")
            new["extra"] = "new"
        case DropColumn(name=name):
            old.pop(name)
            new.pop(name)
        case ChangeColumn(name=name, to=to):
            if to.nullable is True:
                new[name] = None
            elif str(to.data_type) == "string":
                old[name], new[name] = str(old[name]), "text"
            else:
                new[name] = WIDE
        case SwapColumns(columns=pairs):
            moved = dict(pairs)
            old = {moved.get(name, name): value for name, value in old.items()}
            new = {moved.get(name, name): value for name, value in new.items()}
        case ReplaceColumn(name=name, source=None):
            old[name], new[name] = None, "77" if name in "nmd" else 77
        case ReplaceColumn(name=name, source=source):
            assert source is not None
            old[name], new[name] = old.pop(source), new.pop(source)
    return old, new


def _write(base: Base, row: dict[str, Any], table: str = "src") -> None:
    values = ", ".join("NULL" if value is None else repr(value) for value in row.values())
    base.do(f"INSERT INTO db.{table} ({', '.join(row)}) VALUES ({values})")


def _passed(rows: list[dict[str, Any]], view: str) -> list[dict[str, Any]]:
    """The rows that a view hands on: the one from before had passed it before its column could be NULL."""
    column = view.partition(" WHERE ")[2].partition(" IS NOT NULL")[0].strip("(`")
    return [row for at, row in enumerate(rows) if at == 0 or not column or row.get(column, "") is not None]


def _compare(base: Base, table: str, view: str, expected: list[dict[str, Any]]) -> None:
    """What a table holds of the columns that arrive there, by id."""
    there = {
        name
        for (name,) in base.ask(f"SELECT name FROM system.columns WHERE database = '{base.name}' AND table = '{table}'")
    }
    if view:
        outputs = view.partition(" AS SELECT ")[2].partition(" FROM ")[0].split(", ")
        there &= {output.rpartition(" AS ")[2].strip("`") for output in outputs}
    names = [name for name in expected[0] if name in there]
    if not view:
        assert set(names) == set(expected[0]), f"{table} lacks {set(expected[0]) - there}"
    shown = ", ".join(f"toString({name})" for name in names)
    rows = base.ask(f"SELECT {shown} FROM db.{table} ORDER BY id")
    wanted = [tuple(None if row[name] is None else str(row[name]) for name in names) for row in expected]
    assert [tuple(row) for row in rows] == wanted, f"{table}: {names}"


def _faithful(base: Base, name: str, made: str) -> None:
    """A view shows what its query gives, not what its columns were when it was made; which it has is ClickHouse's to keep."""
    query = made.partition(" AS ")[2]
    columns = base.ask(
        f"SELECT name FROM system.columns WHERE database = '{base.name}' AND table = '{name}' ORDER BY position"
    )
    shown = ", ".join(f"`{column}`" for (column,) in columns)
    wanted = sorted(map(repr, base.ask(f"SELECT {shown} FROM ({query})")))
    assert sorted(map(repr, base.ask(f"SELECT * FROM db.{name}"))) == wanted, name
