"""A file carried into a landing table, once: on after what has landed of it, refused where it differs there."""

from collections.abc import Callable
from dataclasses import dataclass

from console.drivers.protocol import Driver
from console.errors import Conflict, ConsoleError, DataError, Unreachable
from console.model.load import MARK_BYTES, MOVED, SCHEMA_MOVED, START, EventRun, Landed, LoadState, first_difference
from console.runner.ingest.events import Events, Piece

TRIES = 20  # each of them after somebody else's commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """rows were added now, `before` of the file's had landed earlier."""

    load: str
    rows: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stand:
    """How far a file has landed.

    older  the batch under which a console without loads sent what has
    """

    load: str
    first: str
    rows: int = 0
    chain: bytes = START
    older: str = ""


class Sending:
    """One file on its way into one table.

    load  the name of its load, which a person gave if `named`
    told  hears how many rows were added so far
    """

    def __init__(
        self,
        driver: Driver,
        pipeline: str,
        table: str,
        file: Events,
        *,
        load: str,
        named: bool,
        told: Callable[[int], None],
    ) -> None:
        self._driver = driver
        self._pipeline, self._table = pipeline, table
        self._file = file
        self._load, self._named = load, named
        self._told = told
        self._rows = 0  # added by us
        self._stand = _Stand(load=load, first=file.first.hex())
        self._in_flight: Piece | None = None

    async def carry(self) -> Carried:
        """raises  what the region raises, saying which lines have landed; DataError E_LOAD_DIFFERS"""
        before = -1
        for attempt in range(TRIES):
            stand = self._stand = await self._found()
            before = stand.rows if before < 0 else before
            try:
                schema = await self._checked(stand)
                await self._send(stand, schema)
            except Conflict as error:
                if error.code not in (MOVED, SCHEMA_MOVED) or attempt == TRIES - 1:
                    raise self._landed_by_then(error) from None
            except ConsoleError as error:
                raise self._landed_by_then(error) from None
            else:
                break
        return Carried(load=self._stand.load, rows=self._rows, before=before)

    def landed(self) -> str:
        """What has landed for certain, in words; "" for nothing."""
        if not self._stand.rows:
            return ""
        rows = f"{self._stand.rows:,} rows"
        try:
            first, last = self._file.line(1), self._file.line(self._stand.rows)
        except Conflict:  # its lines are others by now
            return f"{rows} have landed as load {self._stand.load}"
        return f"lines {first:,}–{last:,} ({rows}) have landed as load {self._stand.load}"

    # -- where it stands

    async def _found(self) -> _Stand:
        """raises  DataError E_LOAD_DIFFERS"""
        file, first = self._file, self._file.first.hex()
        found = await self._ask(self._load, named=self._named)
        chains = file.chains({file.count, *(head.rows for head in found.heads)})
        if same := [head for head in found.heads if _is(head, chains)]:
            best = max(same, key=lambda head: (head.rows, head.load == self._load))
            return _Stand(load=best.load, first=best.first, rows=best.rows, chain=chains[best.rows])
        if found.older:
            rows = file.older_end(found.older)
            if rows == file.count or not found.heads:
                return _Stand(
                    load=self._load, first=first, rows=rows, chain=file.chains((rows,))[rows], older=file.batch
                )
        for head in found.heads:
            ends = (await self._ask(head.load, named=True, after=file.count - 1)).ends
            if ends and _is(ends[0], chains):
                return _Stand(load=head.load, first=first, rows=file.count, chain=chains[file.count])
        if found.heads:
            own = next((head for head in found.heads if head.load == self._load), found.heads[-1])
            raise await self._differs(own)
        return _Stand(load=self._load, first=first)

    async def _ask(self, load: str, *, named: bool, after: int = 0) -> LoadState:
        file = self._file
        return await self._driver.landed(
            self._pipeline, self._table, load, file.first.hex(), named=named, batch=file.batch, after=after
        )

    async def _differs(self, head: Landed) -> DataError:
        """Names the first line that is not the one which landed."""
        same, other = 0, head
        while ends := (await self._ask(head.load, named=True, after=same)).ends:
            chains = self._file.chains({end.rows for end in ends})
            if part := next((end for end in ends if not _is(end, chains)), None):
                other = part
                break
            same = ends[-1].rows
        marks = await self._driver.marks(self._pipeline, self._table, head.load, other.rows)
        after = other.rows - len(marks) // MARK_BYTES
        event = first_difference(self._file.marks(after, other.rows), marks) if marks else 0
        landed = f"what load {head.load} has landed ({head.rows:,} rows)"
        if event > 1 or (event and after == same):
            said = f"line {self._file.line(after + event):,} differs from {landed}"
        elif marks and not event:
            said = f"it ends after line {self._file.line(self._file.count):,}, before {landed}"
        else:
            said = (
                f"one of the lines {self._file.line(same + 1):,}–{self._file.line(other.rows):,} differs from {landed}"
            )
        return DataError(
            f"{self._file.name}: {said}; nothing was written",
            hint="with the lines that landed in their place it goes on after them; --load NAME lands it whole, as another load",
            code="E_LOAD_DIFFERS",
        )

    # -- on its way

    async def _checked(self, stand: _Stand) -> str:
        """What all its lines that have not landed fit; "" where they are few enough to be refused or written together."""
        self._in_flight = None
        if self._file.count == stand.rows or _alone(self._file, stand.rows):
            return ""
        while True:
            fits = ""
            for piece in self._file.pieces(stand.rows):
                schema = await self._driver.check(self._pipeline, self._table, piece.events, piece.at)
                if fits not in ("", schema):
                    break  # the table's columns changed meanwhile
                fits = schema
            else:
                return fits

    async def _send(self, stand: _Stand, schema: str) -> None:
        rows, chain = stand.rows, stand.chain
        for piece in self._file.pieces(stand.rows):
            run = EventRun(
                load=stand.load, first=stand.first, after=rows, before=chain.hex(), at=piece.at,
                schema=schema, named=self._named, older=stand.older,
            )  # fmt: skip
            self._in_flight = piece
            done = await self._driver.ingest(self._pipeline, self._table, f"{stand.load}/{rows}", piece.events, run)
            end, _ = run.end(piece.events)
            rows, chain, self._in_flight = end.rows, bytes.fromhex(end.chain), None
            self._stand = _Stand(load=stand.load, first=stand.first, rows=rows, chain=chain, older=stand.older)
            self._rows += int(done["rows"])
            self._told(self._rows)

    def _landed_by_then(self, error: ConsoleError) -> ConsoleError:
        """The error, with what it leaves behind."""
        landed, unsure = self.landed(), self._in_flight if isinstance(error, Unreachable) else None
        if error.code in (MOVED, SCHEMA_MOVED):
            error.hint = ""  # which says no more than is said below
            landed = landed or "nothing of it has landed"
        if isinstance(error, DataError):
            error.message = f"{self._file.name}: {error.message}"
            error.hint = "correct it" if landed else error.hint
        if landed:
            error.message += f"; {landed}"
        if unsure:
            error.message += f"; whether lines {unsure.at[0][0]:,}–{sum(unsure.at[-1]) - 1:,} have is not known"
        if landed or unsure:
            error.hint = f"{error.hint}; send the file again: it goes on after what has landed".removeprefix("; ")
        return error


def _is(end: Landed, chains: dict[int, bytes]) -> bool:
    """Whether the file begins with what a load had landed by then."""
    return end.rows in chains and chains[end.rows].hex() == end.chain


def _alone(file: Events, after: int) -> bool:
    """Whether one request takes all that is left."""
    pieces = file.pieces(after)
    next(pieces)
    return next(pieces, None) is None
