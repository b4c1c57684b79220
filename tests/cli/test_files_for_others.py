"""Files published beside the code: JSON Schemas match the values, example pipelines call existing commands."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from tests.cli.conftest import World
from tools.schemas import schemas

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "array": list, "object": dict,
}  # fmt: skip


def wrong(schema: dict[str, Any], value: Any, defs: dict[str, Any], path: str = "$") -> list[str]:
    """Where a value breaks a schema of the few keywords that ours use; a keyword unknown here fails the test."""
    known = {"$ref", "anyOf", "const", "enum", "type", "properties", "required", "additionalProperties", "items", "prefixItems",
             "minItems", "maxItems", "pattern", "$schema", "title", "$defs"}  # fmt: skip
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        return wrong(defs[schema["$ref"].removeprefix("#/$defs/")], value, defs, path)
    if "anyOf" in schema:
        each = [wrong(one, value, defs, path) for one in schema["anyOf"]]
        return [] if [] in each else min(each, key=len)
    if "const" in schema or "enum" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [f"{path}: {value!r}"]
    kind = schema["type"]
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return [f"{path}: {type(value).__name__} is no {kind}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{path}: {value!r}"]
    results: list[str] = []
    if kind == "array":
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            results.append(f"{path}: {len(value)} items")
        shapes = schema.get("prefixItems") or [schema["items"]] * len(value)
        for i, (shape, item) in enumerate(zip(shapes, value, strict=False)):
            results += wrong(shape, item, defs, f"{path}[{i}]")
    if kind == "object":
        results += [f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        rest = schema["additionalProperties"]
        for name, item in value.items():
            shape = schema.get("properties", {}).get(name, rest)
            results += [f"{path}: {name} is unknown"] if shape is False else wrong(shape, item, defs, f"{path}.{name}")
    return results


@pytest.mark.parametrize("name", ["plan.schema.json", "snapshot.schema.json"])
def test_the_published_schemas_are_those_of_the_values(name: str) -> None:
    published = json.loads((ROOT / "docs" / name).read_text())
    hint = "regenerate them: .venv/bin/python -m tools.schemas docs"
    assert published == json.loads(json.dumps(schemas()[name])), hint


@pytest.mark.slow
def test_real_files_keep_to_the_published_schemas(deployed: World, tmp_path: Path) -> None:
    plan, snapshot = tmp_path / "plan.json", tmp_path / "snapshot.json"
    assert deployed.call("plan", "--out", str(plan)).exit_code == 0
    assert deployed.call("snapshot", "--out", str(snapshot)).exit_code == 0
    for file, name in ((plan, "plan.schema.json"), (snapshot, "snapshot.schema.json")):
        schema = json.loads((ROOT / "docs" / name).read_text())
        data = json.loads(file.read_text())
        assert wrong(schema, data, schema["$defs"]) == []
        assert wrong(schema, {**data, "digest": "x"}, schema["$defs"])
        assert wrong(schema, {**data, "more": 1}, schema["$defs"])
        assert wrong(schema, {key: data[key] for key in data if key != "tool"}, schema["$defs"])
    body = json.loads(plan.read_text())
    body["plans"][0]["plan"]["nodes"][0]["action"] = "guess"
    schema = json.loads((ROOT / "docs" / "plan.schema.json").read_text())
    assert wrong(schema, body, schema["$defs"])


def calls(text: str) -> list[str]:
    return re.findall(r"(?m)^\s*(?:- |- run: )?(console (?:check|snapshot|plan|apply)\b[^\n>|]*)", text)


@pytest.mark.parametrize(("name", "least"), [("github.yaml", 3), ("gitlab.yaml", 4)])
def test_the_example_pipelines_are_yaml_and_call_commands_as_they_are(name: str, least: int) -> None:
    text = (ROOT / "docs" / "ci" / name).read_text()
    assert isinstance(yaml.safe_load(text), dict)
    result = calls(text)
    assert len(result) >= least
    for line in result:
        _, command, *words = shlex.split(line)
        with cli.make_context("console", [command, *words], obj=CliContext(Wiring(lambda _: {}))) as ctx:
            child = cli.get_command(ctx, command)
            assert child is not None
            assert child.make_context(command, words, parent=ctx).params is not None
