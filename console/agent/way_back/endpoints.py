"""Whether the endpoints of a release answer: Spark compiles each and reads one row, whenever one of its tables has changed."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from console.agent.failure import cause, from_spark, kind
from console.agent.feeds.live_feed import logical_rows
from console.agent.rows.arguments import arguments
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import ConsoleError
from console.model.live import Release
from console.model.pipeline import Endpoint, Parameter
from console.model.plan import Plan
from console.model.step import Validate
from console.model.way_back import PROOF_SECONDS, WayBackFinding
from console.text import redacted, safe_text

ASK_SECONDS = 10.0  # after which a call is cancelled
ROUND_SECONDS = 10.0  # after which the other endpoints wait for the next round
SHARE = 60.0  # an endpoint is called again after this many times the duration of its last call
TRIES = 2  # before an endpoint counts as failed

Arguments = dict[str, tuple[str, str]]  # name → value as text, Spark type


@dataclass(slots=True)
class _Answered:
    """The last call of one endpoint.

    read     versions of the tables that it may read, at that time
    again    monotonic time of the next call, at the earliest
    """

    finding: WayBackFinding | None = None
    read: tuple[int, ...] = ()
    again: float = 0.0


@dataclass(slots=True)
class EndpointRound:
    """The endpoints of one pipeline's previous release, called in turns.

    paths  table → absolute path, of the release and of its copies
    """

    spark: SparkHandle
    _answers: dict[tuple[str, str], _Answered] = field(default_factory=dict)  # by release and endpoint

    def ask(self, release: Release, paths: Mapping[str, str], plan: Plan | None) -> tuple[WayBackFinding, ...]:
        """Findings against the endpoints. plan: its recorded calls are used if they belong to this release"""
        known = {(release.id, endpoint.name): endpoint for endpoint in release.endpoints}
        self._answers = {key: answered for key, answered in self._answers.items() if key in known}
        end = time.monotonic() + ROUND_SECONDS
        for key in sorted(known, key=lambda key: self._answers[key].again if key in self._answers else 0.0):
            if time.monotonic() > end:
                break
            self._ask_one(release, known[key], paths, plan)
        findings = (self._finding(key) for key in known)
        return tuple(finding for finding in findings if finding is not None)

    def _finding(self, key: tuple[str, str]) -> WayBackFinding | None:
        answered = self._answers.get(key)
        return answered.finding if answered else _finding(key[1], "inconclusive", "it has not been called yet")

    def _ask_one(self, release: Release, endpoint: Endpoint, paths: Mapping[str, str], plan: Plan | None) -> None:
        """Call it, unless none of its tables has changed since its last answer."""
        key = (release.id, endpoint.name)
        # the compiled text holds the name of each table that it reads; a mere resemblance costs one call
        tables = [name for name in paths if name in endpoint.sql]
        read = tuple(log.latest_version(paths[name], missing_ok=True) for name in tables)
        last, began = self._answers.get(key), time.monotonic()
        if last is not None and (began < last.again or (last.read == read and last.finding is None)):
            return
        if last is not None and last.read == read and not self.spark.started:
            return  # it would read the same rows again: no reason to wake Spark
        if self.spark.lost:
            self._answers[key] = _Answered(_finding(endpoint.name, "inconclusive", "Spark does not run"))
            return
        finding = None
        for _ in range(TRIES):
            finding = _asked(self.spark, release, endpoint, {name: paths[name] for name in tables}, plan)
            if finding is None or finding.state != "failed":
                break
        ended = time.monotonic()
        self._answers[key] = _Answered(finding, read, ended + max(PROOF_SECONDS / 2, SHARE * (ended - began)))


def _asked(
    spark: SparkHandle, release: Release, endpoint: Endpoint, paths: Mapping[str, str], plan: Plan | None
) -> WayBackFinding | None:
    """The finding of one call; None if it was answered."""
    args, given = _arguments(release, endpoint, plan)
    late = threading.Event()
    try:
        session = spark.passing_session()  # an endpoint that never answers must not keep Spark awake
        try:
            with spark.job(session, f"way back {release.id} {endpoint.name}") as group:
                timer = threading.Timer(ASK_SECONDS, _cancel, (late, group))
                timer.daemon = True
                timer.start()
                try:
                    _register(session, release, paths)
                    spark.ask(session, endpoint.sql, arguments(args)).limit(1).collect()
                finally:
                    timer.cancel()
        finally:
            spark.give_up(session)
    except Exception as error:
        return _finding(endpoint.name, *_judged(error, late=late.is_set(), given=given))
    return None


def _cancel(late: threading.Event, group: RunningJob) -> None:
    late.set()
    group.cancel()


def _judged(error: Exception, *, late: bool, given: bool) -> tuple[Literal["failed", "inconclusive"], str]:
    """given: an operator chose the arguments; otherwise these may be the cause of the failure"""
    from pyspark.errors import AnalysisException, ParseException

    if late:
        return "inconclusive", f"no answer within {ASK_SECONDS:.0f} s"
    if isinstance(error, AnalysisException | ParseException):
        return "failed", f"it no longer compiles: {cause(error)}"
    if isinstance(error, ConsoleError):
        return "inconclusive", str(error)
    if not from_spark(error) or kind(error) == "memory":
        return "inconclusive", f"Spark gave no answer: {cause(error)}"
    if not given:
        return "inconclusive", f"it fails with made-up arguments (record a call of it): {cause(error)}"
    return "failed", f"it no longer answers: {cause(error)}"


def _register(session: Any, release: Release, paths: Mapping[str, str]) -> None:
    for name, path in paths.items():
        stored = session.read.format("delta").load(path)
        state = release.table(name)
        if state is not None:
            logical_rows(session, state, stored).createOrReplaceTempView(name)
        else:
            stored.createOrReplaceTempView(name)


def _arguments(release: Release, endpoint: Endpoint, plan: Plan | None) -> tuple[Arguments, bool]:
    """A recorded call's arguments, else declared defaults, else any value of the type; and whether an operator chose all."""
    if recorded := _recorded(release, endpoint, plan):
        return recorded, True
    given = all(parameter.default is not None for parameter in endpoint.parameters)
    return {each.name: (_value(each), each.type) for each in endpoint.parameters}, given


def _recorded(release: Release, endpoint: Endpoint, plan: Plan | None) -> Arguments:
    if plan is None or release.id not in (plan.live, plan.release.id):
        return {}
    steps: Sequence[Validate] = [step for step in plan.steps if isinstance(step, Validate)]
    for call in (call for step in steps for call in step.calls if call.endpoint == endpoint.name):
        query = call.live if release.id == plan.live else call.new
        if query is not None:
            return {name: (value, type) for name, value, type in query.args}
    return {}


def _value(parameter: Parameter) -> str:
    if parameter.default is not None:
        return parameter.default
    match parameter.type.partition("(")[0]:
        case "boolean":
            return "true"
        case "date":
            return time.strftime("%Y-%m-%d", time.gmtime())
        case "timestamp":
            return time.strftime("%Y-%m-%dT00:00:00+00:00", time.gmtime())
        case "string":
            return ""
        case _:
            return "1"


def _finding(name: str, state: Literal["failed", "inconclusive"], why: str) -> WayBackFinding:
    return WayBackFinding(part="endpoint", name=name, state=state, why=safe_text(redacted(why), 300))
