"""A real ClickHouse for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.propagation.servers.clickhouse import ClickHouse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    result = ClickHouse(tmp_path_factory.mktemp("clickhouse")).start()
    yield result
    result.stop()
