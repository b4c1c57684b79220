"""A region in a bucket whose Spark is behind Spark Connect through its whole life, while a producer goes on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.connect_server import ConnectServer
from tests.objects.conftest import SMALL
from tests.objects.region import CHANGED, FILES, Region, becomes, tidied

pytestmark = [pytest.mark.cluster, pytest.mark.s3]


@pytest.fixture
def region(bare_region: Region, connect: ConnectServer) -> Region:
    bare_region.spark = {"remote": connect.url, "conf": SMALL}
    bare_region.write(FILES)
    bare_region.produce(300)
    return bare_region


@contextmanager
def producing(region: Region, rows: int = 10, seconds: float = 0.5) -> Iterator[None]:
    over = threading.Event()

    def produce() -> None:
        while not over.wait(seconds):
            region.produce(rows)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_it(region: Region) -> None:
    import time
    t=time.monotonic()
    def say(what):
        print(what, round(time.monotonic()-t,1), flush=True)
    with producing(region):
        region.console("apply", "--yes")
        say("web-1")
    becomes(region, region.sent)
    say("flows")
    region.write(CHANGED)
    with producing(region):
        print(region.console("apply", "--yes"))
        say("web-2")
    becomes(region, region.sent)
    becomes(region, region.sent, "previous")
    say("both")
    print(region.console("verify", "--rollout", "web-2"))
    say("verified")
    region.console("rollback", "--yes", "--region", "us")
    region.produce(50)
    becomes(region, region.sent)
    say("back")
    tidied(region)
    say("tidied")
    print(region.log())
