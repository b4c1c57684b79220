"""A quoted value is a text, whatever it looks like, up to the SQL of a variable."""

from pathlib import Path

import pytest

from console.planning.sql.dialect.literal import literal
from console.planning.sql.tree import render
from console.project import load
from tests.project.conftest import Write

WRITTEN = {  # YAML → SQL
    "3": "3",
    "-1.5": "-1.5",
    "true": "TRUE",
    "null": "NULL",
    "eu": "'eu'",
    '"3"': "'3'",
    "'007'": "'007'",
    '"-1.5"': "'-1.5'",
    '"True"': "'True'",
    '"null"': "'null'",
    "'eu'": "'eu'",
    "'\"eu\"'": "'\"eu\"'",
    "'\"'": "'\"'",
    '"it\'s"': "'it\\'s'",
    '"a\\nb"': "'a\\nb'",
    "|-\n    5": "'5'",
}


def variable(root: Path, region: str = "eu") -> str:
    loaded = load(root)
    return dict(loaded.pipeline("web", loaded.region(region)).variables)["skip"]


@pytest.mark.parametrize("written", WRITTEN)
def test_quotes_make_a_text(project: Write, written: str) -> None:
    root = project({"plans/web/pipeline.yaml": f"variables:\n  skip: {written}\n"})
    assert render(literal(variable(root))) == WRITTEN[written]


def test_an_override_brings_its_own_quotes_or_none(project: Write) -> None:
    def region(name: str, value: str) -> str:
        return f"warehouse: lake/{name}\noverrides: {{web: {{variables: {{skip: {value}}}}}}}\n"

    both = {"regions/eu.yaml": region("eu", '"7"'), "regions/us.yaml": region("us", "7")}
    root = project({"plans/web/pipeline.yaml": 'variables: {skip: "1"}\n', **both})
    assert render(literal(variable(root, "eu"))) == "'7'"
    assert render(literal(variable(root, "us"))) == "7"
