"""`console endpoint NAME --record`: append an operator's call to the file of the endpoint's recorded calls."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context
from console.errors import DataError
from console.model.recorded_call import MOST_OF_ENDPOINT, RecordedCall
from console.project.pipeline.calls import recorded, with_call
from console.project.pipeline.folder import CALLS
from console.project.yaml import read_text
from console.text import safe_text


def record_call(project: OpenProject, endpoint: str, given: Mapping[str, str]) -> None:
    """Append the call to the file, unless it is already there.

    given   parameter → value, as the operator gave them
    raises  DataError where the files have no such endpoint, or the file cannot take the call; Problems
    """
    root = project.files.root
    path = root / "plans" / project.pipeline / "endpoints" / f"{endpoint}{CALLS}"
    shown = path.relative_to(root).as_posix()
    if not path.with_name(f"{endpoint}.sql").exists():
        hint = "a call is recorded for an endpoint that the files have: console plan shows what differs"
        raise DataError(f"{endpoint} is live and not among the files: {shown} was not written", hint=hint)
    text = read_text(path, root) if os.path.lexists(path) else ""
    call = RecordedCall(endpoint=endpoint, name="", parameters=tuple(given.items()))
    before = recorded(endpoint, text, shown)
    same = next((one for one in before if dict(one.parameters) == dict(given)), None)
    output = Output(cli_context().flags)
    if same is not None:
        output.info(safe_text(f"recorded already, as `{same.name}` of {shown}"))
        return
    if len(before) >= MOST_OF_ENDPOINT:
        raise DataError(f"{shown} holds {MOST_OF_ENDPOINT} calls, and no more are run", hint="remove one of them")
    _write(path, with_call(text, shown, call))
    output.info(safe_text(f"recorded in {shown}"))


def _write(path: Path, text: str) -> None:
    """Replace the file atomically, with its permissions."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        with NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=".", delete=False) as file:
            file.write(text)
        os.chmod(file.name, mode)
        os.replace(file.name, target)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
