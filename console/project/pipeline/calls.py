"""Recorded calls of endpoints, `endpoints/<name>.calls.yaml`: read, checked against the endpoint, and written.

They are part of no digest: recording a call does not change the pipeline.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from console.errors import DataError, Problem, Problems
from console.model.pipeline import Endpoint, Parameter
from console.model.recorded_call import MOST_OF_ENDPOINT, CallBudget, RecordedCall
from console.project import documents as docs
from console.project import values
from console.project.explain import validated
from console.project.names import Unfit, did_you_mean
from console.project.yaml import Document, Keys, parse

_KEY = "calls"
_PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?|true|false|\d{4}-\d{2}-\d{2}")
_ITEM = re.compile(r" *- +")


class BudgetDoc(docs.Doc):
    """The most that one call of the new release may read."""

    files: Annotated[int | None, BeforeValidator(values.count)] = None
    bytes: Annotated[int | None, BeforeValidator(values.size)] = None


class CallDoc(docs.Doc):
    """One call. differs: why its answer may change when its meaning does"""

    parameters: dict[str, docs.Scalar] = Field(default_factory=dict)
    name: Annotated[str, Field(max_length=60)] = ""
    differs: Annotated[str, Field(max_length=200)] = ""
    budget: BudgetDoc = BudgetDoc()


class CallsDoc(docs.Doc):
    """endpoints/<name>.calls.yaml."""

    calls: Annotated[list[CallDoc], Field(max_length=MOST_OF_ENDPOINT, default_factory=list)]


def declared(
    documents: Mapping[str, Document], endpoints: Sequence[Endpoint], written: Sequence[str]
) -> tuple[tuple[RecordedCall, ...], list[Problem]]:
    """The calls of all files, and their problems.

    documents  by endpoint
    endpoints  without those that have problems of their own
    written    endpoints that have a file, valid or not
    """
    known = {endpoint.name: endpoint for endpoint in endpoints}
    calls: list[RecordedCall] = []
    problems: list[Problem] = []
    for name, document in sorted(documents.items()):
        if name not in written:
            hint = did_you_mean(name, written, "endpoints")
            where = f"{document.file}:1:1"
            problems.append(Problem(code="P035", message=f"no endpoint is named `{name:.60}`", where=where, hint=hint))
            continue
        made, wrong = calls_of(name, document)
        problems += wrong
        if name in known:
            problems += [problem for call in made for problem in _unfit(call, known[name].parameters)]
        calls += made
    return tuple(calls), problems


def calls_of(endpoint: str, document: Document) -> tuple[tuple[RecordedCall, ...], list[Problem]]:
    """The calls of one file, in its order."""
    doc, problems = validated(CallsDoc, document, endpoint)
    if doc is None:
        return (), problems
    calls: dict[str, RecordedCall] = {}
    for number, spec in enumerate(doc.calls):
        at: Keys = (_KEY, number)
        name = spec.name or _number(number)
        if name in calls:
            message = f"two calls are named `{name:.60}`: this one and the one at {calls[name].where}"
            where = document.place((*at, "name"))
            problems.append(
                Problem(code="P030", message=message, where=where, hint="rename one of them", node=endpoint)
            )
        parameters = ((key, document.raw.get((*at, "parameters", key), "")) for key in spec.parameters)
        calls[name] = RecordedCall(
            endpoint=endpoint,
            name=name,
            parameters=tuple(parameters),
            differs=spec.differs,
            budget=CallBudget(spec.budget.files, spec.budget.bytes),
            where=document.place(at),
        )
    return tuple(calls.values()), problems


def _unfit(call: RecordedCall, parameters: Sequence[Parameter]) -> Iterator[Problem]:
    """Parameters that the endpoint does not have, that a call lacks, and values of another type."""
    known = {parameter.name: parameter for parameter in parameters}
    given = dict(call.parameters)
    for name, value in call.parameters:
        if name not in known:
            message = f"parameters: {call.endpoint} has no parameter `{name:.60}`"
            hint = did_you_mean(name, known, "parameters")
            yield Problem(code="P035", message=message, where=call.where, hint=hint, node=call.endpoint)
            continue
        try:
            values.check(known[name].type, value)
        except ValueError as error:
            result = f", found `{value:.60}`" if isinstance(error, Unfit) else ""
            message = f"parameters.{name} is {known[name].type}: {error}{result}"
            yield Problem(code="P012", message=message, where=call.where, node=call.endpoint)
    for name, parameter in known.items():
        if parameter.default is None and name not in given:
            message = f"parameters: `{name}` of {call.endpoint} is missing"
            hint = f"write parameters: {{{name}: …}}"
            yield Problem(code="P011", message=message, where=call.where, hint=hint, node=call.endpoint)


def recorded(endpoint: str, text: str, file: str) -> tuple[RecordedCall, ...]:
    """The calls of a file's text.

    raises  Problems
    """
    document = parse(text, file)
    if not document.data:
        return ()
    calls, problems = calls_of(endpoint, document)
    if problems:
        raise Problems.of(problems)
    return calls


def with_call(text: str, file: str, call: RecordedCall) -> str:
    """The text of a file with one call appended; comments and everything else stay unchanged.

    text    "" for a new file
    call    its name may be "": then it has none in the file
    file    as shown in errors
    raises  DataError if the call cannot be appended; Problems if the file is invalid
    """
    before = recorded(call.endpoint, text, file)
    indent = _indent(text, file, len(before)) if before else "  "
    head = text if not text or text.endswith("\n") else f"{text}\n"
    if not before:
        head += f"{_KEY}:\n"
    made = f"{head}{indent}- {_entry(call)}\n"
    try:
        after = recorded(call.endpoint, made, file)
    except Problems:
        after = ()
    if [_content(one) for one in after] != [_content(one) for one in (*before, _numbered(call, len(before)))]:
        hint = "write the calls as a list, one `- ` line each, at the end of the file"
        raise DataError(f"{file}: a call cannot be appended to the others", hint=hint)
    return made


def _numbered(call: RecordedCall, before: int) -> RecordedCall:
    return call if call.name else replace(call, name=_number(before))


def _number(at: int) -> str:
    return f"call {at + 1}"


def _content(call: RecordedCall) -> tuple[object, ...]:
    return call.name, call.parameters, call.differs, call.budget


def _indent(text: str, file: str, calls: int) -> str:
    """The text in front of the dash of the last call; two blanks without a dash."""
    place = parse(text, file).place((_KEY, calls - 1))
    line = text.splitlines()[int(place.split(":")[-2]) - 1]
    dash = _ITEM.match(line)
    return dash[0].partition("-")[0] if dash else "  "


def _entry(call: RecordedCall) -> str:
    parameters = ", ".join(f"{_written(name)}: {_written(value)}" for name, value in call.parameters)
    name = f"name: {_written(call.name)}, " if call.name else ""
    return f"{{{name}parameters: {{{parameters}}}}}"


def _written(value: str) -> str:
    """A scalar in YAML's flow style: numbers and days as they are, all else as in JSON."""
    if _PLAIN.fullmatch(value) or re.fullmatch(r"[A-Za-z_]\w{0,40}", value, re.ASCII):
        return value
    return json.dumps(value, ensure_ascii=False)
