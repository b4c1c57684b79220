"""Clustering: for new rows by declaration alone, for all rows by an explicitly requested copy."""

from dataclasses import replace

from console.model.pipeline import Pipeline
from console.model.step import Backfill
from tests.planning.world import REQUESTS, actions, live, node, pipeline, planned, promoted, with_table


def clustered(*by: str, forward_query: str = "") -> Pipeline:
    return with_table(pipeline(), replace(REQUESTS, cluster_by=by, forward_query=forward_query))


def test_a_change_of_clustering_moves_no_row() -> None:
    done = planned(clustered("ip"))
    assert actions(done) == {"requests": "metadata"}
    assert "clustering of new rows" in node(done, "requests").why
    assert planned(clustered("ip"), promoted(done, live())).steps == ()


def test_all_rows_are_clustered_where_the_table_is_copied_for_it() -> None:
    done = planned(clustered("ip", forward_query="SELECT *"))
    assert actions(done)["requests"] == "forward"
    assert node(done, "requests").why.startswith("clustered by ip instead of not at all: the same rows")
    copied = next(step for step in done.steps if isinstance(step, Backfill) and step.target == "requests")
    assert (copied.route, copied.source) == ("forward", "requests")
    assert not [problem for problem in done.problems if problem.node == "requests" and problem.code in ("C108", "C109")]
    new = done.release.table("requests")
    old = live().release
    assert new is not None
    assert old is not None
    table = old.table("requests")
    assert table is not None
    assert new.version.content != table.version.content


def test_once_it_is_live_the_copy_is_not_made_again() -> None:
    wanted = clustered("ip", forward_query="SELECT *")
    settled = planned(wanted, promoted(planned(wanted), live()))
    assert actions(settled) == {}
    assert [problem.code for problem in settled.problems if problem.node == "requests"] == ["C109"]
    other = clustered("status", forward_query="SELECT *")  # left over: it must not copy the table a second time
    assert actions(planned(other, promoted(planned(wanted), live())))["requests"] == "metadata"
