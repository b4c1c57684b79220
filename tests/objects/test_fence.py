"""No commit of a stale holder lands behind its successor's, on any kind of log that an agent writes."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, SchemaMismatchError
from deltalake.transaction import AddAction

from console.agent.errors import LeaseLost, StoreUnreachable
from console.agent.lease import fence
from console.agent.lease.fence import FencedLog, Write
from console.agent.lease.lease import Lease
from console.agent.lease.objects import Objects
from console.errors import RegionError
from tests.objects.conftest import Place
from tests.objects.proxy import Fate, Proxy

pytestmark = pytest.mark.s3

WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A log as the agent writes it. first: its first row; write: a later commit, told by a number"""

    schema: pa.Schema
    first: dict[str, Any]
    by: tuple[str, ...] = ()
    write: Callable[[int], Write]
    numbers: bool = False


def appending(row: Callable[[int], dict[str, Any]], schema: pa.Schema) -> Callable[[int], Write]:
    """As rollouts, decisions, receipts and landing batches are written."""

    def write(n: int) -> Write:
        def commit(table: DeltaTable, properties: CommitProperties) -> None:
            write_deltalake(table, pa.Table.from_pylist([row(n)], schema), mode="append", commit_properties=properties)

        return commit

    return write


def promoting(n: int) -> Write:
    """As a release becomes live: one conditional update."""

    def commit(table: DeltaTable, properties: CommitProperties) -> None:
        table.update(predicate="state = 'live'", updates={"id": f"'{n}'"}, commit_properties=properties)

    return commit


def feeding(n: int) -> Write:
    """As a batch of files that Spark wrote. No file is there, and deltalake asks for none (decision 23)."""

    def commit(table: DeltaTable, properties: CommitProperties) -> None:
        stats = json.dumps({"numRecords": 1})
        add = AddAction(f"attempt-{n}/part-0.parquet", 400, {"day": "2026-01-01"}, 0, True, stats)
        table.create_write_transaction([add], "append", table.schema(), ["day"], commit_properties=properties)

    return commit


EVENTS = pa.schema([("rollout", pa.string()), ("seq", pa.int64())])
ROWS = pa.schema([("day", pa.string()), ("n", pa.int64())])
RELEASES = pa.schema([("id", pa.string()), ("state", pa.string())])
KINDS = {
    "feed": Kind(schema=ROWS, first={"day": "2026-01-01", "n": 0}, by=("day",), write=feeding, numbers=True),
    "releases": Kind(schema=RELEASES, first={"id": "0", "state": "live"}, write=promoting),
    "rollouts": Kind(
        schema=EVENTS,
        first={"rollout": "1", "seq": 0},
        write=appending(lambda n: {"rollout": "1", "seq": n}, EVENTS),
    ),
    "receipts": Kind(
        schema=EVENTS,
        first={"rollout": "1", "seq": 0},
        write=appending(lambda n: {"rollout": "1", "seq": n}, EVENTS),
    ),
    "landing": Kind(
        schema=ROWS,
        first={"day": "2026-01-01", "n": 0},
        by=("day",),
        write=appending(lambda n: {"day": "2026-01-01", "n": n}, ROWS),
        numbers=True,
    ),
}


class Agent:
    """A holder of the lease, who took its log over."""

    def __init__(self, objects: Objects, options: dict[str, str], name: str) -> None:
        self.log = FencedLog(objects=objects, path=name, options=options)
        self.kind = KINDS[name]
        self.lease = Lease(objects, {})
        self.lease.take(force=True)

    def create(self) -> None:
        first = pa.Table.from_pylist([self.kind.first], self.kind.schema)
        options = dict(self.log.options)
        write_deltalake(self.log.address, first, partition_by=list(self.kind.by), storage_options=options)

    def commit(self, n: int) -> int:
        numbers = (Transaction("feed", n),) if self.kind.numbers else ()
        return fence.commit(self.log, self.lease, self.kind.write(n), note={"n": n}, numbers=numbers)

    def commits(self) -> list[dict[str, Any]]:
        """The notes of all commits by this module, in the order of their versions."""
        notes = []
        version = 1
        while (actions := self.log.commit_at(version)) is not None:
            notes += [json.loads(action["commitInfo"]["userMetadata"]) for action in actions if "commitInfo" in action]
            version += 1
        return notes


@pytest.fixture(params=KINDS)
def two(request: pytest.FixtureRequest, place: Place) -> tuple[Agent, Callable[[], Agent]]:
    """A holder behind the proxy, and the way to its successor beside it."""
    return agents(request.param, place)


def agents(kind: str, place: Place) -> tuple[Agent, Callable[[], Agent]]:
    def successor() -> Agent:
        agent = Agent(place.objects, place.direct.storage_options(), kind)
        fence.take_over(agent.log, agent.lease)
        return agent

    stale = Agent(place.cut_off, place.proxied.storage_options(), kind)
    stale.create()
    fence.take_over(stale.log, stale.lease)
    return stale, successor


@pytest.fixture
def feed(place: Place) -> tuple[Agent, Callable[[], Agent]]:
    return agents("feed", place)


def is_commit(method: str, path: str) -> bool:
    return method == "PUT" and "/_delta_log/" in path and path.endswith(".json")


def test_a_holder_that_stood_still_between_its_check_and_its_put_commits_nothing(
    two: tuple[Agent, Callable[[], Agent]], proxy: Proxy
) -> None:
    stale, successor = two
    arrived, passed = threading.Event(), threading.Event()

    def rule(method: str, path: str) -> Fate:
        if is_commit(method, path):
            arrived.set()
            assert passed.wait(WAIT_SECONDS)
        return "pass"

    proxy.rule = rule
    outcome: list[object] = []

    def committing() -> None:
        try:
            outcome.append(stale.commit(1))
        except LeaseLost as error:
            outcome.append(error)

    thread = threading.Thread(target=committing)
    thread.start()
    assert arrived.wait(WAIT_SECONDS)
    after = successor()
    passed.set()
    thread.join(WAIT_SECONDS)
    assert [type(result) for result in outcome] == [LeaseLost]
    after.commit(2)
    assert [note.get("n", note.get("epoch")) for note in after.commits()] == [1, 2, 2]
    with pytest.raises(LeaseLost):
        stale.lease.check()


def test_a_stale_holder_that_knows_of_nothing_is_refused(two: tuple[Agent, Callable[[], Agent]]) -> None:
    stale, successor = two
    after = successor()
    with pytest.raises(LeaseLost):
        stale.commit(1)
    assert [note["epoch"] for note in after.commits()] == [1, 2]


def test_what_a_holder_committed_before_is_read_by_its_successor(two: tuple[Agent, Callable[[], Agent]]) -> None:
    stale, successor = two
    version = stale.commit(1)
    after = successor()
    assert version == 2
    assert [note.get("n", note.get("epoch")) for note in after.commits()] == [1, 1, 2]


def test_a_commit_that_slips_in_front_of_the_take_over_is_kept_and_the_take_over_repeated(
    feed: tuple[Agent, Callable[[], Agent]], place: Place
) -> None:
    stale, _ = feed
    after = Agent(place.cut_off, place.proxied.storage_options(), "feed")
    slipped = iter([1])

    class Slipping(FencedLog):
        def open(self) -> DeltaTable:
            table = super().open()
            for n in slipped:
                stale.commit(n)
            return table

    log = Slipping(objects=place.cut_off, path="feed", options=place.proxied.storage_options())
    version = fence.take_over(log, after.lease)
    assert version == 3
    assert after.log.open().transaction_version(fence.EPOCHS) == 2
    assert after.log.open().transaction_version("feed") == 1


def test_a_commit_whose_answer_is_lost_is_found_and_not_repeated(
    two: tuple[Agent, Callable[[], Agent]], proxy: Proxy
) -> None:
    agent, _ = two
    fates: list[Fate] = ["lose answer"]
    proxy.rule = lambda method, path: fates.pop() if is_commit(method, path) and fates else "pass"
    version = agent.commit(1)
    assert (version, fates) == (2, [])
    assert [note.get("n", note.get("epoch")) for note in agent.commits()] == [1, 1]


def test_a_commit_that_never_arrived_is_repeated(two: tuple[Agent, Callable[[], Agent]], proxy: Proxy) -> None:
    agent, _ = two
    fates: list[Fate] = ["drop"]
    proxy.rule = lambda method, path: fates.pop() if is_commit(method, path) and fates else "pass"
    assert (agent.commit(1), fates) == (2, [])
    assert [note.get("n", note.get("epoch")) for note in agent.commits()] == [1, 1]


def test_a_commit_of_unknown_outcome_is_called_that(feed: tuple[Agent, Callable[[], Agent]], proxy: Proxy) -> None:
    agent, _ = feed

    def rule(method: str, path: str) -> Fate:
        if is_commit(method, path):
            proxy.partition()
            return "lose answer"
        return "pass"

    proxy.rule = rule
    with pytest.raises((StoreUnreachable, OSError)):
        agent.commit(1)
    proxy.heal()
    assert [note.get("n", note.get("epoch")) for note in agent.commits()] == [1, 1]


def test_a_log_that_was_not_taken_over_is_not_written(place: Place) -> None:
    agent = Agent(place.objects, place.direct.storage_options(), "rollouts")
    agent.create()
    with pytest.raises(RegionError, match="written by epoch 1 of the lease, taken over by 0"):
        agent.commit(1)
    assert agent.commits() == []


def test_a_commit_that_can_never_be_written_is_not_repeated(feed: tuple[Agent, Callable[[], Agent]]) -> None:
    agent, _ = feed
    tries: list[int] = []

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        tries.append(table.version())
        other = pa.table({"day": ["2026-01-01"], "other": [1]})
        write_deltalake(table, other, mode="append", commit_properties=properties)

    with pytest.raises(SchemaMismatchError):
        fence.commit(agent.log, agent.lease, write, note={})
    assert tries == [1]


def test_a_commit_that_is_said_to_have_failed_and_is_in_the_log_counts(feed: tuple[Agent, Callable[[], Agent]]) -> None:
    """deltalake commits the value of a column that the table has not got, and then fails to read the table."""
    agent, _ = feed

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        add = AddAction("a.parquet", 1, {"day": "2026-01-01", "nowhere": "1"}, 0, True, "{}")
        table.create_write_transaction([add], "append", table.schema(), ["day"], commit_properties=properties)

    assert fence.commit(agent.log, agent.lease, write, note={"n": 1}) == 2
    with pytest.raises(DeltaError, match="Partition column nowhere not found"):
        agent.log.open()
