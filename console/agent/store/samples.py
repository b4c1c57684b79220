"""`_console/samples`: a ring of fixed-size records in one file, the figures of the last day. Written by the agent alone.

A partial record, of a killed agent or during an overwrite, does not match its checksum and is skipped. Records are
ordered by number, since a clock may be set back. Nothing is flushed to disk: after a power loss the last
seconds may be missing.
"""

import math
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from console.agent.store.host_folder import own_folder
from console.model.measured import FeedSample, SamplePage

RECORD_BYTES = 128
CAPACITY = 1 << 18  # records, 32 MiB: a day for a pipeline with 29 feeds, fewer hours for more
PAGE_SAMPLES = 4_000  # that fit into one message
CHUNK = 2_048  # records read at once
# Consecutive records that are too old, after which a reader stops: a clock that was wrong for a while hides no others.
OLD_IN_A_ROW = 4_000
_HEADER = b"console samples 1\n".ljust(RECORD_BYTES, b"\0")
_FIGURES = struct.Struct("<QdfffQB")  # number, at, rows, lag, backfill, behind, bytes of the name
_NAME_BYTES = RECORD_BYTES - 4 - _FIGURES.size
_MOST = 3e38  # of a single-precision number


class SampleRing:
    """The file, opened for appending by an agent and for reading by anybody.

    last_at  time of the newest sample, seconds since 1970, UTC; 0 if there is none
    """

    def __init__(self, warehouse: Path, capacity: int = CAPACITY) -> None:
        self.path = own_folder(warehouse) / "samples"
        self._capacity = capacity
        self._next, self.last_at = self._newest()

    def append(self, pipeline: str, samples: Sequence[FeedSample]) -> None:
        """Append samples, overwriting the oldest ones.

        raises  OSError if they cannot be written; the next call overwrites them
        """
        records = b"".join(_record(self._next + at, pipeline, sample) for at, sample in enumerate(samples))
        first = self._next % self._capacity
        before_end = (self._capacity - first) * RECORD_BYTES
        file = self._opened()
        try:
            _write(file, records[:before_end], first)
            _write(file, records[before_end:], 0)
        finally:
            os.close(file)
        self._next += len(samples)
        self.last_at = max((sample.at for sample in samples), default=self.last_at)

    def page(
        self, pipeline: str, since: float, feed: str | None = None, before: int = 0, most: int = PAGE_SAMPLES
    ) -> SamplePage:
        """The newest samples of a pipeline, or those before an earlier page.

        since   seconds since 1970, UTC
        feed    "" for the pipeline's own samples, None for those of all feeds as well
        before  first number of the earlier page; 0 for the newest
        """
        chosen: list[FeedSample] = []
        name, newest, too_old = _name(pipeline, feed or ""), math.inf, 0
        end = min(before or self._next, self._next)
        for number, its_name, sample in self._backwards(end):
            if sample.at > newest:  # from before a clock was set back
                continue
            newest = sample.at
            too_old = too_old + 1 if sample.at < since else 0
            if too_old > OLD_IN_A_ROW:
                break
            if too_old or not (its_name.startswith(name) if feed is None else its_name == name):
                continue
            chosen.append(sample)
            if len(chosen) >= most:
                return SamplePage(samples=tuple(reversed(chosen)), before=number)
        return SamplePage(samples=tuple(reversed(chosen)))

    def since(self, pipeline: str, since: float) -> tuple[FeedSample, ...]:
        """All samples of a pipeline and its feeds from a time on, oldest first."""
        return self.page(pipeline, since, most=self._capacity).samples

    def _backwards(self, end: int) -> Iterator[tuple[int, bytes, FeedSample]]:
        """Number, name and sample of each intact record before a number, the newest first."""
        oldest = max(0, self._next - self._capacity)
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            if file.read(RECORD_BYTES) != _HEADER:
                return
            while end > oldest:
                slot = (end - 1) % self._capacity
                count = min(CHUNK, slot + 1, end - oldest)
                file.seek((1 + slot + 1 - count) * RECORD_BYTES)
                data = file.read(count * RECORD_BYTES)
                for at in reversed(range(len(data) // RECORD_BYTES)):
                    number = end - count + at
                    record = _read(data[at * RECORD_BYTES : (at + 1) * RECORD_BYTES])
                    if record is not None and record[0] == number:
                        yield record
                end -= count

    def _newest(self) -> tuple[int, float]:
        """The number after the newest intact record, and its time."""
        data = b""
        with suppress(FileNotFoundError):
            data = self.path.read_bytes()
        if data[:RECORD_BYTES] != _HEADER:
            return 0, 0.0
        whole = len(data) // RECORD_BYTES
        numbers = (
            (int.from_bytes(data[at * RECORD_BYTES + 4 : at * RECORD_BYTES + 12], "little"), at)
            for at in range(1, whole)
        )
        for number, at in sorted(numbers, reverse=True):
            record = _read(data[at * RECORD_BYTES : (at + 1) * RECORD_BYTES])
            if record is not None and number % self._capacity == at - 1:
                return number + 1, record[2].at
        return 0, 0.0

    def _opened(self) -> int:
        """The file for writing; recreated if it is not a valid ring."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.pread(file, RECORD_BYTES, 0) != _HEADER:
                os.ftruncate(file, 0)
                os.pwrite(file, _HEADER, 0)
        except OSError:
            os.close(file)
            raise
        return file


def _write(file: int, records: bytes, slot: int) -> None:
    if records and os.pwrite(file, records, (1 + slot) * RECORD_BYTES) < len(records):
        raise OSError("the disk took a part of the samples")


def _record(number: int, pipeline: str, sample: FeedSample) -> bytes:
    name = _name(pipeline, sample.feed)
    rates = (_finite(sample.rows), _finite(sample.lag), _finite(sample.backfill))
    body = _FIGURES.pack(number, sample.at, *rates, max(0, sample.behind), len(name)) + name.ljust(_NAME_BYTES, b"\0")
    return zlib.crc32(body).to_bytes(4, "little") + body


def _read(record: bytes) -> tuple[int, bytes, FeedSample] | None:
    """Number, name and sample; None for a partial or unwritten record."""
    body = record[4:]
    if zlib.crc32(body) != int.from_bytes(record[:4], "little"):
        return None
    number, at, rows, lag, backfill, behind, length = _FIGURES.unpack_from(body)
    name = body[_FIGURES.size : _FIGURES.size + length]
    feed = name.partition(b"\0")[2].decode(errors="replace")
    figures = {"rows": round(rows, 3), "lag": round(lag, 3), "backfill": round(backfill, 3)}
    return number, name, FeedSample(at=at, feed=feed, behind=behind, **figures)


def _name(pipeline: str, feed: str) -> bytes:
    """Pipeline and feed; a name too long for a record is truncated, with a digest to keep it unique."""
    first = _cut(pipeline, _NAME_BYTES // 2)
    return first + b"\0" + _cut(feed, _NAME_BYTES - len(first) - 1)


def _cut(text: str, most: int) -> bytes:
    data = text.encode()
    return data if len(data) <= most else data[: most - 9] + b"~" + sha256(data).hexdigest()[:8].encode()


def _finite(figure: float) -> float:
    return min(max(figure, 0.0), _MOST) if math.isfinite(figure) else 0.0
