"""A migration of a pipeline's own landing table becomes an edit of its file, and the planner takes it from there."""

from pathlib import Path

from tests.stores.project import Project, add, drop, swap

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
        assert file.read_text() == TABLE + "  kind: int\n"


def test_a_drop_needs_leave(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_drop", "post", drop("title"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    done = made.apply("post")
    assert done.returncode == 1, done.stderr
    assert file.read_text() == TABLE
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == TABLE.replace("  title: string\n", "")


def test_names_that_change_places_are_left_to_a_person_who_says_when_it_is_done(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.migrate("1_swap", "post", swap(id="title", title="id"))
    made.migrate("2_drop", "post", drop("title"))
    file = tmp_path / "plans/app/tables/issues.yaml"
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 65, done.stderr
    assert "then add the line `# names changed by 1_swap` to that file" in done.stderr
    assert file.read_text() == TABLE
    file.write_text(TABLE + "# names changed by 1_swap\n")
    done = made.apply("post", "--allow-destructive")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == TABLE.replace("  title: string\n", "") + "# names changed by 1_swap\n"
