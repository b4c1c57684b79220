"""The judgement of a way back: of feeds by their positions, and of the findings as a whole."""

from dataclasses import replace

import pytest

from console.model.way_back import (
    FINDINGS_SENT,
    STALE_SECONDS,
    KeptFeed,
    WayBackFinding,
    WayBackProof,
    cleanup_text,
    judge_feed,
    proof,
    proof_text,
)

FED = KeptFeed(name="parse", target="requests", followed=True, aligned=True, position=7, before=5, live=7)
LATE = replace(FED, aligned=False, position=5, before=3, behind=1200)
GONE = WayBackFinding(part="file", name="day=1/a.parquet", state="failed", why="it is gone", table="requests")
SLOW = WayBackFinding(part="endpoint", name="by_day", state="inconclusive", why="no answer within 10 s")


def proven(*findings: WayBackFinding) -> WayBackProof:
    return proof("r1", 1000.0, findings, until=5000.0, feeds=1, files=1200, endpoints=2)


@pytest.mark.parametrize(
    ("feed", "state", "why"),
    [
        (FED, "", ""),
        (replace(FED, behind=40), "", ""),  # arrived since the tick that aligned them
        (replace(LATE, behind=0), "", ""),  # only commits without rows wait
        (replace(LATE, position=7), "", ""),  # as far as live
        (replace(LATE, live=5), "", ""),
        (LATE, "inconclusive", "1,200 rows behind"),
        (replace(LATE, before=5), "inconclusive", "has not moved"),
        (replace(LATE, live=None), "inconclusive", "1,200 rows behind"),
        (replace(FED, tries=2, why="disk full"), "inconclusive", "attempt 2: disk full"),
        (replace(FED, tries=9, stopped=True, why="E_REWRITE"), "failed", "it has stopped: E_REWRITE"),
        (replace(FED, followed=False), "failed", "nothing feeds requests"),
    ],
)
def test_a_feed_is_judged_by_where_it_stands(feed: KeptFeed, state: str, why: str) -> None:
    finding = judge_feed(feed)
    assert (finding.state if finding else "") == state
    assert why in (finding.why if finding else "")


def test_the_gravest_finding_decides_and_is_shown_first_and_the_others_are_counted() -> None:
    assert proven().state == "passed"
    assert proven(SLOW).state == "inconclusive"
    both = proven(SLOW, GONE)
    assert (both.state, both.reason) == ("failed", "requests: file day=1/a.parquet: it is gone (and 1 more)")
    many = proven(*[GONE] * (FINDINGS_SENT + 5))
    assert (len(many.findings), many.more) == (FINDINGS_SENT, 5)
    assert many.reason.endswith(f"(and {FINDINGS_SENT + 4} more)")


def test_a_proof_that_is_not_renewed_proves_nothing_and_a_failure_stays_one() -> None:
    later = 1000.0 + STALE_SECONDS + 1
    assert (proven().state_at(later), proven().state_at(1000.0 + STALE_SECONDS)) == ("inconclusive", "passed")
    assert proven(GONE).state_at(later) == "failed"


def test_what_is_shown_names_the_release_the_age_and_the_reason() -> None:
    assert proof_text(proven(), "r1", 1047.0, attended=True) == ("proven 40 s ago: 1 feed, 1,200 files, 2 endpoints")
    assert proof_text(proven(GONE), "r1", 1005.0, attended=True).startswith(
        "failed its proof 5 s ago: requests: file day=1/a.parquet"
    )
    assert "not proven, checked 5 s ago: endpoint by_day: no answer" in proof_text(
        proven(SLOW), "r1", 1005.0, attended=True
    )
    assert "was proven 16 min ago, and not since" in proof_text(proven(), "r1", 2000.0, attended=True)
    assert "has sent no proof" in proof_text(proven(), "r2", 1005.0, attended=True), "another release's proof"
    assert "no agent runs" in proof_text(None, "r1", 1005.0, attended=False)
    assert cleanup_text("r1", 5000.0, 1000.0) == "r1 may be cleaned up in 66 min"
    assert "console cleanup --previous" in cleanup_text("r1", 5000.0, 5000.0)
