"""The server of these tests arbitrates, as S3 does: without that, no other test here would tell anything."""

import pytest

from tests.objects.race import winners

pytestmark = pytest.mark.s3


def test_of_processes_that_put_a_key_if_absent_at_the_same_moment_one_wins(server: str) -> None:
    assert winners(server, keys=50, processes=4) == [1] * 50
