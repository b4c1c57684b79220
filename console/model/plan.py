"""One region's plan: its changes, their reasons and costs, and the steps that execute them."""

from dataclasses import field, replace
from typing import Literal

from console.errors import Problem
from console.model.codec import BESIDE, QUIET, encode, needed
from console.model.consent import NO_RULES, GateRules
from console.model.created import TableSettings
from console.model.landing import version_folder
from console.model.live import Release, TableState
from console.model.pipeline import Override, digest
from console.model.policy import NO_THROTTLE, Throttle
from console.model.region import lowest
from console.model.rollout_id import release_id
from console.model.step import Step
from console.record import dataclass

Action = Literal["keep", "metadata", "read", "rebind", "forward", "replay", "hybrid", "create", "drop"]
Tone = Literal["unchanged", "in place", "copied", "recomputed", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTraits:
    """Display of an action, its effect on a table, and its place among the routes.

    symbol, tone  symbol before the name, and the colour class of both
    tried         position in which the planner tries it for a table that is both live and wanted, cheapest first; 0 for
                  an action that is not tried. Its module is `console/planning/routes/<action>.py`
    rebuilds      the table gets a new version, filled before the promotion
    changes       the next release differs from the live one
    from_query    caused by the query that feeds the table, not by the table's declaration
    """

    symbol: str
    tone: Tone
    tried: int = 0
    rebuilds: bool = False
    changes: bool = True
    from_query: bool = True


# in the order of a summary line: most data first
ACTIONS: dict[Action, ActionTraits] = {
    "replay": ActionTraits(symbol="-/+", tone="recomputed", tried=7, rebuilds=True),
    "forward": ActionTraits(symbol=">", tone="copied", tried=5, rebuilds=True),
    "hybrid": ActionTraits(symbol=">/+", tone="recomputed", tried=6, rebuilds=True),
    "read": ActionTraits(symbol="~", tone="in place", tried=4),
    "rebind": ActionTraits(symbol="<=", tone="in place", tried=1),
    "metadata": ActionTraits(symbol="~", tone="in place", tried=3, from_query=False),
    "create": ActionTraits(symbol="+", tone="added", rebuilds=True),
    "drop": ActionTraits(symbol="-", tone="removed", from_query=False),
    "keep": ActionTraits(symbol=".", tone="unchanged", tried=2, changes=False),
}
COLUMN_SIGNS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~", "type": "~"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Estimated cost, from file statistics; seconds is 0 if no rate was ever measured in the region.

    bytes, written   bytes read, and bytes written (about the current size of the table)
    money, monthly   in the region's currency: reading and computing; a month's storage of both versions
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
            days=max(self.days, other.days),
            rows=self.rows + other.rows,
            bytes=self.bytes + other.bytes,
            batches=self.batches + other.batches,
            seconds=self.seconds + other.seconds,
            written=self.written + other.written,
            money=self.money + other.money,
            monthly=self.monthly + other.monthly,
        )


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A changed column; `was` is the old name of `renamed`, and the old type or expression of `changed`."""

    column: str
    change: Literal["added", "removed", "changed", "renamed", "type"]
    was: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOption:
    """One choice for the rows that a table holds, with its price.

    history     as `--history` takes it: `all`, `carry`, `since 2026-11-08`;  chosen: the plan's choice
    older_rows  what older rows will show
    impossible  why the plan would be refused with it, "" if it is possible
    price       of this table alone
    """

    history: str
    chosen: bool
    older_rows: str
    impossible: str = ""
    price: Price = field(default_factory=Price)

    @property
    def kind(self) -> str:
        """The choice without its day: `since`."""
        return self.history.partition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """The action for one node, with its reason in one sentence.

    source   the table that its history is read from
    history  the operator's choice for the rows that a table holds, "" for all;  older_rows  values of these rows;
             older_until: the day (UTC) on which the last of them expires, "" for none
    options  all choices for these rows; () if there is nothing to choose
    """

    kind: Literal["table", "endpoint", "copy", "sink"]
    name: str
    action: Action
    why: str
    columns: tuple[ColumnChange, ...] = ()
    price: Price = field(default_factory=Price)
    source: str = ""
    history: str = field(default="", metadata=QUIET)
    older_rows: str = field(default="", metadata=QUIET)
    options: tuple[HistoryOption, ...] = field(default=(), metadata=BESIDE)
    older_until: str = field(default="", metadata=BESIDE)

    @property
    def changes(self) -> bool:
        return ACTIONS[self.action].changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One difference between a region's real table and its live release: the table was altered by hand.

    name     the column, property or feature; "" for the table as a whole
    said, found  the release's state and the actual state; "" for absent
    adopt, repair  ways to keep the change, and to undo it
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
    """An endpoint, copy or sink whose results change, and why; owner is "" if none is declared."""

    kind: Literal["endpoint", "copy", "sink"]
    name: str
    owner: str
    why: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Whether a rollback after the promotion is lossless; else the lossy columns, as `table.column`, and why."""

    lossless: bool = True
    columns: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One region's plan; `digest()` binds it to the files and the live release from which it was computed.

    live     id of the live release from which it starts, "" for none
    content  digest of the region's state that the plan depends on (versions, schemas; never Delta log versions)
    release  manifest of the new release; its versions have no path and it has no id until a region accepts the plan
    everything  price of rebuilding every table, to show the saving
    drift    tables of the region that were altered by hand
    answers  endpoints, copies and sinks whose results change
    free_bytes  free space of the region's warehouse, 0 if unknown; the plan needs `price.written` of it
    allowed   losses that the operator accepted by name, `CODE:table`
    currency  of the prices' money, "" if the region's file names none: then no money is shown
    day_rows  rows above which a day is cut into hours: it would take several times `target_seconds` at the region's rate
    throttle, quarantine_rows  the region's settings for this rollout, the throttle's query compiled
    gate      the part of the region's policy that its agent applies before a promotion
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
    day_rows: int | None = field(default=None, metadata=QUIET)
    drift: tuple[Drift, ...] = ()
    answers: tuple[Answer, ...] = ()
    free_bytes: int = 0
    allowed: tuple[str, ...] = ()
    rollback: Rollback = field(default_factory=Rollback)
    throttle: Throttle = field(default=NO_THROTTLE, metadata=QUIET)
    quarantine_rows: int = field(default=0, metadata=QUIET)
    currency: str = field(default="", metadata=QUIET)
    gate: GateRules = field(default=NO_RULES, metadata=needed("0.2.0"))

    @property
    def heavy_rows(self) -> int | None:
        """Rows above which a day is cut into its hours; None for no limit."""
        return lowest(self.rows_limit, self.day_rows)

    @property
    def refusals(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "refuse")

    @property
    def changes(self) -> tuple[NodeChange, ...]:
        return tuple(node for node in self.nodes if node.changes)

    @property
    def chosen_history(self) -> tuple[str, ...]:
        """The operator's choices for stored rows, and the values of these, one sentence each."""
        return tuple(f"{node.name}, history: {node.history}: {_older(node)}" for node in self.nodes if node.history)

    @property
    def read_until_expiry(self) -> tuple[str, ...]:
        """Tables whose new columns are computed at read in older rows until the last of these expires, one sentence each."""
        return tuple(f"{node.name}: {_older(node)}" for node in self.nodes if node.older_until and not node.history)

    def showing_older(self, day: str) -> tuple[str, ...]:
        """Tables that still hold older rows on a day (UTC), the values of these, and their last day."""
        return tuple(
            f"{node.name}: {_older(node)}" for node in self.nodes if node.older_until and day <= node.older_until
        )

    def digest(self) -> str:
        return digest(encode(self))


def _older(node: NodeChange) -> str:
    return f"{node.older_rows}{f'; the last of them expires on {node.older_until}' if node.older_until else ''}"


def numbered(plan: Plan, number: int, settings: TableSettings = ()) -> Plan:
    """The plan as rollout `number` of its region.

    A version's directory contains the number, so that a table rebuilt after a rollback never reuses the
    positions of an earlier attempt.
    """
    return named(plan, release_id(number), str(number), settings)


def named(plan: Plan, release: str, mark: str, settings: TableSettings = ()) -> Plan:
    """The plan with an id for its release, and with names and table settings for its new versions.

    mark  end of the versions' directories, of this attempt alone
    """
    tables = tuple(
        state
        if state.version.path
        else replace(
            state,
            version=replace(
                state.version,
                path=f"{_folder(state)}/{_name(plan, state.version.content)}-{mark}",
                settings=settings,
            ),
        )
        for state in plan.release.tables
    )
    return replace(plan, release=replace(plan.release, id=release, tables=tables))


def _folder(state: TableState) -> str:
    name = state.table.name
    return version_folder(name) if state.table.kind == "landing" else name


def _name(plan: Plan, content: str) -> str:
    """Ten hex digits of the version's content; two pipelines of one region never share a directory."""
    return digest([plan.pipeline, content])[:10]
