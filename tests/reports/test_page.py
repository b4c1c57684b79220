"""The page: whole, strict, without anything that a browser fetches or runs, and with every figure that matters."""

from dataclasses import replace

import pytest

from console.cli.reports.html import page
from console.cli.reports.run_report import RunState
from console.errors import UsageError
from console.model.event import ComparedDay
from tests.reports.runs import PLANTED, run
from tests.reports.strict import Tag, read


def sections(text: str) -> dict[str, Tag]:
    """Region → its part of the page."""
    results = [section for section in read(text).all("section") if "region" in section.attributes.get("class", "")]
    return {section.all("h2")[0].text.split()[0]: section for section in results}


def test_a_page_of_four_regions_is_strict_and_lists_what_failed_first() -> None:
    assert list(sections(page(run()))) == ["eu", "ap", "tr", "us"]


@pytest.mark.slow
def test_the_planted_day_is_told_in_words_in_the_chart_and_in_the_table() -> None:
    eu, us = (sections(page(run()))[name] for name in ("eu", "us"))
    assert f"{PLANTED}: 1,450 rows live, 1,449 new; columns: status" in eu.text
    (marked,) = [bar for bar in eu.all("rect") if bar.attributes["class"] == "day other"]
    assert marked.text.strip().startswith(PLANTED)
    (table,) = [table for table in eu.all("table") if "live rows" in table.text]
    rows = {row.children[0].text: row.children[1].text for row in table.all("tr")[1:]}
    assert {day for day, word in rows.items() if "differs" in word} == {PLANTED}
    assert not [bar for bar in us.all("rect") if bar.attributes["class"] == "day other"]


def test_the_bar_of_phases_is_as_long_as_the_rollout_and_its_parts_as_their_times() -> None:
    us = sections(page(run()))["us"]
    (bar,) = [svg for svg in us.all("svg") if svg.attributes["class"] == "bar"]
    widths = [float(each.attributes["width"]) for each in bar.all("rect")]
    assert abs(sum(widths) - 1000) < 0.1
    seconds = [20, 20, 240, 20, 60, 20]  # each event of the sample is twenty seconds after the one before
    room = 1000 - 2 * len(seconds)
    assert [round(width) for width in widths] == [round(2 + room * each / 380) for each in seconds]


def test_receipts_days_tries_and_decisions_are_there() -> None:
    us = sections(page(run()))["us"]
    assert "14 days, 14,000 rows in, 13,986 out" in us.text
    assert "landing up to version 41 → requests version 4, position 14" in us.text
    assert "History of backfill/requests/parse_requests: 14 of 14 days" in us.text
    assert "failed tries: 40 s" in us.text
    assert "accepted" in us.text


@pytest.mark.slow
def test_a_history_that_is_not_all_in_is_never_a_hundred_percent() -> None:
    given = run()
    ap = next(region for region in given.regions if region.region == "ap")
    assert ap.percent == 50
    assert "50 %: 7,000 of 14,000 rows" in read(page(given)).text


@pytest.mark.slow
def test_a_run_that_was_refused_says_why_and_one_that_goes_on_says_that_too() -> None:
    refused = run(RunState.REFUSED, UsageError("no such region", hint="console status"), 64)
    assert "no such region" in read(page(replace(refused, regions=()))).text
    assert "not finished when this was written" in read(page(run(RunState.RUNNING, code=None))).text


@pytest.mark.slow
def test_a_table_of_three_years_is_cut_where_days_are_equal_and_keeps_each_that_differs() -> None:
    given = run()
    days = [
        ComparedDay(day=f"{2020 + at // 336}-{at // 28 % 12 + 1:02}-{at % 28 + 1:02}", old=9, new=9)
        for at in range(1000)
    ]
    days[3] = replace(days[3], new=8)
    check = replace(given.regions[0].checks[0], days=tuple(days))
    text = page(replace(given, regions=(replace(given.regions[0], checks=(check,)),)))
    assert days[3].day in text
    assert days[999].day in text
    assert days[4].day not in text
    assert "1,000 days" in read(text).text
