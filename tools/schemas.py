"""JSON Schemas of the files that console writes for others to read, made from the values that they hold.

python -m tools.schemas docs     writes plan.schema.json and snapshot.schema.json there
"""

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from console.cli.commands.review import snapshots
from console.model.codec import QUIET, TAG
from console.model.live import Live
from console.model.plan import Plan
from console.project import saved

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_SHA = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def schemas() -> dict[str, dict[str, Any]]:
    """File name → schema."""
    return {"plan.schema.json": plan_schema(), "snapshot.schema.json": snapshot_schema()}


def plan_schema() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    entry = _object(
        {"digest": _SHA, "plan": _of(Plan, defs), "ground": {"anyOf": [_untagged(saved.Rests, defs), {"type": "null"}]}}
    )
    body = {
        "format_version": {"const": saved.FORMAT}, "tool": {"type": "string"}, "pipeline": {"type": "string"},
        "regions": {"type": "array", "items": {"type": "string"}}, "plans": {"type": "array", "items": entry},
        "digest": _SHA,
    }  # fmt: skip
    return {
        "$schema": DRAFT,
        "title": "Saved plans: console plan --out FILE",
        **_object(body),
        "$defs": dict(sorted(defs.items())),
    }


def snapshot_schema() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    names = {"type": "array", "items": {"type": "string"}}
    region = _object({"landing": names, "live": _of(Live, defs)})
    body = {
        "format_version": {"const": snapshots.FORMAT}, "tool": {"type": "string"}, "pipeline": {"type": "string"},
        "regions": {"type": "object", "additionalProperties": region}, "digest": _SHA,
    }  # fmt: skip
    return {
        "$schema": DRAFT,
        "title": "Live state: console snapshot",
        **_object(body),
        "$defs": dict(sorted(defs.items())),
    }


def _object(properties: dict[str, Any], quiet: Collection[str] = ()) -> dict[str, Any]:
    """quiet  properties that are left out where they say nothing"""
    required = sorted(name for name in properties if name not in quiet)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if hint.__name__ not in defs:
            defs[hint.__name__] = {}
            shape = _untagged(hint, defs)
            if TAG not in shape["properties"]:  # a column's own `type` stands in the tag's place
                shape = _object({TAG: {"const": hint.__name__}, **shape["properties"]}, _quiet(hint))
            defs[hint.__name__] = shape
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(arg, defs) for arg in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(args[1], defs)}
    if origin in (tuple, frozenset):
        if origin is tuple and args[-1] is not Ellipsis:
            items = [_of(arg, defs) for arg in args]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "items": _of(args[0], defs)}
    return {"type": _PLAIN[hint]}


def _untagged(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return _object({_written(field): _of(hints[field.name], defs) for field in dataclasses.fields(kind)}, _quiet(kind))


def _quiet(kind: Any) -> frozenset[str]:
    return frozenset(_written(field) for field in dataclasses.fields(kind) if QUIET.items() <= field.metadata.items())


def _written(field: "dataclasses.Field[Any]") -> str:
    """The key of a field: one that older readers need says since when."""
    since = field.metadata.get("needed", "")
    return f"{field.name}!{since}" if since else field.name


def main(folder: str) -> None:
    for name, schema in schemas().items():
        (Path(folder) / name).write_text(json.dumps(schema, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
