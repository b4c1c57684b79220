"""Files that a command writes for other programs: whole or not at all."""

import os
from pathlib import Path
from uuid import uuid4

from console.errors import DataError


def write_whole(path: Path, text: str) -> None:
    """Replace a file by one rename: readers see the old or the new one, even if this process is killed.

    raises  DataError, naming the file; the old one is left unchanged
    """
    beside = path.with_name(f".{path.name}.{uuid4().hex[:12]}")
    try:
        try:
            with open(beside, "x", encoding="utf-8", newline="") as file:  # a link of that name is not followed
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
