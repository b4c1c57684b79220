"""One region's plan: what changes, why, what it costs, and the steps that do it."""

from dataclasses import dataclass, field, replace
from typing import Literal

from console.errors import Problem
from console.model.codec import QUIET, encode
from console.model.created import TableSettings
from console.model.live import Release
from console.model.pipeline import Override, digest
from console.model.policy import NO_THROTTLE, Throttle
from console.model.step import Step

Action = Literal["keep", "metadata", "read", "rebind", "forward", "replay", "hybrid", "create", "drop"]
Tone = Literal["unchanged", "in place", "copied", "recomputed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class ActionTraits:
    """How an action is shown, and what it does to a table.

    symbol, tone  drawn before the name, and the colour class of both
    rebuilds      the table gets a new version, which is filled before the promotion
    """

    symbol: str
    tone: Tone
    rebuilds: bool = False


# in the order of a summary line: what moves most first
ACTIONS: dict[Action, ActionTraits] = {
    "replay": ActionTraits("-/+", "recomputed", rebuilds=True),
    "forward": ActionTraits(">", "copied", rebuilds=True),
    "hybrid": ActionTraits(">/+", "recomputed", rebuilds=True),
    "read": ActionTraits("~", "in place"),
    "rebind": ActionTraits("<=", "in place"),
    "metadata": ActionTraits("~", "in place"),
    "create": ActionTraits("+", "added", rebuilds=True),
    "drop": ActionTraits("-", "removed"),
    "keep": ActionTraits(".", "unchanged"),
}
COLUMN_SIGNS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~", "type": "~"}


@dataclass(frozen=True, slots=True)
class Price:
    """What moving costs, from file statistics. seconds is 0 where no rate was ever measured in the region.

    bytes, written   read, and written (about as much as the table holds now)
    money, monthly   in the region's currency: reading and computing; keeping what is written beside the old for a month
    """

    days: int = 0
    rows: int = 0
    bytes: int = 0
    batches: int = 0
    seconds: float = 0.0
    written: int = 0
    money: float = 0.0
    monthly: float = 0.0

    def __add__(self, other: "Price") -> "Price":
        return Price(
            max(self.days, other.days),
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.batches + other.batches,
            self.seconds + other.seconds,
            self.written + other.written,
            self.money + other.money,
            self.monthly + other.monthly,
        )


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """`renamed` says the old name in `was`; `changed` the old type or expression."""

    column: str
    change: Literal["added", "removed", "changed", "renamed", "type"]
    was: str = ""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What becomes of one node, and why, in one sentence. `kind` is table, endpoint, copy or sink."""

    kind: Literal["table", "endpoint", "copy", "sink"]
    name: str
    action: Action
    why: str
    columns: tuple[ColumnChange, ...] = ()
    price: Price = field(default_factory=Price)
    source: str = ""  # the table its history is read from


@dataclass(frozen=True, slots=True)
class Drift:
    """One place where a region's real table is not what its own live release says: somebody altered it by hand.

    name     the column, property or feature; "" where the table as a whole is meant
    said, found  what the release says and what is there; "" is nothing
    adopt, repair  what to do to keep it, and what to do to undo it
    """

    table: str
    what: Literal["missing", "column", "type", "nullability", "partitioning", "property", "feature"]
    name: str
    said: str
    found: str
    adopt: str
    repair: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An endpoint, copy or sink whose answer changes, who owns it, and why. owner is "" where nobody is named."""

    kind: Literal["endpoint", "copy", "sink"]
    name: str
    owner: str
    why: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Whether going back after the promotion loses nothing; else which columns, as `table.column`, and why."""

    lossless: bool = True
    columns: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """One region's plan; `digest()` binds it to the files and to the live release it was computed from.

    live     id of the live release it starts from, "" for none
    content  digest over what the plan depends on in the region (versions, schemas), never Delta log versions
    release  the manifest to become live; new versions have no path and the release no id until a region accepts it
    everything  price of rebuilding every table, so that the saving shows
    drift    where the region's tables were altered by hand;  answers  whose readers will see other numbers
    free_bytes  room in the region's warehouse, 0 where it is not known; `price.written` is what the plan needs of it
    allowed   losses that the operator accepted by name, `CODE:table`
    throttle, quarantine_rows  the region's, as they hold for this rollout; the query compiled
    """

    format_version: int
    tool: str
    pipeline: str
    region: str
    desired: str
    live: str
    content: str
    nodes: tuple[NodeChange, ...]
    steps: tuple[Step, ...]
    release: Release
    problems: tuple[Problem, ...] = ()
    price: Price = field(default_factory=Price)
    everything: Price = field(default_factory=Price)
    overrides: tuple[Override, ...] = ()
    rows_limit: int | None = None
    bytes_limit: int | None = None
    target_seconds: float = 60.0
    drift: tuple[Drift, ...] = ()
    answers: tuple[Answer, ...] = ()
    free_bytes: int = 0
    allowed: tuple[str, ...] = ()
    rollback: Rollback = field(default_factory=Rollback)
    throttle: Throttle = field(default=NO_THROTTLE, metadata=QUIET)
    quarantine_rows: int = field(default=0, metadata=QUIET)

    @property
    def refusals(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "refuse")

    @property
    def changes(self) -> tuple[NodeChange, ...]:
        return tuple(node for node in self.nodes if node.action != "keep")

    def digest(self) -> str:
        return digest(encode(self))


def numbered(plan: Plan, number: int, settings: TableSettings = ()) -> Plan:
    """The plan as rollout `number` of its region: release and new versions get their names, and the settings they are created with.

    A version's directory carries the number, so that a table rebuilt after a rollback never meets the
    positions of an earlier attempt.
    """
    tables = tuple(
        state
        if state.version.path
        else replace(
            state,
            version=replace(
                state.version,
                path=f"{state.table.name}/{_name(plan, state.version.content)}-{number}",
                settings=settings,
            ),
        )
        for state in plan.release.tables
    )
    return replace(plan, release=replace(plan.release, id=f"r{number}", tables=tables))


def _name(plan: Plan, content: str) -> str:
    """Ten hex digits of what the version contains; two pipelines of one region never share a directory."""
    return digest([plan.pipeline, content])[:10]
