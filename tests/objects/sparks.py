"""The kinds of Spark that a region in a bucket may have: its agent's own, one on a cluster, one behind Spark Connect."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.connect_server import ConnectServer
from tests.cluster.standalone import EXECUTORS, Events, Standalone
from tests.life.region import SHORT_LIVED

# a region's `spark` in the inventory
Setting = Mapping[str, Any]
IN_A_SESSION = {name: SHORT_LIVED[name] for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")}


@contextmanager
def own_spark(folder: Path, environment: Mapping[str, str]) -> Iterator[Setting]:
    yield {"master": "local[2]", "conf": SHORT_LIVED}


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[Setting]:
    """A master and two workers, both of which ran tasks."""
    (folder / "cluster").mkdir()
    standalone, events = Standalone(folder / "cluster"), Events(folder / "events")
    try:
        standalone.start()
        yield {"master": standalone.url, "conf": {**EXECUTORS, **events.conf}}
        assert set(events.ran()) == {worker.web for worker in standalone.workers}
    finally:
        standalone.stop()


@contextmanager
def connect(folder: Path, environment: Mapping[str, str]) -> Iterator[Setting]:
    """A server of its own.  environment: how it reaches the bucket"""
    (folder / "connect").mkdir()
    server = ConnectServer(folder=folder / "connect", bucket=True, environment=environment)
    try:
        server.start()
        yield {"remote": server.url, "conf": IN_A_SESSION}
    finally:
        server.stop()


Kind = Callable[[Path, Mapping[str, str]], AbstractContextManager[Setting]]
KINDS: tuple[Kind, ...] = (own_spark, cluster, connect)
