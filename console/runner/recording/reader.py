"""Reads a recording: the offset and time of each entry when it is opened, the entries as they are played."""

import re
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import BinaryIO

from console.errors import ConsoleError, DataError, NewerFormat
from console.runner.recording.entry import Entry, Header, read_entry, read_header
from console.runner.recording.times import read_time
from console.text import safe_text

LINE_BYTES = 64 << 20  # of one line; a longer one is damage
_HEAD = re.compile(rb'\{"at":(\d{1,12}(?:\.\d{1,9})?)(,"decision":true)?[,}]')


class RecordingReader:
    """A recording in a file, open until `close`.

    times      of its entries, in order, seconds since 1970, UTC
    decisions  indices of the entries that are decisions
    cut        why its end is missing; "" if it was closed properly
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.times = array("d")
        self.decisions = array("Q")
        self._offsets = array("Q")
        self.cut = "the console that wrote it did not close it"
        try:
            self.header: Header = read_header(self._read_line())
        except ConsoleError as error:
            raise self._damaged(1, error) from None
        self._names = frozenset(region.name for region in self.header.regions)
        self._scan()

    @property
    def begins(self) -> float:
        return self.header.began

    @property
    def ends(self) -> float:
        return self.times[-1] if self.times else self.header.began

    def __len__(self) -> int:
        return len(self.times)

    def until(self, at: float) -> int:
        """The number of entries up to a time, inclusive."""
        return bisect_right(self.times, at)

    def entry(self, index: int) -> Entry:
        """raises  DataError naming its line"""
        self._file.seek(self._offsets[index])
        try:
            return read_entry(self._read_line(), self._names)
        except ConsoleError as error:
            raise self._damaged(index + 2, error) from None

    def close(self) -> None:
        self._file.close()

    def _scan(self) -> None:
        latest, number = self.header.began, 1
        while True:
            offset, number = self._file.tell(), number + 1
            line = self._read_line()
            if not line:
                return
            if not line.endswith(b"\n"):
                self.cut = f"line {number} is cut short"
                return
            try:
                at, decision = self._head(line)
            except ConsoleError as error:
                raise self._damaged(number, error) from None
            if at < latest:
                raise self._damaged(number, DataError("its time is before that of the line above"))
            latest = at
            if line.endswith(b'"ended":true}\n') and line.count(b",") == 1:
                self.cut = ""
            if decision:
                self.decisions.append(len(self.times))
            self.times.append(at)
            self._offsets.append(offset)

    def _head(self, line: bytes) -> tuple[float, bool]:
        """Time and mark of an entry, without parsing the rest if it has our own layout."""
        if match := _HEAD.match(line):
            return read_time(float(match[1])), match[2] is not None
        entry = read_entry(line, self._names)
        return entry.at, entry.decision

    def _read_line(self) -> bytes:
        line = self._file.readline(LINE_BYTES + 1)
        if len(line) > LINE_BYTES:
            raise DataError(f"a line has more than {LINE_BYTES >> 20} MiB")
        return line

    def _damaged(self, number: int, error: ConsoleError) -> ConsoleError:
        message = safe_text(f"{self._name}:{number}: {error}", 400)
        if isinstance(error, NewerFormat):
            return NewerFormat(message, hint=error.hint, code=error.code)
        keep = f"the lines above it can be played: head -n {number - 1} {self._name} > NEW; console playback NEW"
        hint = keep if number > 1 else "console watch --record FILE writes a recording"
        return DataError(message, hint=hint, code="E_RECORDING")


def open_recording(path: Path) -> RecordingReader:
    """raises  DataError for a file that cannot be read or is not a recording; NewerFormat"""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(
            f"{path}: {error.strerror}", hint="console watch --record FILE writes one", code="E_RECORDING"
        ) from None
    try:
        return RecordingReader(file, str(path))
    except OSError as error:
        file.close()
        raise DataError(f"{path}: {error.strerror}", hint="name a recording", code="E_RECORDING") from None
    except ConsoleError:
        file.close()
        raise
