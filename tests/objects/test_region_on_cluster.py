"""A region in a bucket whose tasks run in executors of a standalone cluster, with credentials that only its agent was given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import EXECUTORS, Events, Standalone
from tests.objects.region import CHANGED, Region, becomes

pytestmark = [pytest.mark.cluster, pytest.mark.s3, pytest.mark.soak]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standalone]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cluster").mkdir()
    made = Standalone(tmp_path / "cluster")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_region_in_a_bucket_is_built_by_executors_of_both_workers(
    bare_region: Region, cluster: Standalone, tmp_path: Path
) -> None:
    region, events = bare_region, Events(tmp_path / "events")
    region.spark = {"master": cluster.url, "conf": {**EXECUTORS, **events.conf}}
    region.write()
    region.produce(300)
    region.console("apply", "--yes")
    region.produce(100)
    becomes(region, 400)
    region.write(CHANGED)
    region.console("apply", "--yes")
    becomes(region, 400)
    assert "all" in region.console("verify", "--rollout", "web-2")
    assert set(events.ran()) == {worker.web for worker in cluster.workers}
