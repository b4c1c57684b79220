"""The agent's start settings, kept beside the region's data."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from console import crash
from console.agent.store.host_folder import own_folder
from console.errors import DataError, RegionError
from console.model import codec
from console.model.connect_address import connect_address
from console.model.region import FOLLOW, Follow
from console.model.spark_master import spark_master


@dataclass(slots=True, kw_only=True)
class Settings:
    """The agent's start settings; stored in `_console/agent.json`, so that it can restart without project files.

    conf                   Spark's configuration, by its names
    tick_seconds           between two ticks of the follower
    rollback_window_hours  how long a rollback to the previous release is possible
    keep_failed_hours      how long a failed rollout keeps its versions
    spark_defaults         the operator's `spark-defaults.conf`, a path on the region's host; "" for none
    remote                 the address of its Spark Connect server; "" for a Spark of `master`
    backfill_master, backfill_conf, backfill_defaults  of its second Spark, likewise; "" for none
    follow_…               `model.region.Follow`; sent and stored only where it is not the default
    """

    region: str = ""
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    tick_seconds: float = 1.0
    rollback_window_hours: float = 72.0
    keep_failed_hours: float = 72.0
    spark_defaults: str = field(default="", metadata=codec.QUIET)
    remote: str = field(default="", metadata=codec.QUIET)
    backfill_master: str = field(default="", metadata=codec.QUIET)
    backfill_conf: dict[str, str] | None = field(default=None, metadata=codec.QUIET)
    backfill_defaults: str = field(default="", metadata=codec.QUIET)
    follow_share: float = field(default=FOLLOW.share, metadata=codec.QUIET)
    follow_lag_seconds: float | None = field(default=None, metadata=codec.QUIET)
    follow_idle_seconds: float | None = field(default=FOLLOW.idle_seconds, metadata=codec.QUIET)

    @property
    def second_spark(self) -> "Settings | None":
        """Those of the second Spark, which follows nothing; None if the region has none."""
        if not self.backfill_master:
            return None
        return Settings(
            region=f"{self.region} backfill",
            master=self.backfill_master,
            conf=self.backfill_conf or {},
            spark_defaults=self.backfill_defaults,
        )

    @property
    def follow(self) -> Follow:
        return Follow(self.follow_share, self.follow_lag_seconds, self.follow_idle_seconds)


def load_settings(text: str) -> Settings:
    """Settings from the JSON of a console or of `agent.json`; unknown keys are refused.

    raises  RegionError
    """
    try:
        settings = codec.decode(Settings, codec.loads(text), exact=True)
    except DataError as error:
        raise RegionError(f"agent settings: {error}") from None
    _check_master(settings.master, "spark.master")
    if settings.backfill_master:
        _check_master(settings.backfill_master, "backfill_spark.master")
    try:
        if settings.remote:
            connect_address(settings.remote)
    except ValueError as error:
        hint = "correct spark.remote in the region's file (docs/clusters.md)"
        raise RegionError(f"agent settings: remote: {error}", hint=hint, code="E_MASTER") from None
    if not 0 < settings.follow_share <= 1:
        hint = "start it from its project: console follow --region NAME"
        raise RegionError(
            f"agent settings: follow_share: expected more than 0, up to 1: {settings.follow_share:g}", hint=hint
        )
    return settings


def _check_master(master: str, key: str) -> None:
    """key: in the region's file"""
    try:
        spark_master(master)
    except ValueError as error:
        hint = f"correct {key} in the region's file (docs/clusters.md)"
        raise RegionError(f"agent settings: {key}: {error}", hint=hint, code="E_MASTER") from None


def keep_settings(warehouse: Path, settings: Settings) -> None:
    """Store the settings in `agent.json`, which only the agent's user can read."""
    path = own_folder(warehouse) / "agent.json"
    fresh = path.with_suffix(".new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump({key: value for key, value in codec.encode(settings).items() if key != codec.TAG}, file)
    crash.point("before-settings")
    fresh.replace(path)
    crash.point("after-settings")
