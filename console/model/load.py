"""A load: the events of one file on their way into a landing table, read from the commits that carried them.

Each event is identified by the chain of digests up to it, which does not depend on commit boundaries: a file
contains the events of a commit if its chain at the last of them equals the chain in the commit's note.
"""

import hashlib
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence

from console.errors import LoadMoved
from console.record import dataclass

START = bytes(16)
MARK_BYTES = 3  # bytes of each event's chain, stored with the commit: they only show where two files diverge
NAME_LENGTH = 120


def link(before: bytes, event: str) -> bytes:
    """The chain up to an event, from the chain before it."""
    return hashlib.blake2b(before + event.encode(), digest_size=len(START)).digest()


def chain_of(before: bytes, events: Iterable[str]) -> tuple[bytes, bytes]:
    """(the chain after these events, a mark for each of them)"""
    chain, marks = before, bytearray()
    for event in events:
        chain = link(chain, event)
        marks += chain[:MARK_BYTES]
    return chain, bytes(marks)


def first_difference(ours: bytes, theirs: bytes) -> int:
    """The first event, counted from 1, at which two sequences of marks differ; 0 where one is a prefix of the other."""
    pairs = range(0, min(len(ours), len(theirs)), MARK_BYTES)
    return next((at // MARK_BYTES + 1 for at in pairs if ours[at : at + MARK_BYTES] != theirs[at : at + MARK_BYTES]), 0)


def valid_name(name: str) -> bool:
    return 0 < len(name) <= NAME_LENGTH and name.isprintable() and name == name.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """Events 1…rows of a load: its state after one of its commits.

    first, chain  hex: chain of the load's first event, and of the last one here
    line          line of the file with that last event
    """

    load: str
    first: str
    chain: str
    rows: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRun:
    """The place of a batch of events in its file.

    after, before  how many events of the load precede these, and the chain up to there, in hex
    at             (first line, number of events, one a line) of every contiguous piece
    schema         id of the schema against which the file's lines were validated; "" if the batch is the whole file
    named          a person chose the load's name, which then takes precedence over other loads
    older          batch id under which a console without loads sent the events before these, or ""
    """

    load: str
    first: str
    after: int
    before: str
    at: tuple[tuple[int, int], ...]
    schema: str = ""
    named: bool = False
    older: str = ""

    def end(self, events: Sequence[str]) -> tuple[Landed, bytes]:
        """The load's end after these events, and their marks.

        raises  ValueError if a chain is not hex
        """
        chain, marks = chain_of(bytes.fromhex(self.before), events)
        rows, line = self.after + len(events), sum(self.at[-1]) - 1
        return Landed(load=self.load, first=self.first, chain=chain.hex(), rows=rows, line=line), marks


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """The progress of the loads that a file may belong to.

    heads  the newest end of each of them
    ends   of the load requested by name: the ends of its commits after a given event
    older  commits of the same content by a console without loads
    """

    heads: tuple[Landed, ...] = ()
    ends: tuple[Landed, ...] = ()
    older: int = 0


class Loads:
    """All loads of one table."""

    def __init__(self) -> None:
        self._ends: dict[str, list[Landed]] = defaultdict(list)  # by rows
        self._known: set[tuple[str, str]] = set()  # (load, chain)
        self._by_first: dict[str, set[str]] = defaultdict(set)  # first event → loads
        self._older: dict[str, set[int]] = defaultdict(set)  # batch → its commits

    def add(self, end: Landed) -> None:
        if (end.load, end.chain) not in self._known:
            self._known.add((end.load, end.chain))
            self._by_first[end.first].add(end.load)
            insort(self._ends[end.load], end, key=lambda landed: landed.rows)

    def add_older(self, batch: str, number: int) -> None:
        self._older[batch].add(number)

    def older(self, batch: str) -> int:
        """The number of landed consecutive commits of a batch, sent by a console without loads."""
        numbers = self._older.get(batch, set())
        return next(number for number in range(len(numbers) + 1) if number + 1 not in numbers)

    def head(self, load: str) -> Landed | None:
        ends = self._ends.get(load)
        return ends[-1] if ends else None

    def alike(self, load: str, first: str) -> tuple[Landed, ...]:
        """Heads of the load of this name and of loads that begin with the same event."""
        names = sorted({load, *self._by_first.get(first, ())})
        return tuple(head for name in names if (head := self.head(name)))

    def state_for(self, load: str, first: str, *, named: bool, batch: str, after: int, most: int) -> LoadState:
        """Loads that a file may belong to: the one of this name and, unless a person `named` it, those with the same first event.

        batch  id under which a console without loads would have sent the file
        after, most  lists the ends of `load` beyond this event, at most this many
        """
        ends, head = self._ends.get(load, []), self.head(load)
        start = bisect_right(ends, after, key=lambda landed: landed.rows)
        heads = ((head,) if head else ()) if named else self.alike(load, first)
        return LoadState(heads=heads, ends=tuple(ends[start : start + most]), older=0 if named else self.older(batch))

    def place(self, run: EventRun, end: Landed) -> bool:
        """Whether these events may follow now; False if they have landed already.

        raises  Conflict E_LOAD_MOVED if the load has changed since the sender read its state
        """
        if (end.load, end.chain) in self._known:
            return False
        head = self.head(run.load)
        if head is not None:
            fits = (head.rows, head.chain) == (run.after, run.before)
        else:
            new = run.named or not self.alike(run.load, run.first)
            fits = new and (run.after == 0 or self.older(run.older) > 0)
        if not fits:
            stands = f"has {head.rows:,} rows now" if head else "began meanwhile"
            raise LoadMoved(f"load {run.load} {stands}: somebody else sends it too", hint="send the file again")
        return True
