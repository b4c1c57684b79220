"""Creates a new project from files of the package; never overwrites a file."""

import os
from pathlib import Path

from console.errors import UsageError

TEMPLATE = Path(__file__).with_name("template")
_HIDDEN = {"gitignore": ".gitignore"}  # a package carries no hidden files
_KEPT = (".gitignore",)  # an existing one is left unchanged


def write(source: Path, root: Path) -> tuple[str, ...]:
    """Copy the files of `source`, all or none, and make the folder where it is missing.

    returns  the new files, as paths below the root
    raises  UsageError if parts of a project already exist
    """
    files = {_HIDDEN.get(name, name): (source / name).read_bytes() for name in _names(source)}
    there = sorted({name.partition("/")[0] for name in files if name not in _KEPT})
    if taken := [name for name in there if os.path.lexists(root / name)]:
        hint = "a new project goes into a folder of its own: mkdir NAME, then --project NAME"
        raise UsageError(f"{root}: {' and '.join(taken)} there already; nothing was written", hint=hint)
    written = tuple(name for name in sorted(files) if not os.path.lexists(root / name))
    for name in written:
        _put(root / name, files[name])
    return written


def _names(source: Path) -> list[str]:
    """Files below the folder and below those that it links to; without saved plans, which belong to their owner."""
    files = []
    for top in source.iterdir():
        inside = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
        files += [path.relative_to(source).as_posix() for path in inside]
    return [name for name in files if not name.startswith("plans/saved/")]


def _put(path: Path, data: bytes) -> None:
    # regardless of the umask: a project that others may write to is refused
    for folder in reversed(path.parents):
        if not folder.is_dir():
            folder.mkdir(mode=0o755)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
        file.write(data)
