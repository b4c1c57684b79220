"""Files of a region that may still hold rows which were deleted or changed in the live release. Never stored. Pure."""

from typing import Literal, assert_never

from console.model.sandbox import time_left
from console.model.way_back import age_text
from console.record import dataclass

Keeper = Literal["previous", "hold", "preview", "retired", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRows:
    """The files of one version of a table that were written before a deletion in the live version, and hold rows of the same partitions.

    keeper   why they are kept: by a release or a preview that names the version; `removed`: the version's own log names them no
             longer, and no VACUUM has deleted them yet
    name     id of the release, or name of the preview
    path     of the version, relative to the warehouse
    at       seconds since 1970, UTC: the newest of these deletions
    until    likewise: when they are, or may be, deleted; 0 if at any time
    """

    table: str
    keeper: Keeper
    name: str
    path: str
    files: int
    bytes: int
    at: float
    until: float = 0.0

    def text(self, now: float) -> str:
        """`requests: 3 files of r1, the previous release, may hold rows erased 2 h ago; they go in 70 h with …`. now: seconds, UTC"""
        files = "1 file" if self.files == 1 else f"{self.files:,} files"
        later = "now" if self.until <= now else f"in {time_left(self.until - now)}"
        match self.keeper:
            case "previous":
                whose, goes = f"{self.name}, the previous release,", f"{later}, with console cleanup --previous"
            case "hold":
                whose, goes = f"{self.name}, which is on hold,", later
            case "preview":
                whose, goes = f"preview {self.name}", f"{later}, or with console preview --drop {self.name}"
            case "retired":
                whose, goes = f"{self.name}, which is retired,", "with console cleanup"
            case "removed":
                whose, goes = f"{self.name} that its table names no longer", f"{later}, with console maintain"
            case _:
                assert_never(self.keeper)
        return f"{self.table}: {files} of {whose} may hold rows erased {age_text(now - self.at)} ago; they go {goes}"
