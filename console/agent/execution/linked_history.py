"""History that is linked: the files of the live version become files of the new one as well, by hard links.

No row is read and no data file is written (docs/decisions/0021). The versions stay independent: a deletion, compaction
or VACUUM removes file names of one of them, never a file that the other has under its own name.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from console.agent.feeds import commit
from console.agent.feeds.backfill import History
from console.agent.rows.data_files import DataFile, files_at
from console.agent.store import log_files
from console.agent.store.file_action import FileAction
from console.agent.store.small_files import sync_folder
from console.errors import RegionError

FOLDER = "linked"  # in the new version; only the log determines a file's partition


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """name: relative to the new version"""

    name: str
    file: DataFile


def link_history(history: History) -> commit.CommitResult:
    """Link all files of the source as of the fence, in one commit with the position of the history's last slice.

    Links of an earlier attempt are reused: their names are derived from the fence.

    raises  RegionError E_LINK if a file is gone or the file system does not support links; FeedStopped as `commit.append`
    """
    files = files_at(history.source_path, history.fence)
    linked = tuple(
        LinkedFile(f"{FOLDER}/{history.fence}-{number:06}-{Path(file.path).name}", file)
        for number, file in enumerate(files)
    )
    folder = log_files.root_of(history.target_path) / FOLDER
    folder.mkdir(exist_ok=True)
    for each in linked:
        _link(each.file.path, log_files.root_of(history.target_path) / each.name)
    sync_folder(folder)
    note = {
        "kind": "history",
        "feed": history.writer.app_id,
        "step": history.step.id,
        "slices": [1, len(history.slices)],
        "linked": {"of": history.source.version.path, "version": history.fence, "files": len(files)},
    }
    actions = [
        FileAction(name=each.name, bytes=each.file.bytes, values=each.file.values,
                          modified=each.file.modified, stats=each.file.stats)
        for each in linked
    ]  # fmt: skip
    return commit.append_files(history.writer, actions, len(history.slices), note)


def _link(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        if not os.path.samefile(source, target):
            raise RegionError(
                f"{target} is another file than {source}", hint="console discard", code="E_LINK"
            ) from None
    except FileNotFoundError:
        message = f"{source}, a file of the version that is taken over, is gone"
        raise RegionError(message, hint="console discard, then plan again", code="E_LINK") from None
    except OSError as error:
        message = f"{source}: the file system cannot link it: {error.strerror}"
        hint = "console discard, then `history: carry`, which copies the rows"
        raise RegionError(message, hint=hint, code="E_LINK") from None
