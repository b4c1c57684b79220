"""Every kind of store is one dialect in the propagation and one client in `stores`; nothing else lists them."""

from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from console.errors import DataError
from console.model.region import Region
from console.propagation.dialects import DIALECTS
from console.propagation.replication import from_data
from console.propagation.types import SIMPLE, TIMES
from console.stores.files import ReplicationConfig, Site, StoreModule, sites

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
OPTIONS = {
    "clickhouse": {"url": "http://nobody:8123/db"},
    "iceberg": {"catalog": {"uri": "sqlite:///c.db"}},
    "delta": {},
}
REGION = Region(name="eu", warehouse="/warehouse")


def opened(kind: str, options: dict[str, object]) -> tuple[Site, ...]:
    replication = from_data({"tables": {"t": None}, "stores": {"s": {"kind": kind, **options}}})
    return sites(ReplicationConfig("web", replication, {}, "replication.yaml"), [REGION])


@pytest.mark.parametrize("kind", DIALECTS)
def test_every_kind_has_a_client_that_opens_without_being_reached(kind: str) -> None:
    module = import_module(f"console.stores.{kind}")
    wanted = list(signature(StoreModule.open_store).parameters.values())[1:]
    assert len(signature(module.open_store).parameters) == len(wanted)
    [site] = opened(kind, dict(OPTIONS[kind]))
    store = site.open()
    assert (store.name, bool(store.address)) == ("eu/s", True)
    store.close()


def test_every_module_of_the_folder_that_holds_a_dialect_is_a_kind_in_the_order_of_its_position() -> None:
    modules = {path.stem for path in (ROOT / "console/propagation/dialects").glob("*.py")}
    assert set(DIALECTS) == modules - {"__init__", "dialect", "lake"}
    assert [dialect.position for dialect in DIALECTS.values()] == list(range(1, len(DIALECTS) + 1))


@pytest.mark.parametrize("kind", DIALECTS)
def test_every_kind_has_a_word_for_every_generic_type(kind: str) -> None:
    dialect = DIALECTS[kind]
    assert dialect.kind == kind
    generic = {*SIMPLE, *TIMES, "decimal", "decimal(p,s)", "array", "enum", "text_of"}
    assert set(dialect.types.words) == generic
    assert set(dialect.defaults) <= dialect.options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://nobody/db", "alter_sync": 3}, "stores.s.alter_sync: expected 0, 1 or 2"),
        ({"url": "http://nobody/db", "mutations_sync": True}, "stores.s.mutations_sync: expected 0, 1 or 2"),
        ({"root": "/x"}, "stores.s: unknown key 'root'"),
    ],
)
def test_an_option_that_a_kind_does_not_have_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        opened("clickhouse", options)


def test_no_other_room_of_the_propagation_lists_the_kinds() -> None:
    rooms = [ROOT / "console" / room for room in ("propagation", "stores", "cli/commands/schema", "runner")]
    named = {f'"{kind}"' for kind in DIALECTS}
    results = {
        str(path.relative_to(ROOT))
        for room in rooms
        for path in room.rglob("*.py")
        if any(name in path.read_text() for name in named)
    }
    # ClickHouse's own views are read in its own SQL
    assert results == {
        *(f"console/propagation/dialects/{kind}.py" for kind in DIALECTS),
        "console/propagation/clickhouse/views.py",
    }
