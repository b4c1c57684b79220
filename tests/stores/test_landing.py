"""A migration of a pipeline's own landing table becomes an edit of its file, and the planner takes it from there."""

from pathlib import Path

import pytest

from tests.stores.project import Project, add, drop, retype, swap

pytestmark = pytest.mark.slow

REPLICATION = """\
tables: {issues: {}}
stores: {raw: {kind: delta, pipeline: app}}
"""
TABLE = """\
# rows of the application
kind: landing
columns:
  id: bigint   # its key
  title: string
"""


def project(root: Path) -> Project:
    made = Project(root, "", "")
    made.replicate(REPLICATION)
    (root / "plans/app/tables/issues.yaml").write_text(TABLE)
    return made


def test_the_file_is_edited_once_and_nothing_else_of_it_changes(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_add", "pre", add("kind", "int32"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    done = made.apply("pre", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "+  kind: int" in done.stdout
    assert file.read_text() == TABLE
    for _ in range(2):
        done = made.apply("pre")
        assert done.returncode == 0, done.stderr
        assert file.read_text() == TABLE + "  kind: int\n# migrated by 1_add\n"


def test_a_drop_needs_leave(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_drop", "post", drop("title"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    done = made.apply("post")
    assert done.returncode == 1, done.stderr
    assert file.read_text() == TABLE
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == TABLE.replace("  title: string\n", "") + "# migrated by 1_drop\n"


def test_names_that_change_places_are_left_to_a_person_who_says_when_it_is_done(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_swap", "post", swap(id="title", title="id"))
    made.migrate("2_drop", "post", drop("title"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 65, done.stderr
    assert "then add the line `# migrated by 1_swap` to that file" in done.stderr
    assert file.read_text() == TABLE
    file.write_text(TABLE + "# migrated by 1_swap\n")
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == (TABLE.replace("  title: string\n", "") + "# migrated by 1_swap\n# migrated by 2_drop\n")


def test_what_later_migrations_made_of_a_column_is_not_undone(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_add", "pre", add("kind", "int32"))
    made.migrate("2_change", "pre", retype("kind", "int32", "int64", "widening"))
    made.migrate("3_rename", "post", swap(kind="sort"))
    made.migrate("4_change", "pre", retype("sort", "int64", "string", "safe"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    early = made.apply("pre")
    assert early.returncode == 4, early.stderr
    assert "4_change must wait for 3_rename" in early.stderr
    assert made.apply("post").returncode == 0
    first = made.apply("pre")
    assert first.returncode == 0, first.stderr
    text = file.read_text()
    assert "  sort: string\n" in text
    assert "kind: " not in text.replace("kind: landing", "")
    for phase in ("pre", "post", "pre"):
        again = made.apply(phase)
        assert again.returncode == 0, again.stderr
        assert file.read_text() == text


def test_what_a_file_has_already_is_only_written_down(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_rename", "pre", swap(gone="title"))
    made.migrate("2_drop", "pre", drop("title"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    for _ in range(2):
        done = made.apply("pre", "--recorded")
        assert done.returncode == 0, done.stderr
        assert file.read_text() == TABLE + "# migrated by 1_rename\n# migrated by 2_drop\n"


def test_the_files_stay_as_they_are_where_a_store_does_not_go_through(tmp_path: Path) -> None:
    made = project(tmp_path)
    away = "{kind: delta, root: /nowhere/at/all}"
    made.replicate(f"tables: {{issues: {{}}}}\nstores: {{raw: {{kind: delta, pipeline: app}}, away: {away}}}\n")
    made.migrate("1_add", "pre", add("kind", "int32"))
    done = made.apply("pre")
    assert done.returncode == 5, done.stderr
    assert "files stay unchanged until every store has all of it" in done.stderr
    assert (tmp_path / "plans/app/tables/issues.yaml").read_text() == TABLE
