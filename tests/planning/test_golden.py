"""Every route and every rule as a person reads it and as a program reads it: golden bytes.

`UPDATE_GOLDEN=1 pytest tests/planning/test_golden.py` writes them anew. Fingerprints are shown as `#`: that they are
the same for the same meaning is tested elsewhere, and they change with every better understanding of a query.
"""

import json
import os
import re
from pathlib import Path

import pytest

from console.cli.plan.text import plan_text
from console.errors import Problems
from console.model.codec import encode
from console.planning import plan
from tests.planning.edits import EDITS, Edit
from tests.planning.world import REGION

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent / "golden"
HASH = re.compile(r"\b[0-9a-f]{20,64}\b")


def shown(edit: Edit) -> tuple[str, str]:
    """Text and JSON of a plan, or of why there is none."""
    try:
        done = plan(edit.pipeline(), edit.survey(), REGION, "test", allowed=edit.allowed)
    except Problems as error:
        lines = [f"{p.severity} {p.code}: {p}\n    {p.hint}" for p in error.problems]
        return "\n".join(lines), json.dumps(encode(error.problems), indent=1)
    return plan_text([done], explain=True), json.dumps(encode(done), indent=1, ensure_ascii=False)


@pytest.mark.parametrize("name", EDITS)
def test_a_plan_reads_as_it_was_reviewed(name: str) -> None:
    text, data = (HASH.sub("#", part) + "\n" for part in shown(EDITS[name]))
    folder = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.txt").write_text(text)
        (folder / "plan.json").write_text(data)
    assert (folder / "plan.txt").read_text() == text
    assert (folder / "plan.json").read_text() == data


def test_no_plan_is_kept_of_an_edit_that_is_gone() -> None:
    assert {folder.name for folder in GOLDEN.iterdir()} == set(EDITS)


@pytest.mark.parametrize("name", [name for name in EDITS if name.startswith("C1")])
def test_each_rule_speaks_by_its_own_code(name: str) -> None:
    code = name.partition("_")[0]
    assert code in shown(EDITS[name])[0]


ROUTES = ("keep", "metadata", "rebind", "read", "forward", "replay", "hybrid", "create", "drop")


@pytest.mark.parametrize("name", [name for name in EDITS if name.partition("_")[0] in ROUTES])
def test_each_route_is_the_one_it_is_named_after(name: str) -> None:
    done = plan(EDITS[name].pipeline(), EDITS[name].survey(), REGION, "test")
    actions = {node.action for node in done.nodes if node.action != "keep"}
    wanted = name.partition("_")[0]
    assert wanted in (actions or {"keep"})
    assert done.refusals == ()
