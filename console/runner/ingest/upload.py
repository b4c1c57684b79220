"""Exactly-once upload of a file into a landing table: resumed after the landed part, refused if that part differs."""

from collections.abc import Callable
from dataclasses import dataclass

from console.drivers.protocol import Driver
from console.errors import Conflict, ConsoleError, DataError, LoadMoved, SchemaMoved, Unreachable
from console.model.load import MARK_BYTES, START, EventRun, Landed, LoadState, first_difference
from console.runner.ingest.events import EventChunk, Events

TRIES = 20  # each after a conflict with another writer's commit


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadResult:
    """rows added by this upload, and `before`, the file's rows that had landed earlier."""

    load: str
    rows: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """The landed part of a file.

    older  the batch under which a console that predates loads sent the landed part
    """

    load: str
    first: str
    rows: int = 0
    chain: bytes = START
    older: str = ""


class FileUpload:
    """Upload of one file into one table.

    load         the name of its load, given by the operator if `named`
    shape        name of the shape under which its lines are sent, "" for none
    on_progress  called with the number of rows added so far
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
        shape: str = "",
        on_progress: Callable[[int], None],
    ) -> None:
        self._driver = driver
        self._pipeline, self._table = pipeline, table
        self._file = file
        self._load, self._named, self._shape = load, named, shape
        self._on_progress = on_progress
        self._rows = 0  # added by us
        self._progress = _Progress(load=load, first=file.first.hex())
        self._in_flight: EventChunk | None = None

    async def run(self) -> UploadResult:
        """raises  the region's errors, extended by the lines that have landed; DataError E_LOAD_DIFFERS"""
        before = -1
        for attempt in range(TRIES):
            progress = self._progress = await self._find_progress()
            before = progress.rows if before < 0 else before
            try:
                schema = await self._checked(progress)
                await self._send(progress, schema)
            except (LoadMoved, SchemaMoved) as error:
                if attempt == TRIES - 1:
                    raise self._landed_by_then(error) from None
            except ConsoleError as error:
                raise self._landed_by_then(error) from None
            else:
                break
        return UploadResult(load=self._progress.load, rows=self._rows, before=before)

    def landed(self) -> str:
        """The lines that have certainly landed, in words; "" for none."""
        if not self._progress.rows:
            return ""
        rows = f"{self._progress.rows:,} rows"
        try:
            first, last = self._file.line(1), self._file.line(self._progress.rows)
        except Conflict:  # its lines have changed meanwhile
            return f"{rows} have landed as load {self._progress.load}"
        return f"lines {first:,}–{last:,} ({rows}) have landed as load {self._progress.load}"

    # -- progress

    async def _find_progress(self) -> _Progress:
        """raises  DataError E_LOAD_DIFFERS"""
        file, first = self._file, self._file.first.hex()
        state = await self._ask(self._load, named=self._named)
        chains = file.chains({file.count, *(head.rows for head in state.heads)})
        if common := [head for head in state.heads if _is(head, chains)]:
            best = max(common, key=lambda head: (head.rows, head.load == self._load))
            return _Progress(load=best.load, first=best.first, rows=best.rows, chain=chains[best.rows])
        if state.older:
            rows = file.older_end(state.older)
            if rows == file.count or not state.heads:
                return _Progress(
                    load=self._load, first=first, rows=rows, chain=file.chains((rows,))[rows], older=file.batch
                )
        for head in state.heads:
            ends = (await self._ask(head.load, named=True, after=file.count - 1)).ends
            if ends and _is(ends[0], chains):
                return _Progress(load=head.load, first=first, rows=file.count, chain=chains[file.count])
        if state.heads:
            own = next((head for head in state.heads if head.load == self._load), state.heads[-1])
            raise await self._differs(own)
        return _Progress(load=self._load, first=first)

    async def _ask(self, load: str, *, named: bool, after: int = 0) -> LoadState:
        file = self._file
        return await self._driver.landed(
            self._pipeline, self._table, load, file.first.hex(), named=named, batch=file.batch, after=after
        )

    async def _differs(self, head: Landed) -> DataError:
        """The error that names the first line that differs from the landed one."""
        common, other = 0, head
        while ends := (await self._ask(head.load, named=True, after=common)).ends:
            chains = self._file.chains({end.rows for end in ends})
            if part := next((end for end in ends if not _is(end, chains)), None):
                other = part
                break
            common = ends[-1].rows
        marks = await self._driver.marks(self._pipeline, self._table, head.load, other.rows)
        after = other.rows - len(marks) // MARK_BYTES
        event = first_difference(self._file.marks(after, other.rows), marks) if marks else 0
        landed = f"what load {head.load} has landed ({head.rows:,} rows)"
        if event > 1 or (event and after == common):
            difference = f"line {self._file.line(after + event):,} differs from {landed}"
        elif marks and not event:
            difference = f"it ends after line {self._file.line(self._file.count):,}, before {landed}"
        else:
            difference = f"one of the lines {self._file.line(common + 1):,}–{self._file.line(other.rows):,} differs from {landed}"
        return DataError(
            f"{self._file.name}: {difference}; nothing was written",
            hint="restore the lines that landed, and it continues after them; --load NAME ingests all of it, as another load",
            code="E_LOAD_DIFFERS",
        )

    # -- transfer

    async def _checked(self, progress: _Progress) -> str:
        """The schema that all remaining lines fit; "" if they fit one request, which is refused or written as a whole."""
        self._in_flight = None
        if self._file.count == progress.rows or _fits_one_request(self._file, progress.rows):
            return ""
        while True:
            fits = ""
            for chunk in self._file.chunks(progress.rows):
                schema = await self._driver.check(self._pipeline, self._table, chunk.events, chunk.at, self._shape)
                if fits not in ("", schema):
                    break  # the table's columns changed meanwhile
                fits = schema
            else:
                return fits

    async def _send(self, progress: _Progress, schema: str) -> None:
        rows, chain = progress.rows, progress.chain
        for chunk in self._file.chunks(progress.rows):
            run = EventRun(
                load=progress.load, first=progress.first, after=rows, before=chain.hex(), at=chunk.at,
                schema=schema, named=self._named, older=progress.older,
            )  # fmt: skip
            self._in_flight = chunk
            batch = f"{progress.load}/{rows}"
            done = await self._driver.ingest(self._pipeline, self._table, batch, chunk.events, run, self._shape)
            end, _ = run.end(chunk.events)
            rows, chain, self._in_flight = end.rows, bytes.fromhex(end.chain), None
            self._progress = _Progress(
                load=progress.load, first=progress.first, rows=rows, chain=chain, older=progress.older
            )
            self._rows += int(done["rows"])
            self._on_progress(self._rows)

    def _landed_by_then(self, error: ConsoleError) -> ConsoleError:
        """The error, extended by the lines that have landed and those that may have."""
        landed, unsure = self.landed(), self._in_flight if isinstance(error, Unreachable) else None
        if isinstance(error, LoadMoved | SchemaMoved):
            error.hint = ""  # which adds nothing to the text below
            landed = landed or "nothing of it has landed"
        if isinstance(error, DataError):
            error.message = f"{self._file.name}: {error.message}"
            error.hint = "correct it" if landed else error.hint
        if landed:
            error.message += f"; {landed}"
        if unsure:
            error.message += f"; whether lines {unsure.at[0][0]:,}–{sum(unsure.at[-1]) - 1:,} have is not known"
        if landed or unsure:
            error.hint = f"{error.hint}; send the file again: it continues after what has landed".removeprefix("; ")
        return error


def _is(end: Landed, chains: dict[int, bytes]) -> bool:
    """Whether the file begins with the rows that a load had landed at that point."""
    return end.rows in chains and chains[end.rows].hex() == end.chain


def _fits_one_request(file: Events, after: int) -> bool:
    """Whether one request holds all remaining events."""
    chunks = file.chunks(after)
    next(chunks)
    return next(chunks, None) is None
