"""`console schema apply --recorded`: of a store that was made from today's schema nothing is asked and nothing is changed."""

import json
from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.stores.project import Project, add, replace, swap

pytestmark = pytest.mark.stores


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Its store has what the migrations come to."""
    made = Project(tmp_path, "", "")
    (tmp_path / "regions" / "eu.yaml").write_text("warehouse: eu\npolicy: {promote: ask}\n")
    made.replicate('stores:\n  raw: {kind: delta, root: "{warehouse}/raw"}\ntables:\n  issues:\n')
    values = {"id": [1], "state": [7], "a": ["was b"], "b": ["was a"]}
    write_deltalake(str(tmp_path / "eu" / "raw" / "issues"), pyarrow.table(values))
    made.migrate(
        "20260101000000_issues_state_anew",
        "post",
        replace("state", None, data_type="int64", nullable=True, default=None),
    )
    made.migrate("20260101000001_issues_a_b", "post", swap(a="b", b="a"))
    made.migrate("20260101000002_add_issues_kind", "post", add("id", "int64"))
    return made


def issues(project: Project) -> DeltaTable:
    return DeltaTable(str(project.root / "eu" / "raw" / "issues"))


def test_what_a_store_has_already_is_written_down_and_nothing_else_happens(project: Project) -> None:
    before = issues(project).version()
    shown = project.console("schema", "apply", "--phase", "post", "--recorded", "--dry-run", "--output", "json")
    assert shown.returncode == 0, shown.stderr
    [store] = json.loads(shown.stdout)["stores"]
    assert [one["statements"] for one in store["migrations"]] == [[], [], []]
    for phase in ("pre", "post"):
        done = project.apply(phase, "--recorded")
        assert done.returncode == 0, done.stderr
    assert issues(project).version() == before
    again = project.apply("post")
    assert again.returncode == 0, again.stderr
    assert issues(project).version() == before


def test_the_way_past_the_gate_means_what_was_asked(project: Project) -> None:
    shut = project.console("schema", "apply", "--phase", "post", "--recorded", "--output", "json", "--no-input")
    assert shut.returncode == 3, shut.stderr
    [store] = json.loads(shut.stdout)["stores"]
    assert "--recorded" in store["error"]["hint"]


def test_a_hint_after_pre_was_written_down_alone_leads_to_the_end(project: Project) -> None:
    """The place of a new column, `state__new`, is made by `pre` alone, which has nothing left to do here."""
    assert project.apply("pre", "--recorded").returncode == 0
    refused = project.apply("post", "--allow-destructive")
    assert refused.returncode == 65, refused.stderr
    assert "has no column state__new" in refused.stderr
    assert "--phase post --recorded" in refused.stderr
    assert project.apply("post", "--recorded").returncode == 0
    assert project.apply("post").returncode == 0


def test_what_must_come_first_is_to_be_written_down_too(project: Project) -> None:
    project.migrate("20260101000000_add_issues_kind", "pre", add("state", "int64"))
    early = project.apply("post", "--recorded")
    assert early.returncode == 4, early.stderr
    assert "hint: console schema apply --phase pre --recorded first" in early.stderr
