"""The demo's folder: the enclosing project, or one that it writes into an empty folder."""

from contextlib import suppress
from pathlib import Path

from console.errors import UsageError
from console.project import find, scaffold

PROJECT = Path(__file__).with_name("project")


def project_root(named: Path | None) -> Path:
    """The project's root; an empty folder is filled with the demo's own project.

    named   from the command line; None: search upward from the current folder
    raises  UsageError if there is no project, but other files
    """
    folder = (named or Path.cwd()).resolve()
    if named and (folder / "regions").is_dir():
        return folder
    with suppress(UsageError):
        if not named:
            return find(folder)
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        hint = "the demo writes its own project into an empty folder: console demo --project NEW"
        raise UsageError(f"{folder} holds no project, and other files", hint=hint)
    scaffold.write(PROJECT, folder)
    return folder
