"""One S3 server for all tests of a worker; each test has a folder of its own in it, behind a proxy that it may cut."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.agent.connect.sessions import open_session
from console.agent.object_store import object_path
from console.agent.object_store.object_path import ObjectPath
from console.agent.object_store.s3 import S3Access, S3Objects
from console.agent.store import commits
from tests.cluster.connect_server import ConnectServer
from tests.objects.proxy import Proxy, between
from tests.objects.region import Region, environment
from tests.objects.server import BUCKET, options, running
from tests.objects.sparks import IN_A_SESSION


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture(scope="session")
def connect(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One Spark Connect server, which reaches the bucket and this machine's disk, and is set up by others: Spark's own default for
    times in files is none of ours."""
    conf = {"spark.sql.parquet.outputTimestampType": "INT96"}
    started = ConnectServer(folder=tmp_path_factory.mktemp("connect"), bucket=True, conf=conf)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in options(server).items():
                patch.setenv(name, value)
            started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture
def session(connect: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One of its sessions, with settings for queries over a few rows."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # for this test: pyspark's functions are Connect's
    opened = open_session(connect.url, IN_A_SESSION)
    yield opened
    opened.stop()


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with between(server) as proxy:
        yield proxy


class Place:
    """A warehouse in the bucket, as two hosts reach it: through the proxy, and around it."""

    def __init__(self, folder: str, server: str, proxy: Proxy) -> None:
        self.direct = S3Access(endpoint=server, region="us-east-1", key_id="test", secret="test")
        self.proxied = S3Access(endpoint=proxy.address, region="us-east-1", key_id="test", secret="test")
        self.objects = S3Objects(BUCKET, folder, self.direct)
        self.cut_off = S3Objects(BUCKET, folder, self.proxied)


@pytest.fixture
def place(request: pytest.FixtureRequest, server: str, proxy: Proxy) -> Place:
    return Place(f"{abs(hash(request.node.nodeid)):x}", server, proxy)


@pytest.fixture
def bare_region(place: Place, server: str, proxy: Proxy, tmp_path: Path) -> Iterator[Region]:
    """Without files and rows. Its agents and consoles reach the bucket through the proxy, the producer and the check around it."""
    for name in ("crash", "crash/fired"):
        (tmp_path / name).mkdir(mode=0o700)
    with tempfile.TemporaryDirectory(prefix="console-") as run:
        own = environment(tmp_path, options(proxy.address), Path(run)) | {"CONSOLE_CRASH_DIR": str(tmp_path / "crash")}
        made = Region(home=tmp_path, warehouse=place.objects.address, store=options(server), environment=own)
        yield made
        made.end()


@pytest.fixture
def folder(place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectPath]:
    """A folder of the bucket, behind the proxy."""
    for name, value in options(proxy.address).items():
        monkeypatch.setenv(name, value)
    object_path._bucket.cache_clear()
    found = object_path.place(place.objects.address)
    assert isinstance(found, ObjectPath)
    yield found
    object_path._bucket.cache_clear()


@pytest.fixture
def warehouse(folder: ObjectPath) -> Iterator[ObjectPath]:
    """As `folder`, for a test whose process holds the lease of a region there."""
    yield folder
    commits.hold(None)
