"""The order of a plan's steps: the newest days of every table first."""

from console.model.rehearsal import turns
from console.model.step import Backfill, CatchUp, CreateTable, Promote, Step, Validate


def backfill(target: str, feed: str = "feed", *, linked: bool = False) -> Backfill:
    return Backfill(materialization=feed, source="t", target=target, route="replay", sql="", time="ts", rows=1, bytes=1, days=1, batches=1, linked=linked)  # fmt: skip


def order(*steps: Step) -> list[str]:
    return [f"{'first batch of ' if turn.rehearsal else ''}{turn.step.id}" for turn in turns(steps)]


def test_the_first_batch_of_each_table_comes_before_the_second_of_any() -> None:
    a, b, catch_up = backfill("a"), backfill("b"), CatchUp("feed", "t", "a", "fence")
    assert order(CreateTable("a"), CreateTable("b"), a, b, catch_up, Validate(()), Promote()) == [
        "create/a", "create/b", "first batch of backfill/a/feed", "first batch of backfill/b/feed",
        "backfill/a/feed", "backfill/b/feed", "catch-up/a/feed", "validate", "promote",
    ]  # fmt: skip


def test_a_single_table_and_several_feeds_into_one_need_no_rehearsal() -> None:
    assert order(backfill("a")) == ["backfill/a/feed"]
    assert order(backfill("a", "one"), backfill("a", "two")) == ["backfill/a/one", "backfill/a/two"]


def test_of_several_feeds_into_one_table_the_first_is_rehearsed_and_files_that_are_linked_never() -> None:
    steps = (backfill("a", "one"), backfill("a", "two"), backfill("b"), backfill("c", linked=True))
    assert order(*steps)[:2] == ["first batch of backfill/a/one", "first batch of backfill/b/feed"]
    assert order(*steps)[2:] == [step.id for step in steps]


def test_a_table_that_joins_a_rebuilt_one_is_not_rehearsed_before_that_one_has_caught_up() -> None:
    steps = (backfill("a"), CatchUp("feed", "t", "a", "fence"), backfill("joins_a"))
    assert order(*steps) == [step.id for step in steps]
