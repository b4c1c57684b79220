"""The real servers, one of each a run."""

from collections.abc import Iterator

import pytest

from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.servers.postgres import Postgres
from tests.stores.forked import FORKER


@pytest.fixture(scope="session", autouse=True)
def forker() -> Iterator[None]:
    yield
    FORKER.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    server = ClickHouse(tmp_path_factory.mktemp("clickhouse"))
    try:
        yield server.start()
    finally:
        server.stop()
