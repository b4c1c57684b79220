"""What an agent and the process of its second Spark say to each other: one line of JSON each, over its input and output."""

from console.agent.failure import Kind
from console.agent.settings import Settings
from console.agent.store.file_action import FileAction
from console.model import codec
from console.model.live import TableState
from console.model.measured import SparkJob
from console.model.slices import Slice
from console.model.step import Backfill
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """The first line. lock_fd: the descriptor of the region's lock, which its JVM inherits as well; -1 for none"""

    settings: Settings
    lock_fd: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOrder:
    """Write the files of one batch.

    run     its slices
    joins   joined tables with their paths;  joined: table → version at which they are read
    others  as of `feeds.backfill.History`
    """

    step: Backfill
    source: TableState
    source_path: str
    target: TableState
    target_path: str
    fence: int
    run: tuple[Slice, ...]
    joins: tuple[tuple[TableState, str], ...]
    joined: dict[str, int]
    quarantined: int


@dataclass(frozen=True, slots=True)
class BatchUnderWay:
    """fraction, job: as of `spark_jobs.RunningJob`"""

    fraction: float
    job: SparkJob | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWritten:
    """rows: of the source. warnings: as of `feeds.backfill.BatchResult`"""

    rows: int
    files: tuple[FileAction, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailed:
    """Nothing counts of what was written. Fields as of `failure.ClassifiedFailure`; the process ends after it."""

    why: str
    hint: str
    code: str
    what: Kind
    unexpected: bool


Answer = BatchUnderWay | BatchWritten | BatchFailed


def line(message: Start | BatchOrder | Answer) -> str:
    return codec.dumps(message) + "\n"


def answer_in(text: str) -> Answer:
    """raises  DataError"""
    (answer,) = codec.decode(tuple[Answer, ...], [codec.loads(text)])
    return answer
