"""Surveys of this machine's regions without an agent: one process answers all requests of about the same time."""

import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import console
from console.drivers import store_secrets
from console.drivers.frames import error_in
from console.drivers.protocol import RegionState
from console.drivers.transport import Surveyed, SurveyRequest, decoded
from console.errors import ConsoleError, DataError, Protocol, RegionError, Unreachable
from console.model import codec
from console.model.live import Live
from console.model.measured import FeedSample
from console.model.receipt import Past
from console.process import run_process

NO_CREDENTIALS: Mapping[str, str] = {}
_TOGETHER = 0.01  # seconds to gather requests for one process
_SECONDS = 60.0
_ANSWER = 1 << 28  # maximum bytes of all answers together
_ERRORS = 1 << 16
GRACE = 60.0  # seconds beyond its budget after which a profile is abandoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One JSON column of a landing table, with budgets of bytes read and seconds.

    time  its time column, "" if there is none
    """

    table: str
    column: str
    time: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Key:
    """share: of all rows. sure: whether `first_seen` is certainly its first day."""

    key: str
    share: float
    first_seen: str
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A sampled profile: counts of rows and files, and the keys found."""

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
    """The agent's command line: with this Python, and never from a `console` folder in the working directory."""
    return [sys.executable, "-P", "-m", "console.agent", *arguments]


def agent_environment(
    outside: Mapping[str, str] | None = None, credentials: Mapping[str, str] = NO_CREDENTIALS
) -> dict[str, str]:
    """Our environment, with the package on the child's path.

    credentials  of the bucket that it is to reach, in place of ours (`drivers/store_secrets`)
    """
    environment = store_secrets.environment(os.environ if outside is None else outside, credentials)
    root = str(Path(console.__file__).resolve().parent.parent)
    others = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != root]
    environment["PYTHONPATH"] = os.pathsep.join([root, *others])
    return environment


async def survey_many(
    requests: Sequence[SurveyRequest], credentials: Mapping[str, str] = NO_CREDENTIALS
) -> tuple[Surveyed | ConsoleError, ...]:
    """Answers to all requests, in order, from one process; no lock, no JVM. One region's error does not affect others.

    raises  RegionError, Unreachable or Protocol if the process itself fails
    """
    lines = (await raw_answers(requests, credentials)).rstrip(b"\n").split(b"\n")
    if len(lines) != len(requests):
        raise Protocol(f"the survey answered {len(lines)} of {len(requests)} regions", code="E_PROTOCOL")
    return tuple(surveyed(request, line) for request, line in zip(requests, lines, strict=True))


async def raw_answers(requests: Sequence[SurveyRequest], credentials: Mapping[str, str] = NO_CREDENTIALS) -> bytes:
    """A line of JSON for each request, as written by the survey's process."""
    question = json.dumps(
        [
            {"region": a.region, "warehouse": a.warehouse, "pipeline": a.pipeline, "landing": list(a.landing), "tables": a.tables,
             "state": a.state, "past": a.past, "hours": a.hours, "after": a.after, "later": a.later}
            for a in requests
        ]
    )  # fmt: skip
    return await _run(question.encode(), credentials=credentials)


def surveyed(request: SurveyRequest, line: bytes) -> Surveyed | ConsoleError:
    """Parse one line of a survey's answer; an invalid line becomes an error value."""
    try:
        answer = codec.loads(line.decode("utf-8"))
        if failure := error_in(answer, request.region):
            return failure
    except (UnicodeDecodeError, DataError, Protocol) as error:
        return Protocol(
            f"{request.region}: invalid answer to the survey: {error}", region=request.region, code="E_PROTOCOL"
        )
    match answer:
        case dict() if "live" in answer or not request.tables:
            try:
                state, past = answer.get("state"), answer.get("past")
                return Surveyed(
                    decoded(Live, answer["live"], request.region) if request.tables else None,
                    None if state is None else decoded(RegionState, state, request.region),
                    None if past is None else decoded(Past, past, request.region),
                    decoded(tuple[FeedSample, ...], answer.get("samples", []), request.region),
                )
            except Protocol as error:
                return error
    return Protocol(
        f"{request.region}: the answer to the survey has neither live nor error",
        region=request.region,
        code="E_PROTOCOL",
    )


async def raw_profile(warehouse: str, sample: Sample, credentials: Mapping[str, str] = NO_CREDENTIALS) -> bytes:
    """A line of JSON about one column, as written by the agent's process: a `Profile`, or an error."""
    place = f"{warehouse.rstrip('/')}/{sample.table}"
    question = {
        "table": place,
        "column": sample.column,
        "time": sample.time,
        "bytes": sample.bytes,
        "seconds": sample.seconds,
    }
    return await _run(json.dumps(question).encode(), "profile", sample.seconds + GRACE, credentials)


def profiled(region: str, line: bytes) -> Profile:
    """Parse such a line.

    raises  the error in the line; Protocol if it is neither
    """
    try:
        answer = codec.loads(line.decode("utf-8"))
    except (UnicodeDecodeError, DataError) as error:
        raise Protocol(f"{region}: invalid answer to the profile: {error}", region=region, code="E_PROTOCOL") from None
    if failure := error_in(answer, region):
        raise failure
    return decoded(Profile, answer, region)


async def _run(
    question: bytes,
    command: str = "survey",
    seconds: float = _SECONDS,
    credentials: Mapping[str, str] = NO_CREDENTIALS,
) -> bytes:
    environment = agent_environment(credentials=credentials)
    try:
        async with asyncio.timeout(seconds):
            output = await run_process(agent_command(command), question, environment, answer=_ANSWER, errors=_ERRORS)
    except TimeoutError:
        raise Unreachable(
            f"the {command} gave no answer in {seconds:g} s", hint="is the warehouse's disk reachable?"
        ) from None
    if output.cut:
        raise Protocol(f"the {command} printed more than {_ANSWER:,} bytes", code="E_FRAME")
    if output.code:
        last = output.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RegionError(f"the {command} ended with exit code {output.code}: {' '.join(last) or 'it printed nothing'}")
    return output.answer


class Surveyor:
    """Batches concurrent requests, so that planning twenty regions starts one process; regions with credentials of their own
    share one with those that have the same.
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str], SurveyRequest] = {}
        self._credentials: dict[tuple[str, str], Mapping[str, str]] = {}
        self._round: asyncio.Task[dict[tuple[str, str], Surveyed | ConsoleError]] | None = None

    async def survey(self, request: SurveyRequest, credentials: Mapping[str, str] = NO_CREDENTIALS) -> Surveyed:
        """raises  the region's error, or the error that kept it from answering"""
        key = (request.warehouse, request.pipeline)
        self._credentials[key] = credentials
        known = self._requests.get(key, request)
        landing = tuple(sorted({*known.landing, *request.landing}))
        self._requests[key] = replace(
            request,
            landing=landing,
            tables=known.tables or request.tables,
            state=known.state or request.state,
            past=request.past or known.past,
            hours=max(known.hours, request.hours),
            after=request.after if request.past else known.after,
        )
        if self._round is None:
            self._round = asyncio.create_task(self._answer(), name="survey")
        answer = (await asyncio.shield(self._round))[key]
        if isinstance(answer, ConsoleError):
            raise answer
        return answer

    async def _answer(self) -> dict[tuple[str, str], Surveyed | ConsoleError]:
        await asyncio.sleep(_TOGETHER)
        requests, self._requests, self._round = self._requests, {}, None
        credentials, self._credentials = self._credentials, {}
        groups: dict[frozenset[tuple[str, str]], list[tuple[str, str]]] = defaultdict(list)
        for key in requests:
            groups[frozenset(credentials[key].items())].append(key)
        asked = [self._ask({key: requests[key] for key in keys}, dict(own)) for own, keys in groups.items()]
        return {key: answer for answers in await asyncio.gather(*asked) for key, answer in answers.items()}

    async def _ask(
        self, requests: Mapping[tuple[str, str], SurveyRequest], credentials: Mapping[str, str]
    ) -> dict[tuple[str, str], Surveyed | ConsoleError]:
        try:
            answers = await survey_many(tuple(requests.values()), credentials)
        except ConsoleError as error:
            return dict.fromkeys(requests, error)
        return dict(zip(requests, answers, strict=True))
