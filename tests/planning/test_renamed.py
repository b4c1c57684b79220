"""Columns that a table shows under another name than it stores: what is done by the stored name goes on after a rename."""

import re
from dataclasses import replace
from datetime import date

import pytest

from console.agent.maintenance.retention import cutoff
from console.agent.recount.live import PinnedFeed, target_shape
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.model.codec import decode, encode
from console.model.live import Live, Release
from console.model.pipeline import Pipeline
from console.model.schema import Column
from tests.planning.world import actions, live, pipeline, planned, promoted, with_sql, with_table

PARSE = next(m.sql for m in pipeline().materializations if m.name == "parse")
COUNT = next(m.sql for m in pipeline().materializations if m.name == "count_hours")


def with_names(names: dict[str, str], *, time: str = "ts", days: int = 7) -> Pipeline:
    """`requests` with other names of its columns, everywhere. names: old → new"""
    table = pipeline().table("requests")
    assert table is not None
    columns = tuple(replace(column, name=names.get(column.name, column.name)) for column in table.columns)
    made = with_table(pipeline(), replace(table, columns=columns, time=time, retention_days=days))
    parse, count = PARSE, COUNT
    for old, new in names.items():
        parse = re.sub(rf"AS {old}\b", f"AS {new}", parse).replace(f" {old}, ", f" {old} AS {new}, ")
        count = re.sub(rf"\b{old}\b", new, count)
    return with_sql(with_sql(made, "parse", parse), "count_hours", count)


def test_rows_expire_by_the_stored_time_column_after_it_was_renamed() -> None:
    before = planned(with_names({})).release.table("requests")
    done = planned(with_names({"ts": "at"}, time="at"))
    state = done.release.table("requests")
    assert before is not None
    assert state is not None
    assert actions(done) == {"requests": "metadata"}
    assert (state.table.time, state.stored_time, state.renamed) == ("at", "ts", {"at": "ts"})
    today = date(2026, 11, 14)
    assert cutoff(state, today) == cutoff(before, today) == date(2026, 11, 7)


def test_what_the_region_stores_of_it_is_read_back_and_passed_over_by_older_readers() -> None:
    release = planned(with_names({"ts": "at"}, time="at")).release
    assert decode(Release, encode(release)) == release


def without_names(region: Live) -> Live:
    """As a console released it that did not record stored names."""
    assert region.release is not None
    tables = tuple(replace(state, renamed={}) for state in region.release.tables)
    return replace(region, release=replace(region.release, tables=tables))


def test_the_next_release_of_a_table_that_was_renamed_by_an_older_console_records_it() -> None:
    wanted = with_names({"ts": "at"}, time="at")
    old = without_names(promoted(planned(wanted), live()))
    hours = wanted.table("requests_by_hour")
    assert hours is not None
    done = planned(with_table(wanted, replace(hours, description="for the dashboard")), old)
    assert "requests" not in actions(done)
    state = done.release.table("requests")
    assert state is not None
    assert state.stored_time == "ts"


def test_every_renamed_column_is_known_by_the_stored_one_and_others_by_their_own_names() -> None:
    done = planned(with_names({"bytes": "size", "host": "server"}))
    state = done.release.table("requests")
    assert state is not None
    assert (actions(done)["requests"], state.renamed) == ("metadata", {"size": "bytes", "server": "host"})
    assert (state.stored_in("server"), state.stored_in("ms")) == (("host",), ("ms",))


def stamped(name: str) -> Pipeline:
    """`requests` with a column that is another one at each computation, under this name; "" without it."""
    table, made = pipeline().table("requests"), pipeline()
    assert table is not None
    columns = (*table.columns, *((Column(name=name, type="timestamp"),) if name else ()))
    parse = PARSE.replace("\nFROM", f",\n  now() AS {name}\nFROM") if name else PARSE
    return with_sql(with_table(made, replace(table, columns=columns)), "parse", parse)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["read_at", ""])
def test_what_the_clock_stamped_is_never_compared_though_it_is_renamed_or_shown_no_more(name: str) -> None:
    done = planned(stamped(name), promoted(planned(stamped("loaded_at")), live()))
    state, landing = done.release.table("requests"), done.release.table("landing")
    assert state is not None
    assert landing is not None
    assert actions(done) == {"requests": "metadata"}
    (feed,) = done.release.feeds_into("requests")
    source = PinnedSource(feed, Pinned(landing, "landing", 1), ())
    shape = target_shape(PinnedFeed(source=source, target=Pinned(state, "requests", 1), app_id="feed"))
    assert shape.left_out == ("loaded_at",)
    again = planned(with_table(stamped(name), replace(state.table, description="more")), promoted(done, live()))
    later = again.release.table("requests")
    assert later is not None
    assert "loaded_at" in {place for column in later.inexact for place in later.stored_in(column)}
