"""Secrets are in no file of the project, and are never shown once they are known."""

from pathlib import Path

import pytest

from console.errors import DataError, Problems
from console.model.region import Region
from console.project import load
from console.stores.files import read_plan, sites
from console.text import redacted
from tests.stores.project import Project

pytestmark = pytest.mark.slow

LAKE = """\
tables: {issues: }
stores:
  lake:
    kind: iceberg
    catalog:
      uri: "https://catalog"
      KEY: VALUE
"""


def regions(root: Path, key: str, value: str) -> tuple[Region, ...]:
    Project(root, "", "").replicate(LAKE.replace("KEY", key).replace("VALUE", value))
    return load(root).regions


@pytest.mark.parametrize("key", ["credential", "token", "password", "s3.secret-access-key", "adls.account-key"])
def test_a_secret_in_the_file_is_refused_with_its_place(tmp_path: Path, key: str) -> None:
    regions(tmp_path, key, "hunter2:hunter2")
    with pytest.raises(Problems) as refused:
        read_plan(tmp_path, "app")
    [problem] = refused.value.problems
    assert (problem.code, problem.where) == ("P050", f"plans/app/replication.yaml:7:{9 + len(key)}")
    assert "hunter2" not in f"{problem} {problem.hint}"


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("kind: iceberg", "kind: paper", "4:11"),
        ("{issues: }", "{audit.events: {ignore: 3}}", "1:33"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(tmp_path: Path, before: str, after: str, place: str) -> None:
    Project(tmp_path, "", "").replicate(LAKE.replace("KEY", "token").replace("VALUE", "env:X").replace(before, after))
    with pytest.raises(Problems) as refused:
        read_plan(tmp_path, "app")
    [problem] = refused.value.problems
    assert (problem.code, problem.where) == ("P050", f"plans/app/replication.yaml:{place}")


def test_a_secret_that_a_file_leads_to_is_hidden_from_then_on(tmp_path: Path) -> None:
    there = regions(tmp_path, "credential", f"file:{tmp_path}/credential")
    (tmp_path / "credential").write_text("of-a-warehouse-17\n")
    [site] = sites(read_plan(tmp_path, "app"), there)
    assert site.options["catalog"]["credential"] == "of-a-warehouse-17"
    assert redacted("refused of-a-warehouse-17, sorry") == "refused ***, sorry"


def test_a_password_in_an_address_is_hidden_wherever_it_turns_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = regions(tmp_path, "warehouse", "w")
    monkeypatch.setenv("CH", "http://console:pass%40word-18@host:8123/db")
    Project(tmp_path, "", "").replicate("tables: {issues: }\nstores: {c: {kind: clickhouse, url: 'env:CH'}}\n")
    sites(read_plan(tmp_path, "app"), there)
    assert redacted("no access with pass@word-18") == "no access with ***"
    Project(tmp_path, "", "").replicate("tables: {issues: }\nstores: {c: {kind: clickhouse, url: 'http://a:b@c'}}\n")
    with pytest.raises(DataError, match="a password in the file"):
        sites(read_plan(tmp_path, "app"), there)
