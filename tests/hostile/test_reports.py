"""S6: foreign texts stay text in reports and CI logs."""

import json
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from console.cli.commands.review.markdown import comment
from console.cli.commands.review.sarif import sarif
from console.cli.reports.html import page
from console.cli.reports.junit import junit
from console.cli.reports.markdown import markdown
from console.cli.reports.run_report import RunReport
from console.errors import Problem
from console.model.plan import Plan
from tests.hostile.test_fuzz import read, written
from tests.hostile.test_shown import steering
from tests.reports.runs import run
from tests.reports.strict import Tag
from tests.reports.strict import read as strictly
from tests.screens.hostile import ALL

pytestmark = pytest.mark.slow

ATTACKS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![x](http://evil.example/p.png)", "a | b | c",
    "`code`", "```\n# big\n```", "\n\n# title\n", "</details><b>", "::set-output name=x::y", "\n::error file=a::b", "%0A::error::b", "@everyone",
    "http://evil.example", "&lt;script&gt;", "<!-- console check -->", "\\", "*", "_", "~~x~~", "- [ ] x", "=cmd()", ALL,
)  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    from tests.cli.conftest import FILES

    return read(written(tmp_path_factory.mktemp("project"), FILES))[0]


@pytest.mark.parametrize("attack", ATTACKS)
def test_s06_a_markdown_report_holds_others_texts_as_text(plan: Plan, attack: str) -> None:
    problem = Problem(code="C101", message=attack, where=attack, hint=attack, severity="warn", node=attack)
    nodes = tuple(replace(node, name=attack, why=attack, source=attack) for node in plan.nodes)
    evil = replace(plan, region=attack, nodes=nodes, problems=(problem,))
    calm = replace(
        plan, problems=(Problem(code="C101", message="m", where="f:1:1", hint="h", severity="warn", node="n"),)
    )
    for text, plain in (
        (comment([evil], []), comment([calm], [])),
        (comment([], [problem]), comment([], [calm.problems[0]])),
    ):
        tokens, others = _shape(text), _shape(plain)
        assert tokens == others, "the report's structure is that of a harmless one"
        assert not [line for line in text.splitlines() if line.startswith(("::", "##["))], (
            "no command to the CI's runner"
        )
        assert steering(text.replace("\u200b", "")) == set()


def _shape(text: str) -> list[tuple[str, str]]:
    """Everything but words: what a reader of Markdown makes of it. Folded text counts as one."""
    results = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        results.append((token.type, token.tag if token.type != "fence" else ""))
        for child in token.children or ():
            if child.type in ("link_open", "image", "html_inline", "strong_open", "s_open", "heading_open"):
                results.append((child.type, child.tag))
    return results


@pytest.mark.parametrize("attack", ATTACKS)
def test_s06_sarif_stays_one_document_with_the_text_in_it(attack: str) -> None:
    report = json.dumps(
        sarif([], [Problem(code="P010", message=attack, where="regions/eu.yaml:1:2", hint=attack)], {}, "t")
    )
    assert steering(report) == set()
    (run,) = json.loads(report)["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1


# words by which the code decides, and texts that are parsed: no region sends others
OURS = {
    "phase",
    "use",
    "state",
    "action",
    "kind",
    "change",
    "severity",
    "cause",
    "sql",
    "day",
    "label",
    "promote",
    "identity",
    "zone",
}


def poisoned(value: Any, attack: str, name: str = "") -> Any:
    """The same value with every text in it replaced that comes from outside."""
    match value:
        case str() if name not in OURS:
            return attack
        case Enum() | str() | int() | float() | None:
            return value
        case tuple():
            return tuple(poisoned(item, attack, name) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            if type(value).__module__ in ("console.model.live", "console.model.pipeline"):
                return value  # not in a report
            changed = {key: poisoned(getattr(value, key), attack, key) for key in value.__dataclass_fields__}
            made = object.__new__(type(value))
            for key, item in changed.items():
                object.__setattr__(made, key, item)
            return made
    return value


@pytest.mark.parametrize("attack", ATTACKS)
def test_s06_a_run_s_reports_hold_others_texts_as_text(attack: str) -> None:
    evil, calm = poisoned(run(), attack), poisoned(run(), "calm")
    assert isinstance(evil, RunReport)
    assert _tree(strictly(page(evil))) == _tree(strictly(page(calm)))
    results, plain = (ElementTree.fromstring(junit(each).encode()) for each in (evil, calm))
    assert [each.tag for each in results.iter()] == [each.tag for each in plain.iter()]
    assert _shape(markdown(evil)) == _shape(markdown(calm))
    for text in (page(evil), junit(evil), markdown(evil).replace("\u200b", "")):
        assert steering(text) == set()
        assert not [line for line in text.splitlines() if line.startswith(("::", "##[", "##vso["))]


def _tree(tag: Tag) -> tuple[object, ...]:
    """Everything but words and sizes: names of elements, and of their attributes."""
    kinds = (tag.name, tuple(sorted(tag.attributes)), tag.attributes.get("class"), tag.attributes.get("href"))
    return (*kinds, *map(_tree, tag.children))
