"""A file of events, read from its start as often as needed and never whole into memory: checked, cut into chunks that fit
a frame, and compared with its landed part.
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import IO

from console.errors import Conflict, DataError
from console.model.load import START, chain_of, link

# of a frame of 1 MiB; the rest is for the request around the lines
CHUNK_BYTES = 900 * 1024
CHUNK_LINES = 20_000
GAP_BYTES = 32  # bytes of a request for the number of a line that does not follow the previous one
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class EventChunk:
    """Consecutive events that fit one request.

    at  (line, number of events from there on, one per line), for every unbroken run of lines
    """

    events: tuple[str, ...]
    at: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A file that was read through once.

    length  its size at that time: bytes appended later do not count
    batch   sha256 of these bytes
    count   lines that hold an event
    first   the chain of the first event
    """

    source: IO[bytes]
    name: str
    length: int
    batch: str
    count: int
    first: bytes

    def chunks(self, after: int = 0, *, gap_bytes: int = GAP_BYTES) -> Iterator[EventChunk]:
        """The events after the first `after`. The same content is always cut at the same places, wherever it starts."""
        counted, room, buffer, at = 0, CHUNK_BYTES, list[str](), list[tuple[int, int]]()
        for line, event in self._events():
            follows = bool(at) and sum(at[-1]) == line
            cost = _cost(event) + (0 if follows else gap_bytes)
            if buffer and (cost > room or len(buffer) == CHUNK_LINES):
                if counted > after:
                    yield _after(buffer, at, max(0, after - (counted - len(buffer))))
                room, buffer, at, follows = CHUNK_BYTES, [], [], False
            buffer.append(event)
            at[-1:] = [(at[-1][0], at[-1][1] + 1)] if follows else [*at[-1:], (line, 1)]
            room -= cost
            counted += 1
        if buffer and counted > after:
            yield _after(buffer, at, max(0, after - (counted - len(buffer))))

    def chains(self, wanted: Collection[int]) -> dict[int, bytes]:
        """The chains up to the events of these numbers, as far as the file has them."""
        chain, chains, highest = START, {0: START}, max(wanted, default=0)
        for number, (_, event) in enumerate(self._events(), 1):
            if number > highest:
                break
            chain = link(chain, event)
            if number in wanted:
                chains[number] = chain
        return chains

    def marks(self, after: int, last: int) -> bytes:
        """The marks of the events after the first `after`, up to event `last`."""
        chain = self.chains((after,)).get(after, START)
        events = (event for number, (_, event) in enumerate(self._events(), 1) if after < number <= last)
        return chain_of(chain, events)[1]

    def line(self, event: int) -> int:
        """The line of an event, counted from 1; the line of the last event if there are fewer."""
        last = 0
        for number, (line, _) in enumerate(self._events(), 1):
            last = line
            if number == event:
                break
        return last

    def older_end(self, commits: int) -> int:
        """Number of events in the first `commits` commits of a console that predates loads."""
        chunks = zip(range(commits), self.chunks(gap_bytes=0), strict=False)
        return sum(len(chunk.events) for _, chunk in chunks)

    def _events(self) -> Iterator[tuple[int, str]]:
        """(line, event) for every line that holds one.

        raises  Conflict E_FILE_CHANGED, at the end at the latest, if the bytes differ from those read first
        """
        self.source.seek(0)
        digest, read = hashlib.sha256(), 0
        for number, full_line in enumerate(_lines(self.source), 1):
            raw = full_line[: self.length - read]
            read += len(raw)
            digest.update(raw)
            try:
                event = raw.decode().strip()
            except UnicodeDecodeError:
                raise self._changed() from None
            if event:
                yield number, event
            if read >= self.length:
                break
        if digest.hexdigest() != self.batch:
            raise self._changed()

    def _changed(self) -> Conflict:
        return Conflict(
            f"{self.name} was changed or cut off while it was being sent",
            hint="send a copy that is not being written",
            code="E_FILE_CHANGED",
        )


def _after(buffer: list[str], at: list[tuple[int, int]], skipped: int) -> EventChunk:
    """A chunk without its first `skipped` events."""
    remaining, to_skip = [], skipped
    for line, count in at:
        if to_skip < count:
            remaining.append((line + to_skip, count - to_skip))
        to_skip = max(0, to_skip - count)
    return EventChunk(tuple(buffer[skipped:]), tuple(remaining))


def examine(source: IO[bytes], name: str) -> Events:
    """Read and check the whole file before anything is sent; of a file that grows meanwhile, only the part read counts.

    raises  DataError naming the first lines that are not JSON objects, or too long to be sent
    """
    digest, length, events, first = hashlib.sha256(), 0, 0, START
    wrong: list[str] = []
    for number, raw in enumerate(_lines(source), 1):
        digest.update(raw)
        length += len(raw)
        if not raw.strip():
            continue
        events += 1
        if reason := _fault(raw):
            wrong.append(f"{name}:{number}: {reason}")
            if len(wrong) == _SHOWN:
                break
        elif events == 1:
            first = link(START, raw.decode().strip())
    if wrong:
        raise DataError("; ".join(wrong), hint="one JSON object a line, UTF-8; nothing was sent")
    if not events:
        raise DataError(f"{name}: no events", hint="one JSON object a line")
    return Events(source=source, name=name, length=length, batch=digest.hexdigest(), count=events, first=first)


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Line by line, with lines that are too long in pieces: a file that is not text must not fill the memory."""
    while line := source.readline(CHUNK_BYTES + 1):
        yield line


def _fault(raw: bytes) -> str:
    if len(raw) > CHUNK_BYTES:
        return f"longer than {CHUNK_BYTES:,} bytes"
    try:
        text = raw.decode()
        if not isinstance(json.loads(text), dict):
            return "no JSON object"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return "" if _cost(text) + GAP_BYTES <= CHUNK_BYTES else f"longer than {CHUNK_BYTES:,} bytes"


def _cost(line: str) -> int:
    """Bytes of a line in a request, where it is escaped as a JSON string."""
    return len(json.dumps(line)) + 1
