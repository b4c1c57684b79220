"""The stages of a plan: each makes a value of its own, and what is cached is decided before anything is compiled."""

from dataclasses import FrozenInstanceError, replace

import pytest

from console.model.pipeline import Pipeline
from console.planning.build import compiled
from console.planning.cache.planner_cache import PlannerCache
from console.planning.cache.queries import QueryMemory
from console.planning.diff import diff
from console.planning.fingerprint import fingerprint
from console.planning.read import ReadPipeline, read
from console.planning.resolve import resolve
from console.planning.routes import route
from console.planning.sql.feed import FeedCode, ResolvedFeed
from tests.planning.world import PARSE, live, pipeline, with_sql


def cached(source: ReadPipeline) -> dict[str, bool]:
    """Query → whether an earlier run compiled it."""
    feeds = {feed.node.name: feed.code is not None for table in source.tables for feed in table.feeds}
    ends = (*source.endpoints, *source.copies, *source.sinks)
    return feeds | {end.node.name: end.code is not None for end in ends}


def warm() -> dict[str, str]:
    memory: dict[str, str] = {}
    compiled(pipeline(), QueryMemory(memory))
    return memory


def test_each_stage_makes_a_frozen_value_of_the_one_before() -> None:
    memory, region, cache = QueryMemory(), live(), PlannerCache()
    source = read(pipeline(), memory)
    resolved = resolve(source, memory)
    wanted = fingerprint(resolved, memory)
    diffs = diff(wanted, region.release, cache)
    verdicts = route(wanted, region, diffs, cache)
    assert [table.table.name for table in source.tables] == ["landing", "requests", "requests_by_hour"]
    assert all(isinstance(one.query, ResolvedFeed) for table in resolved.tables for one in table.feeds)
    assert [*wanted.tables] == [*diffs.tables] == [*verdicts.tables]
    assert {verdict.action for verdict in verdicts.tables.values()} == {"keep"}
    for value in (source, resolved, wanted, diffs, verdicts):
        with pytest.raises(FrozenInstanceError):
            value.tables = ()


@pytest.mark.slow
def test_what_was_compiled_before_is_known_as_soon_as_it_is_read() -> None:
    memory = QueryMemory(warm())
    source = read(pipeline(), memory)
    assert set(cached(source).values()) == {True}
    resolved = resolve(source, memory)
    assert all(isinstance(one.query, FeedCode) for table in resolved.tables for one in table.feeds)
    assert fingerprint(resolved, memory) == compiled(pipeline(), QueryMemory())


def edited(what: str) -> Pipeline:
    if what == "the text of a feed":
        return with_sql(pipeline(), "parse", f"{PARSE} WHERE status > 0")
    if what == "a landing column":
        landing = pipeline().tables[0]
        wider = replace(
            landing, columns=tuple(replace(c, type="timestamp_ntz") if c.name == "ts" else c for c in landing.columns)
        )
        return replace(pipeline(), tables=(wider, *pipeline().tables[1:]))
    ends = tuple(replace(end, sql=f"{end.sql} LIMIT 3") for end in pipeline().endpoints)
    return replace(pipeline(), endpoints=ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "fresh"),
    [
        ("the text of a feed", {"parse", "count_hours"}),
        ("a landing column", {"parse", "count_hours"}),
        ("an endpoint", {"top_errors"}),
    ],
)
def test_an_edit_leaves_cached_what_it_is_not_above(what: str, fresh: set[str]) -> None:
    known = cached(read(edited(what), QueryMemory(warm())))
    assert {name for name, there in known.items() if not there} == fresh


@pytest.mark.slow
def test_a_key_holds_everything_that_its_query_is_made_from() -> None:
    """Whatever is compiled from a memory that another pipeline filled is what is compiled from none."""
    memory = warm()
    for what in ("the text of a feed", "a landing column", "an endpoint"):
        assert compiled(edited(what), QueryMemory(memory)) == compiled(edited(what), QueryMemory())
