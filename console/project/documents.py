"""Schemas of the project's files, as strict pydantic documents; unknown keys are refused.

They hold the whole vocabulary of docs/files.md, including keys that the model does not use yet.
"""

import re
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from console.model.fixture import Tolerance
from console.model.region import FOLLOW
from console.model.sandbox import EXPIRES_HOURS
from console.model.schema import HISTORY_WORDS, history_word
from console.project import values
from console.project.names import Misspelt, Unfit

_REFERENCE = re.compile(r"(?:env|file|keyring|cmd):\S.*")
_HOURS = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]-(?:[01][0-9]|2[0-3]):[0-5][0-9]")


def _scalar(value: object) -> object:
    if isinstance(value, (dict, list)):
        raise Unfit("one value")
    return value


def _type(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("a Spark type such as string or decimal(10,2)")
    return values.spark_type(value)


def _reference(value: object) -> str:
    if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
        raise Unfit("a reference, never the secret itself: env:NAME, file:PATH or keyring:SERVICE/USER")
    return value


def _currency(value: str) -> str:
    if not re.fullmatch(r"[^\W\d_]{1,8}|[$€£¥₹₩₽₺₴₫₪₦]", value):
        raise Unfit("the name or the sign of a currency, such as EUR")
    return value


def _argument(value: str) -> str:
    if not re.fullmatch(r"[\w.:@%\[\]-]+", value) or value.startswith("-"):
        raise Unfit("a host or user name")
    return value


def _clock(value: str) -> str:
    if not _HOURS.fullmatch(value):
        raise Unfit("a window of hours such as 22:00-06:00")
    return value


def _rewrite(value: object) -> object:
    # if accepted, it would stop the feed like `stop`, and operators would wait for a replay that never comes
    if value == "replay_days":
        raise Misspelt("`replay_days` is not supported yet", "stop")
    return value


def _history(value: object) -> object:
    """In its normal spelling; "" for `all`."""
    if not isinstance(value, str):
        raise Unfit(HISTORY_WORDS.removeprefix("expected "))
    chosen = history_word(value)
    return "" if chosen is None else str(chosen)


def _column(value: object) -> object:
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict):
        raise Unfit("a Spark type, or {type, nullable, default, comment}")
    return value


def _parameter(value: object) -> object:
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict):
        raise Unfit("a type, or {type, default}")
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _tolerances(value: object) -> object:
    """`0.1` and `1%` are for all columns."""
    return value if isinstance(value, dict) else {"": value}


def _expectation(value: object) -> object:
    if isinstance(value, list):
        return {"rows": value}
    if not isinstance(value, dict):
        raise Unfit("a list of rows, or {rows, key, match, …}")
    return value


Count = Annotated[int, BeforeValidator(values.count)]
Size = Annotated[int, BeforeValidator(values.size)]
Seconds = Annotated[float, BeforeValidator(values.seconds)]
Hours = Annotated[float, BeforeValidator(values.hours)]
Days = Annotated[int, BeforeValidator(values.days)]
SparkType = Annotated[str, BeforeValidator(_type)]
Scalar = Annotated[Any, BeforeValidator(_scalar)]
Reference = Annotated[str, BeforeValidator(_reference)]
Argument = Annotated[str, AfterValidator(_argument)]
Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0)]
Natural = Annotated[int, Field(ge=1)]


class Doc(BaseModel):
    """Base: an empty value is the same as a missing one. Built when first used: most commands read few kinds of files."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class SshDoc(Doc):
    host: Argument
    port: Annotated[int, Field(ge=1, le=65_535)] = 22
    user: Argument = ""
    key: Reference = ""
    known_hosts: str = ""
    jump: Argument = ""
    bootstrap: bool = False


class TransportDoc(Doc):
    ssh: SshDoc | None = None


class SparkDoc(Doc):
    master: Annotated[str, AfterValidator(values.master)] = ""
    remote: Annotated[str, AfterValidator(values.remote)] = ""
    defaults: Annotated[str, AfterValidator(values.path_on_host)] = ""
    conf: dict[str, Scalar] = {}

    @property
    def names_one(self) -> bool:
        return bool(self.master or self.remote)

    @model_validator(mode="after")
    def _one_of_both(self) -> "SparkDoc":
        if self.master and self.remote:
            raise ValueError("master and remote exclude each other; `master: null` takes a default away")
        return self


class AboveDoc(Doc):
    rows: Count | None = None
    bytes: Size | None = None


class BackfillSparkDoc(SparkDoc):
    above: AboveDoc = AboveDoc()


class CatalogDoc(Doc):
    publish: str


class LimitsDoc(Doc):
    rows: Count | None = None
    bytes: Size | None = None
    target_seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 60.0


class ThrottleDoc(Doc):
    lag: Seconds | None = None
    hours: Annotated[str, AfterValidator(_clock)] = ""
    query: str = ""


class FollowDoc(Doc):
    share: Annotated[float, BeforeValidator(values.portion)] = FOLLOW.share
    lag: Annotated[float | None, BeforeValidator(values.delay)] = None
    idle: Annotated[float | None, BeforeValidator(values.idle)] = FOLLOW.idle_seconds


class SoakDoc(Doc):
    clean_intervals: Whole = 0


class PolicyDoc(Doc):
    promote: Literal["ask", "never", "auto"] = "ask"
    min_soak: Seconds = 0.0
    soak: SoakDoc = SoakDoc()
    watch: Seconds = 0.0
    on_breach: Literal["pause", "tell", "rollback"] = "pause"
    watch_query: str = ""
    approvals: Whole = 0
    ticket: Literal["optional", "required"] = "optional"
    quarantine_rows: Whole = 0
    on_failure: Literal["keep", "discard"] = "keep"
    keep_failed: Hours = 72.0
    rollback_window: Hours = 72.0
    preview_expires: Annotated[float, BeforeValidator(values.lifetime)] = EXPIRES_HOURS


class PricesDoc(Doc):
    core_hour: Money = 0.0
    tb_read: Money = 0.0
    tb_month: Money = 0.0
    currency: Annotated[str, AfterValidator(_currency)] = ""


class OverrideDoc(Doc):
    tables: dict[str, dict[str, Any]] = {}
    variables: dict[str, Scalar] = {}


class RegionDoc(Doc):
    """regions/<name>.yaml over regions/_defaults.yaml."""

    warehouse: str
    name: str = ""
    environment: str = ""
    owner: str = ""
    zone: Annotated[str, AfterValidator(values.zone)] = "UTC"
    wave: Natural = 1
    canary: bool = False
    transport: TransportDoc = TransportDoc()
    spark: SparkDoc = SparkDoc()
    backfill_spark: BackfillSparkDoc | None = None
    catalog: CatalogDoc | None = None
    secrets: dict[str, Reference] = {}
    limits: LimitsDoc = LimitsDoc()
    throttle: ThrottleDoc = ThrottleDoc()
    follow: FollowDoc = FollowDoc()
    policy: PolicyDoc = PolicyDoc()
    prices: PricesDoc = PricesDoc()
    overrides: dict[str, OverrideDoc] = {}


class PipelineDoc(Doc):
    """plans/<name>/pipeline.yaml."""

    name: str = ""
    description: str = ""
    variables: dict[str, Scalar] = {}


class ColumnDoc(Doc):
    type: SparkType
    nullable: bool = True
    default: Scalar = None
    comment: str = ""


class AcceptsDoc(Doc):
    marker: str = ""
    shape: str = ""


class BoundsDoc(Doc):
    """The minimum and the maximum."""

    min: Scalar = None
    max: Scalar = None


class RuleDoc(Doc):
    """One entry of a table's `expectations`; a text is its `sql`."""

    not_null: Annotated[list[str], BeforeValidator(_listed)] = []
    accepted_values: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}
    range: dict[str, BoundsDoc] = {}
    unique: Annotated[list[str], BeforeValidator(_listed)] = []
    freshness: Seconds | None = None
    row_count: BoundsDoc | None = None
    sql: str = ""
    severity: Literal["stop", "warn"] = "stop"


class TableDoc(Doc):
    """tables/<name>.yaml. An empty `time` means that there is none."""

    columns: Annotated[dict[str, Annotated[ColumnDoc, BeforeValidator(_column)]], Field(min_length=1)]
    kind: Literal["landing", "append", "aggregate", "latest", "distinct"] = "append"
    time: str | None = None
    partition_by: Annotated[list[str], BeforeValidator(_listed)] = []
    cluster_by: Annotated[list[str], BeforeValidator(_listed)] = []
    retention: Days | None = None
    description: str = ""
    forward_query: str = ""
    backward_query: str = ""
    managed: bool = False
    owner: str = ""
    expectations: Annotated[list[Annotated[RuleDoc, BeforeValidator(values.rule)]], BeforeValidator(_listed)] = []
    backfill: Literal["auto", "read"] = "auto"
    read_time_days: Whole = 0
    on_rewrite: Annotated[Literal["stop", "ignore", "take_inserts"], BeforeValidator(_rewrite)] = "stop"
    was: str = ""
    source: str = ""
    select: str = ""
    accepts: AcceptsDoc | None = None
    accepts_until: str = ""
    key: Annotated[list[str], BeforeValidator(_listed)] = []
    order_by: Annotated[list[str], BeforeValidator(_listed)] = []
    history: Annotated[str, BeforeValidator(_history)] = ""

    @model_validator(mode="before")
    @classmethod
    def _no_time(cls, data: Any) -> Any:
        untimed = isinstance(data, dict) and "time" in data and data["time"] is None
        return {**data, "time": ""} if untimed else data


class MaterializationDoc(Doc):
    """The leading comment of materializations/<name>.sql."""

    into: str
    description: str = ""
    owner: str = ""


class ParameterDoc(Doc):
    type: SparkType
    default: Scalar = None


class EndpointDoc(Doc):
    """The leading comment of endpoints/<name>.sql."""

    parameters: dict[str, Annotated[ParameterDoc, BeforeValidator(_parameter)]] = {}
    description: str = ""
    owner: str = ""


class CopyDoc(Doc):
    """The leading comment of copies/<name>.sql."""

    into: str
    mode: Literal["append", "replace"] = "replace"
    schedule: str = ""
    description: str = ""
    owner: str = ""


class SinkDoc(Doc):
    """The leading comment of sinks/<name>.sql."""

    path: str
    format: Literal["ndjson", "csv", "parquet"] = "ndjson"
    schedule: str = ""
    description: str = ""
    owner: str = ""


Rows = list[dict[str, Any]]


class ExpectationDoc(Doc):
    """Rows expected of a table, or of one call of an endpoint."""

    rows: Rows
    parameters: dict[str, Scalar] = {}
    key: Annotated[list[str], BeforeValidator(_listed)] = []
    match: Literal["exact", "contains"] = "exact"
    ordered: bool = False
    tolerance: Annotated[
        dict[str, Annotated[Tolerance, BeforeValidator(values.tolerance)]], BeforeValidator(_tolerances)
    ] = {}

    @model_validator(mode="after")
    def _order_of_all(self) -> "ExpectationDoc":
        if self.ordered and self.match == "contains":
            raise ValueError("ordered and match: contains exclude each other: other rows may be in between")
        return self


class FixtureDoc(Doc):
    """tests/<name>.yaml. Words after a name tell several calls of one endpoint apart: `top_errors since the 7th:`."""

    expect: Annotated[dict[str, Annotated[ExpectationDoc, BeforeValidator(_expectation)]], Field(min_length=1)]
    given: dict[str, Rows] = {}
    now: Annotated[datetime | None, BeforeValidator(values.moment)] = None
    description: str = ""


@cache
def fields(kind: type[Doc]) -> dict[str, Any]:
    """Key → annotation, for the hints of misspelt keys."""
    return {name: spec.annotation for name, spec in kind.model_fields.items()}
