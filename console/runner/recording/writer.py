"""Writes a recording while a console watches: each change of a view becomes a line immediately."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import console
from console.errors import ConsoleError, RegionError, UsageError
from console.model.event import Recorded
from console.model.region import Region
from console.runner.recording.entry import FORMAT, FORMAT_VERSION, Entry, Header, difference, entry_line, header_line
from console.runner.view import RegionView


class RecordingWriter:
    """Observer of a `RegionBoard`. A file that cannot be written ends only the recording, not the console or a rollout.

    path   a new file, which only its owner may read
    error  why recording has stopped; None while it works
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.error: ConsoleError | None = None
        self._clock = clock
        self._latest = 0.0
        self._file = -1

    def open(self, pipeline: str, regions: Iterable[Region]) -> None:
        """Create the file with its header.

        raises  UsageError for a file that already exists or cannot be created
        """
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise UsageError(f"{self.path} is there already", hint="name a new file for the recording") from None
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}", hint="name a file that can be written") from None
        self._write(header_line(header(pipeline, regions, self._now())))

    def begin(self, views: Mapping[str, RegionView]) -> None:
        """Write the current state."""
        for view in views.values():
            self(RegionView(region=view.region), view, None)

    def __call__(self, before: RegionView, after: RegionView, recorded: Recorded | None) -> None:
        if self._file < 0:
            return
        entry = difference(before, after, recorded, self._now())
        if entry.event or entry.fields or entry.samples:
            self._write(entry_line(entry))

    def close(self) -> None:
        """Write the end; a second call does nothing."""
        if self._file >= 0:
            self._write(entry_line(Entry(at=self._now(), ended=True)))
            os.close(self._file)
            self._file = -1

    def _now(self) -> float:
        """The time of the next line, in milliseconds; never before that of the last one, even if the clock is set back."""
        self._latest = max(self._latest, round(self._clock(), 3))
        return self._latest

    def _write(self, line: bytes) -> None:
        """One line at a time, so that a killed console loses at most the last one."""
        try:
            while line and self._file >= 0:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            os.close(self._file)
            self._file = -1
            self.error = RegionError(
                f"{self.path}: recording ended: {error.strerror}",
                hint="the part recorded so far can be played: console playback FILE",
                code="E_RECORDING",
            )


def header(pipeline: str, regions: Iterable[Region], began: float) -> Header:
    return Header(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tool=f"console {console.__version__}",
        pipeline=pipeline,
        began=began,
        regions=tuple(regions),
    )
