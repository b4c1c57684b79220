"""`console schema apply` over many regions: wave by wave, a shared store once, and on from where a region was away."""

from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.stores.project import Project, add, drop

pytestmark = pytest.mark.stores
REGIONS = {"us": "wave: 1\ncanary: true\n", "eu": "wave: 2\n", "ap": "wave: 3\n"}
REPLICATION = """\
stores:
  raw: {{kind: delta, root: "{{warehouse}}/raw"}}
  shared: {{kind: delta, root: "{root}/shared"}}
  quirk: {{kind: delta, regions: {{ap: {{root: "{root}/only-ap"}}}}}}
tables:
  issues:
"""


def table(place: Path) -> None:
    write_deltalake(str(place / "issues"), pyarrow.table({"id": [1], "title": ["t"]}))


def columns(place: Path) -> list[str]:
    return [field.name for field in DeltaTable(str(place / "issues")).schema().fields]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, "", "")
    for name, text in REGIONS.items():
        (tmp_path / "regions" / f"{name}.yaml").write_text(f"warehouse: {name}\n{text}")
        table(tmp_path / name / "raw")
    table(tmp_path / "shared")
    table(tmp_path / "only-ap")
    made.replicate(REPLICATION.format(root=tmp_path))
    made.migrate("20260101000000_add_issues_kind", "pre", add("kind", "string"))
    made.migrate("20260101000001_drop_issues_title", "post", drop("title"))
    return made


def test_a_wave_that_is_not_through_is_the_last_one_and_the_same_command_goes_on(project: Project) -> None:
    away = project.root / "eu" / "raw"
    away.rename(project.root / "away")
    first = project.apply("pre", "--output", "json")
    assert first.returncode not in (0, 2), first.stderr
    assert columns(project.root / "us" / "raw") == columns(project.root / "shared") == ["id", "title", "kind"]
    assert columns(project.root / "ap" / "raw") == columns(project.root / "only-ap") == ["id", "title"]
    (project.root / "away").rename(away)
    assert project.apply("pre").returncode == 0
    places = [*(Path(name, "raw") for name in REGIONS), Path("shared"), Path("only-ap")]
    assert [columns(project.root / place) for place in places] == [["id", "title", "kind"]] * len(places)
    before = {place: DeltaTable(str(project.root / place / "issues")).version() for place in places}
    assert project.apply("pre").returncode == 0
    assert {place: DeltaTable(str(project.root / place / "issues")).version() for place in places} == before


def test_one_region_of_many_is_changed_alone(project: Project) -> None:
    assert project.apply("pre", "--regions", "ap", "--store", "raw").returncode == 0
    assert columns(project.root / "ap" / "raw") == ["id", "title", "kind"]
    assert columns(project.root / "us" / "raw") == columns(project.root / "shared") == ["id", "title"]
