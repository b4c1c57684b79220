"""One S3 server for all tests of a worker; each test has a folder of its own in it, behind a proxy that it may cut."""

from collections.abc import Iterator

import pytest

from console.agent.object_store.s3 import S3Access, S3Objects
from tests.objects.proxy import Proxy, between
from tests.objects.server import BUCKET, running


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running() as address:
        yield address


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
