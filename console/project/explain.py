"""Pydantic's errors in the operator's terms: the place, the expected and the actual value, the probable meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from console.errors import Problem
from console.project.documents import Doc, fields
from console.project.names import Misspelt, Unfit, did_you_mean, nearest
from console.project.yaml import Document, Keys

D = TypeVar("D", bound=Doc)
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "too_short": "at least one",
}
_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_SECRET = frozenset(("secrets", "key", "conf"))


def validated(kind: type[D], document: Document, node: str = "") -> tuple[D | None, list[Problem]]:
    """The document as `kind`, or all its problems, in the order of the file."""
    try:
        return kind.model_validate(document.data), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True, include_input=True)
        meant = {(detail["loc"][:-1], _meant(kind, detail["loc"])) for detail in details if _strange(detail)}
        # a misspelt key is one mistake, not also a missing one
        reported = [
            detail for detail in details if not (detail["type"] == "missing" and _split(detail["loc"]) in meant)
        ]
        return None, sorted((_problem(kind, document, detail, node) for detail in reported), key=_order)


def _order(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.where.rsplit(":", 2)
    return file, int(line), int(column)


def _strange(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _split(path: Keys) -> tuple[Keys, str]:
    return path[:-1], str(path[-1]) if path else ""


def _meant(kind: type[Doc], path: Keys) -> str:
    return nearest(str(path[-1]), _fields(kind, path[:-1]))


def _problem(kind: type[Doc], document: Document, detail: ErrorDetails, node: str) -> Problem:
    path: Keys = detail["loc"]
    name = str(path[-1]) if path else ""
    code = detail["type"]
    if _strange(detail):
        hint = did_you_mean(name, _fields(kind, path[:-1]), "known keys")
        return Problem(
            code="P010",
            message=f"{_inside(path)}unknown key `{name}`",
            where=document.place(path, key=True),
            hint=hint,
            node=node,
        )
    if code == "missing":
        where = document.place(path, key=True)
        return Problem(
            code="P011", message=f"{_inside(path)}`{name}` is missing", where=where, hint=_example(name), node=node
        )
    if path not in document.values and document.raw.get(path[:-1]):
        path = path[:-1]  # `id: strng` is short for `id: {type: strng}`
    misfit = _misfit(detail, document.raw.get(path, ""))
    shown = f"{'.'.join(map(str, path))}: " if path else ""
    message = f"{shown}{misfit.text}{'' if misfit.whole else _actual(document, path)}"
    return Problem(code="P012", message=message, where=document.place(path), hint=misfit.hint, node=node)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Misfit:
    """Why a value does not fit. whole: the text is complete, else the actual value follows it"""

    text: str
    hint: str = ""
    whole: bool = False


def _misfit(detail: ErrorDetails, raw: str) -> _Misfit:
    code, context = detail["type"], detail.get("ctx", {})
    if code == "value_error":
        match context["error"]:
            case Misspelt(message=message, meant=meant):
                return _Misfit(text=message, hint=f"did you mean `{meant}`?", whole=True)
            case Unfit(meant=meant) as error:
                return _Misfit(text=str(error), hint=f"did you mean `{meant}`?" if meant else "")
            case error:
                return _Misfit(text=str(error), whole=True)
    if code == "literal_error":
        choices = [choice.strip("'") for choice in str(context["expected"]).replace(" or ", ", ").split(", ")]
        meant = nearest(str(detail["input"]), choices)
        return _Misfit(text=f"expected one of {', '.join(choices)}", hint=f"did you mean `{meant}`?" if meant else "")
    if code == "bool_type" and raw.lower() in _BOOLS:
        return _Misfit(text="expected true or false", hint=f"write {_BOOLS[raw.lower()]}")
    if code in _EXPECTED:
        return _Misfit(text=f"expected {_EXPECTED[code]}")
    message = detail["msg"].removeprefix("Input should be ")
    return _Misfit(text=f"expected a value {message}")


def _actual(document: Document, path: Keys) -> str:
    match document.get(path):
        case dict():
            return ", found keys and values"
        case list():
            return ", found a list"
        case None:
            return ", found nothing"
        case _ if _SECRET & set(path):
            return ""  # a secret pasted by mistake must not reach a log
        case _:
            text = document.raw.get(path, "")
            return f", found `{text if len(text) <= 60 else text[:59] + '…'}`"


def _inside(path: Keys) -> str:
    return f"{'.'.join(map(str, path[:-1]))}: " if len(path) > 1 else ""


def _example(name: str) -> str:
    examples = {
        "warehouse": "warehouse: s3://bucket/path, or a path below the project",
        "columns": "columns: {id: string, ts: timestamp}",
        "into": "begin the file with /* into: TABLE */",
        "path": "begin the file with /* path: exports/NAME */",
        "type": "type: string",
        "host": "host: eu.example.net",
    }
    return f"write {examples[name]}" if name in examples else ""


def _fields(kind: type[Doc], path: Sequence[str | int]) -> list[str]:
    """The keys that may stand at a path below a document of `kind`."""
    here: Any = kind
    for step in path:
        here = fields(here).get(str(step)) if _is_doc(here) else (get_args(here) or (None,))[-1]
        while get_origin(here) in (Annotated, Union, UnionType):
            here = get_args(here)[0]
    return list(fields(here)) if _is_doc(here) else []


def _is_doc(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
