"""The columns that a consumer inserts: every list of columns against every state that a store can be in."""

import itertools

import pytest

from console.errors import DataError
from console.propagation.migration import (
    AddColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    ReplaceColumn,
    default_phase,
    swap,
)
from console.propagation.migration_file import written
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.types import parse
from console.stores.consumer import Renaming, crossed, defaults, fit, renamed, renaming_between
from console.stores.protocol import Record, State

SWAP = Renaming("1_swap", (("a", "b"), ("b", "a")))
RENAME = Renaming("2_rename", (("c", "d"),))


def table(*names: str, marks: tuple[str, ...] = ()) -> StoreTable:
    return StoreTable(name="t", columns=tuple(StoreColumn(name=name, type="String") for name in names), marks=marks)


def test_whatever_arrives_is_inserted_or_counted_and_never_both() -> None:
    names = ("id", "a", "b", "c")
    for arriving in (c for size in range(5) for c in itertools.permutations(names, size)):
        for there in (c for size in range(5) for c in itertools.combinations(names, size)):
            result = fit(arriving, table(*there))
            assert [here for here, _ in result.insert] == [name for name in arriving if name in there]
            assert list(result.left_out) == [name for name in arriving if name not in there]
            assert all(here == name for here, name in result.insert)


def test_a_row_lands_under_the_meaning_it_was_written_with_before_and_after_a_swap() -> None:
    # before: the store's `a` holds what is called a; once the swap holds, its `b` does
    for after_in_stream, after_in_store, recorded in itertools.product((False, True), repeat=3):
        if recorded and not after_in_store:
            continue
        target = table("id", "a", "b", marks=("1_swap",) if after_in_store else ())
        names = renamed([(SWAP, recorded)], {"1_swap"} if after_in_stream else set(), target)
        into = dict(fit(("id", "a", "b"), target, names).insert)
        first = "b" if after_in_stream else "a"  # what the column that began as `a` is called in the package
        assert into[first] == ("b" if after_in_store else "a")


def test_a_rename_is_known_by_the_names_that_are_there() -> None:
    assert dict(fit(("c",), table("d"), renamed([(RENAME, False)], set(), table("d"))).insert) == {"c": "d"}
    assert dict(fit(("d",), table("c"), renamed([(RENAME, False)], {"2_rename"}, table("c"))).insert) == {"d": "c"}
    assert dict(fit(("d",), table("d"), renamed([(RENAME, False)], {"2_rename"}, table("d"))).insert) == {"d": "d"}


def test_nothing_is_inserted_while_names_change_hands() -> None:
    moving = StoreTable(
        name="t",
        columns=(StoreColumn(name="b__from_a", type="String"), StoreColumn(name="b", type="String", kind="ALIAS")),
    )
    assert fit(("a", "b"), moving).waits
    assert not fit(("b__from_a",), table("b__from_a", "b")).waits  # only called so


def test_nothing_is_inserted_in_the_middle_of_a_chain_of_names() -> None:
    chain = Renaming("3_chain", (("a", "b"), ("b", "c")))
    waits = {
        names: fit(("a", "b"), table(*names), renamed([(chain, False)], set(), table(*names))).waits
        for names in (("a", "b"), ("a", "c"), ("b", "c"), ("a",), ("b",), ())
    }
    assert [names for names, waiting in waits.items() if waiting] == [("a", "c")]
    assert not fit(("a", "b"), table("a", "c"), renamed([(chain, True)], set(), table("a", "c"))).waits


def test_the_stream_tells_a_swap_by_places() -> None:
    assert renaming_between(("id", "a", "b"), ("id", "b", "a"), [SWAP]) == SWAP
    assert renaming_between(("id", "a", "b"), ("id", "b", "a", "new"), [RENAME, SWAP]) == SWAP
    assert renaming_between(("id", "a", "b"), ("id", "a", "b", "new"), [SWAP]) is None
    assert renaming_between(("id", "c", "e"), ("id", "d", "e"), [RENAME]) == RENAME
    assert renaming_between(("id", "c", "e"), ("id", "e", "d"), [RENAME]) is None  # one dropped, another added


def test_names_that_changed_places_unannounced_go_nowhere() -> None:
    with pytest.raises(DataError, match="changed places"):
        renaming_between(("id", "a", "b"), ("id", "b", "a"), [])


TAKEN = Renaming("4_replace", (("b", "a"),), "a")
FRESH = Renaming("5_replace", (("n__new", "n"),), "n", fresh=True)


def test_a_name_that_another_column_takes_is_followed_in_the_stream_and_in_the_store() -> None:
    before, after = ("id", "a", "b", "n"), ("id", "a", "n")
    assert renaming_between(before, after, [TAKEN]) == TAKEN
    assert renaming_between((), after, [TAKEN]) == TAKEN  # begun after it
    assert renaming_between((), before, [TAKEN]) is None
    assert renaming_between(before, ("id", "b", "n"), [TAKEN]) is None
    for columns, seen in ((before, set[str]()), (after, {"4_replace"})):
        for there, into in ((before, {"b": "b"}), (("id", "a", "n"), {"b": "a"})):
            target = table(*there)
            results = dict(fit(columns, target, renamed([(TAKEN, False)], seen, target)).insert)
            taker = "a" if seen else "b"
            assert results[taker] == into["b"]
            assert ("a" in results) == (bool(seen) or there == before)
            assert len(set(results.values())) == len(results)


def test_a_column_made_anew_is_told_by_its_place_or_its_type() -> None:
    assert renaming_between(("id", "n", "x"), ("id", "x", "n"), [FRESH]) == FRESH
    assert renaming_between(("id", "x", "n"), ("id", "x", "n"), [FRESH], {"n"}) == FRESH
    assert renaming_between(("id", "x", "n"), ("id", "x", "n", "y"), [FRESH]) is None
    assert renaming_between(("id", "n"), ("id", "n"), [FRESH], {"id"}) is None
    staged, done = table("id", "n", "n__new"), table("id", "n", marks=("5_replace",))
    for seen, target, into in (
        (set[str](), staged, {"n": "n"}), ({"5_replace"}, staged, {"n": "n__new"}),
        (set[str](), done, {}), ({"5_replace"}, done, {"n": "n"}),
    ):  # fmt: skip
        results = dict(fit(("id", "n"), target, renamed([(FRESH, False)], seen, target)).insert)
        assert results == {"id": "id", **into}


def test_one_transaction_may_hold_several() -> None:
    known = [SWAP, TAKEN, FRESH]
    assert crossed(("id", "a", "b", "n"), ("id", "a", "n"), [TAKEN, FRESH], {"n"}) == {"4_replace", "5_replace"}
    assert crossed(("id", "n", "a", "b"), ("id", "a", "n"), [TAKEN, FRESH]) == {"4_replace", "5_replace"}
    assert crossed(("id", "a", "b"), ("id", "b", "a"), known) == {"1_swap"}
    assert crossed(("id", "a", "b"), ("id", "a", "b"), known) == set()
    assert crossed((), ("id", "a"), [TAKEN, FRESH]) == {"4_replace"}


def record(number: int, state: State, operation: Operation) -> Record:
    body = written(Migration(default_phase(operation), "public", "t", operation))
    return Record(
        seq=number, migration=f"{number}_m", body=body, place="t", state=state, left=0, at=0.0, by="", host=""
    )


def test_rows_from_before_a_column_are_given_what_postgresql_has_for_them() -> None:
    records = [
        record(1, "applied", AddColumn("kind", parse("string"), nullable=False, default="'issue'")),
        record(2, "applied", AddColumn("at", parse("timestamp"), default="now()")),
        record(3, "announced", ReplaceColumn("n", None, Facets(parse("string"), nullable=True, default="'0'"))),
    ]
    assert defaults(records, "t") == {"kind": "'issue'", "n__new": "'0'"}
    target = table("id", "n", "kind", "n__new")
    assert fit(("id", "n"), target, {}, defaults(records, "t")).missing == (("kind", "'issue'"), ("n__new", "'0'"))
    later = [
        *records,
        record(3, "applied", ReplaceColumn("n", None, Facets(parse("string"), nullable=True, default="'0'"))),
        record(4, "announced", swap({"kind": "sort"})),
    ]
    assert defaults(later, "t") == {"kind": "'issue'", "n": "'0'"}
    later += [record(4, "applied", swap({"kind": "sort"})), record(5, "applied", DropColumn("n"))]
    assert defaults(later, "t") == {"sort": "'issue'"}
    assert defaults(later, "another") == {}
