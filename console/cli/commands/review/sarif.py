"""A check as SARIF 2.1.0, for the code-scanning views of the forges: each finding at its file and line.

source  OASIS Static Analysis Results Interchange Format 2.1.0, §3.13 (log) to §3.58 (location)
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console.errors import Problem
from console.model.pipeline import Pipeline, digest
from console.model.plan import ACTIONS, NodeChange, Plan

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PLACE = re.compile(r"(.+?):(\d+):(\d+)")
_LEVELS = {"refuse": "error", "warn": "warning", "note": "note"}
_CHANGES = "plan-"  # prefix of rule ids of planned changes, which are not problems: `plan-replay`


def sarif(
    plans: Sequence[Plan],
    problems: Sequence[Problem],
    pipelines: Mapping[str, Pipeline],
    tool: str,
    prefix: str = "",
) -> dict[str, Any]:
    """One run: problems of the files and of the plans, and every planned change as a note.

    pipelines  by region name, to find the place of a changed node
    prefix     the project's folder below the repository's root, "" if it is the root itself
    """
    results: dict[str, dict[str, Any]] = {}
    for problem in [*problems, *(p for plan in plans for p in plan.problems)]:
        result = _result(problem.code, _LEVELS.get(problem.severity, "error"), _message(problem), problem.where, prefix)
        results.setdefault(_mark(result), result)
    for plan in plans:
        for node in plan.changes:
            where = place(pipelines[plan.region], node) if plan.region in pipelines else ""
            text = f"{node.name}: {node.action}: {node.why}"
            result = _result(f"{_CHANGES}{node.action}", "note", text, where, prefix)
            results.setdefault(_mark(result), result).setdefault("properties", {}).setdefault("regions", []).append(
                plan.region
            )
    listed = list(results.values())
    rules = sorted({result["ruleId"] for result in listed})
    for result in listed:
        result["ruleIndex"] = rules.index(result["ruleId"])
        result["partialFingerprints"] = {"consoleFinding/v1": _mark(result)}
    name, _, version = tool.partition(" ")
    driver = {"name": name, "version": version, "semanticVersion": version, "rules": [_rule(rule) for rule in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": listed}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _message(problem: Problem) -> str:
    return f"{problem.message}. {problem.hint}" if problem.hint else problem.message


def _result(rule: str, level: str, text: str, where: str, prefix: str) -> dict[str, Any]:
    result: dict[str, Any] = {"ruleId": rule, "level": level, "message": {"text": text}}
    if match := _PLACE.fullmatch(where):
        file, line, column = match.groups()
        uri = f"{prefix}/{file}" if prefix else file
        location = {
            "artifactLocation": {"uri": _uri(uri), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": max(int(line), 1), "startColumn": max(int(column), 1)},
        }
        result["locations"] = [{"physicalLocation": location}]
    return result


def _uri(path: str) -> str:
    return quote(path, safe="/")


def _mark(result: Mapping[str, Any]) -> str:
    """The same finding keeps its mark when lines above it move."""
    places = [place["physicalLocation"]["artifactLocation"] for place in result.get("locations", ())]
    return digest([result["ruleId"], result["message"], places])[:32]


def _rule(code: str) -> dict[str, Any]:
    if code.startswith(_CHANGES):
        return {"id": code, "shortDescription": {"text": f"a node is to be changed: {code.removeprefix(_CHANGES)}"}}
    text = {"P": "files of the project", "S": "SQL", "C": "rules of the planner"}.get(code[:1], "a problem")
    return {"id": code, "shortDescription": {"text": f"{code}: {text}; explained in docs/codes.md"}}


def place(pipeline: Pipeline, node: NodeChange) -> str:
    """`file:line:column` of a node's declaration; of a table's first query if the change comes from it."""
    where = {table.name: table.where for table in pipeline.tables}
    where |= {other.name: other.where for other in pipeline.endpoints}
    where |= {other.name: other.where for other in pipeline.copies}
    where |= {other.name: other.where for other in pipeline.sinks}
    fed = {made.into: made.where for made in reversed(pipeline.materializations)}
    if node.kind == "table" and ACTIONS[node.action].from_query and node.name in fed:
        return fed[node.name]
    return where.get(node.name, "")


def below_repository(root: Path) -> str:
    """The project's folder below its repository's root, "" where that is the root itself or there is none."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return "" if folder == root else root.relative_to(folder).as_posix()
    return ""
