"""Asking regions of this machine without an agent: one process answers for all that ask at about the same time."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import console
from console.drivers.frames import rebuild
from console.drivers.protocol import RegionState
from console.drivers.rpc import Surveyed, shaped
from console.errors import ConsoleError, DataError, Protocol, RegionError, Unreachable
from console.model import codec
from console.model.live import Live
from console.model.receipt import Past
from console.process import asked

_TOGETHER = 0.01  # seconds in which asks are gathered into one process
_SECONDS = 60.0
_ANSWER = 1 << 28  # bytes all answers together may have
_ERRORS = 1 << 16
GRACE = 60.0  # seconds beyond the budget after which the look at a column is given up


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """One region and pipeline. `landing` tables are surveyed even where no release names them."""

    region: str
    warehouse: str
    pipeline: str
    landing: tuple[str, ...] = ()
    state: bool = False
    past: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One JSON column of a landing table, and how much may be spent on it: bytes read, seconds.

    time  its time column, "" where there is none
    """

    table: str
    column: str
    time: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Key:
    """share: of all rows. sure: whether `first_seen` is its first day, or it may be older."""

    key: str
    share: float
    first_seen: str
    sure: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """Counts of rows and files, as far as they were read, and the keys that they carry."""

    rows: int
    files: int
    files_whole: int
    sampled: int
    null: int
    not_json: int
    bytes_read: int
    first_day: str
    last_day: str
    keys: tuple[Key, ...]


def agent_command(*arguments: str) -> list[str]:
    """How the agent is started: with this Python, and never from a `console` folder in the working directory."""
    return [sys.executable, "-P", "-m", "console.agent", *arguments]


def agent_environment(outside: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment, with the package where the child finds it."""
    environment = dict(os.environ if outside is None else outside)
    root = str(Path(console.__file__).resolve().parent.parent)
    others = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != root]
    environment["PYTHONPATH"] = os.pathsep.join([root, *others])
    return environment


async def survey_many(asks: Sequence[SurveyRequest]) -> tuple[Surveyed | ConsoleError, ...]:
    """Answers to all asks, in their order, from one process; no lock, no JVM. One region's error is its own.

    raises  RegionError, Unreachable or Protocol where the process itself fails
    """
    lines = (await raw_answers(asks)).rstrip(b"\n").split(b"\n")
    if len(lines) != len(asks):
        raise Protocol(f"the survey answered {len(lines)} of {len(asks)} regions", code="E_PROTOCOL")
    return tuple(surveyed(ask, line) for ask, line in zip(asks, lines, strict=True))


async def raw_answers(asks: Sequence[SurveyRequest]) -> bytes:
    """A line of JSON for each ask, as the survey's process wrote it."""
    question = json.dumps(
        [
            {"region": a.region, "warehouse": a.warehouse, "pipeline": a.pipeline, "landing": list(a.landing), "state": a.state,
             "past": a.past}
            for a in asks
        ]
    )  # fmt: skip
    return await _run(question.encode())


def surveyed(ask: SurveyRequest, line: bytes) -> Surveyed | ConsoleError:
    """One line of a survey's answer; what is wrong with it is an answer too."""
    try:
        told = codec.loads(line.decode("utf-8"))
        match told:
            case {"error": {"message": message, **rest}}:
                return rebuild({"code": 0, "message": message, "data": rest})
    except (UnicodeDecodeError, DataError, Protocol) as error:
        return Protocol(f"{ask.region}: the survey's answer is none: {error}", code="E_PROTOCOL")
    match told:
        case {"live": live, **rest}:
            try:
                state, past = rest.get("state"), rest.get("past")
                return Surveyed(
                    shaped(Live, live, ask.region),
                    None if state is None else shaped(RegionState, state, ask.region),
                    None if past is None else shaped(Past, past, ask.region),
                )
            except Protocol as error:
                return error
    return Protocol(f"{ask.region}: the survey's answer has neither live nor error", code="E_PROTOCOL")


async def raw_profile(warehouse: str, sample: Sample) -> bytes:
    """A line of JSON about one column, as the agent's process wrote it: a `Profile`, or an error."""
    place = f"{warehouse.rstrip('/')}/{sample.table}"
    question = {
        "table": place,
        "column": sample.column,
        "time": sample.time,
        "bytes": sample.bytes,
        "seconds": sample.seconds,
    }
    return await _run(json.dumps(question).encode(), "profile", sample.seconds + GRACE)


def profiled(region: str, line: bytes) -> Profile:
    """What such a line says.

    raises  the error that it says; Protocol where it is none of both
    """
    try:
        told = codec.loads(line.decode("utf-8"))
    except (UnicodeDecodeError, DataError) as error:
        raise Protocol(f"{region}: the profile's answer is none: {error}", code="E_PROTOCOL") from None
    match told:
        case {"error": {"message": message, **rest}}:
            raise rebuild({"code": 0, "message": message, "data": rest})
    return shaped(Profile, told, region)


async def _run(question: bytes, command: str = "survey", seconds: float = _SECONDS) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            said = await asked(agent_command(command), question, agent_environment(), answer=_ANSWER, errors=_ERRORS)
    except TimeoutError:
        raise Unreachable(
            f"the {command} gave no answer in {seconds:g} s", hint="is the warehouse's disk reachable?"
        ) from None
    if said.cut:
        raise Protocol(f"the {command} said more than {_ANSWER:,} bytes", code="E_FRAME")
    if said.code:
        last = said.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RegionError(f"the {command} ended with exit code {said.code}: {' '.join(last) or 'it said nothing'}")
    return said.answer


class Surveyor:
    """Gathers the asks of one moment, so that planning twenty regions starts one process."""

    def __init__(self) -> None:
        self._asks: dict[tuple[str, str], SurveyRequest] = {}
        self._round: asyncio.Task[dict[tuple[str, str], Surveyed | ConsoleError]] | None = None

    async def ask(self, ask: SurveyRequest) -> Surveyed:
        """raises  what the region answered, or what kept it from answering"""
        key = (ask.warehouse, ask.pipeline)
        known = self._asks.get(key, ask)
        landing = tuple(sorted({*known.landing, *ask.landing}))
        self._asks[key] = replace(ask, landing=landing, state=known.state or ask.state, past=ask.past or known.past)
        if self._round is None:
            self._round = asyncio.create_task(self._answer(), name="survey")
        answer = (await asyncio.shield(self._round))[key]
        if isinstance(answer, ConsoleError):
            raise answer
        return answer

    async def _answer(self) -> dict[tuple[str, str], Surveyed | ConsoleError]:
        await asyncio.sleep(_TOGETHER)
        asks, self._asks, self._round = self._asks, {}, None
        try:
            answers = await survey_many(tuple(asks.values()))
        except ConsoleError as error:
            return dict.fromkeys(asks, error)
        return dict(zip(asks, answers, strict=True))
