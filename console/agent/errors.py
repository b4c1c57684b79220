"""Errors that the agent's own code distinguishes. Each is a subclass of the tree in `console.errors`, under one code."""

from dataclasses import dataclass, field

from console.errors import CheckFailed, Conflict, FeedStopped, RegionError, Unreachable


@dataclass(eq=False)
class CommitGone(RegionError):
    """A commit of a table was cleaned up from its log."""

    code: str = field(default="E_LOG_GONE", kw_only=True)


@dataclass(eq=False)
class LogDamaged(RegionError):
    """A commit, or a file beside the log, is cut short or cannot be read."""

    code: str = field(default="E_LOG_DAMAGED", kw_only=True)


@dataclass(eq=False)
class CommitEmpty(LogDamaged):
    """A commit's file has no content, as after a power loss."""

    code: str = field(default="E_LOG_EMPTY", kw_only=True)


@dataclass(eq=False)
class WriteSkipped(FeedStopped):
    """Delta skipped a feed's write, because another writer under its id is ahead."""

    code: str = field(default="E_SKIPPED", kw_only=True)


@dataclass(eq=False)
class RivalWriter(FeedStopped):
    """Another process keeps writing under a feed's id."""

    code: str = field(default="E_RIVAL", kw_only=True)


@dataclass(eq=False)
class PositionsExpire(FeedStopped):
    """A setting of the target would make Delta forget the positions of its feeds."""

    code: str = field(default="E_TXN_RETENTION", kw_only=True)


@dataclass(eq=False)
class AgentEnding(CheckFailed):
    """A request was still pending when the agent ended; the next agent can serve it."""

    code: str = field(default="E_ENDING", kw_only=True)


@dataclass(eq=False)
class CompactionDiffers(RegionError):
    """A compaction did not keep every row."""

    code: str = field(default="E_COMPACTION", kw_only=True)


@dataclass(eq=False)
class MergeDiffers(RegionError):
    """Merged states would not have had the values of those that they replace. Nothing was committed."""

    code: str = field(default="E_MERGE", kw_only=True)


@dataclass(eq=False)
class LeaseLost(Conflict):
    """This process no longer holds its region's lease, or cannot know that it does."""

    code: str = field(default="E_LEASE", kw_only=True)


@dataclass(eq=False)
class ObjectExists(Conflict):
    """A store refused to make an object, because one of that name is there."""

    code: str = field(default="E_EXISTS", kw_only=True)


@dataclass(eq=False)
class StoreUnreachable(Unreachable):
    """A store gave no usable answer in time. A write may have been carried out."""

    code: str = field(default="E_STORE_UNREACHABLE", kw_only=True)


@dataclass(eq=False)
class SecondSparkLost(RegionError):
    """The region's second Spark ended in a batch, of which nothing was committed."""

    code: str = field(default="E_SECOND_SPARK", kw_only=True)


@dataclass(eq=False)
class ServerUnreachable(Unreachable):
    """A Spark Connect server gave no answer in time. What it runs goes on, and is named by no commit."""

    code: str = field(default="E_CONNECT", kw_only=True)


# a bucket that does not answer, a lease that could not be renewed meanwhile, a Spark that another one can replace or
# that may answer again: what failed is tried again like any passing failure
PASSING = (StoreUnreachable, LeaseLost, SecondSparkLost, ServerUnreachable)
# the cause may disappear by itself: a feed stopped by one of these is retried after a while
HEALING = (WriteSkipped, RivalWriter, LogDamaged, PositionsExpire)
