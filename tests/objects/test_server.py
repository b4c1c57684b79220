"""The server of these tests arbitrates, as S3 does: without that, no other test here would tell anything."""

from typing import Any

import boto3
import obstore
import pytest

from tests.objects.race import winners
from tests.objects.server import BUCKET, client

pytestmark = pytest.mark.s3


def test_of_processes_that_put_a_key_if_absent_at_the_same_moment_one_wins(server: str) -> None:
    assert winners(server, keys=50, processes=4) == [1] * 50


KEYS = sorted(
    [*(f"lists/{folder}/{n:03}" for folder in ("a", "b=1 %2F/é&<", "c") for n in range(7)), "lists/a", "lists/z"]
)


@pytest.fixture
def listing(server: str) -> Any:
    """A client that asks for pages, which is none of those that console and Spark use."""
    store = client(server)
    for key in KEYS:
        obstore.put(store, key, key.encode())
    account = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=server, **account)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_its_lists_hold_every_key_once_in_order_page_by_page(listing: Any, size: int) -> None:
    pages = listing.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="lists/", PaginationConfig={"PageSize": size}
    )
    found = [entry for page in pages for entry in page["Contents"]]
    assert [entry["Key"] for entry in found] == KEYS
    assert [entry["Size"] for entry in found] == [len(key.encode()) for key in KEYS]
    assert {entry["ETag"] for entry in found} == {listing.head_object(Bucket=BUCKET, Key=key)["ETag"] for key in KEYS}


def test_its_lists_roll_folders_up_and_begin_behind_a_key(listing: Any) -> None:
    folders = listing.list_objects_v2(Bucket=BUCKET, Prefix="lists/", Delimiter="/")
    assert [each["Prefix"] for each in folders["CommonPrefixes"]] == ["lists/a/", "lists/b=1 %2F/", "lists/c/"]
    assert [each["Key"] for each in folders["Contents"]] == ["lists/a", "lists/z"]
    behind = listing.list_objects_v2(Bucket=BUCKET, Prefix="lists/", StartAfter="lists/c/004")
    assert [each["Key"] for each in behind["Contents"]] == ["lists/c/005", "lists/c/006", "lists/z"]
    assert listing.list_objects_v2(Bucket=BUCKET, Prefix="none/")["KeyCount"] == 0
