"""Commits as one put of exactly N+1 through deltalake, raced by processes, some of whose answers are lost.

    python -m tests.objects.spike.commits [--versions 3000] [--processes 4] [--lose 50] [--address http://…]

--lose     the answer of about every so-manieth put into the log never arrives; 0: none
--address  of another S3 server with the bucket `lake`, and the account of `tests.objects.server`
"""

import argparse
import json
import multiprocessing
import random
import time
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from obstore import get

from tests.objects.proxy import Fate, Rule, between
from tests.objects.server import BUCKET, client, options, running

TABLE = "raced"
SCHEMA = pa.schema([("n", pa.int64())])


def put_next(table: DeltaTable, feed: str, number: int) -> None:
    """One put of exactly the version after the one that the table was read at.

    raises  whatever deltalake raises: a version that is taken, or an answer that never came
    """
    own = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(feed, number)])
    table.create_write_transaction([], "append", table.schema(), [], commit_properties=own)


def race(address: str, feed: str, versions: int, answers: Any) -> None:
    """Versions won by this process: told so by the put itself, or found by reading the log again."""
    told, found, refused, number = [], [], 0, 0
    table = DeltaTable(f"s3://{BUCKET}/{TABLE}", storage_options=options(address))
    while table.version() < versions:
        before = table.version()
        number += 1
        try:
            put_next(table, feed, number)
            told.append((before + 1, number))
        except Exception:
            # whatever was said, only the log knows
            table.update_incremental()
            if table.transaction_version(feed) == number:
                found.append((before + 1, number))
            else:
                refused += 1
                number -= 1
        if random.random() < 0.5:  # otherwise from the version of its own commit
            table.update_incremental()
    answers.put((feed, told, found, refused))


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--versions", type=int, default=3000)
    words.add_argument("--processes", type=int, default=4)
    words.add_argument("--lose", type=int, default=50)
    words.add_argument("--address")
    asked = words.parse_args()
    with ExitStack() as stack:
        server = asked.address or stack.enter_context(running())
        address = server
        if asked.lose:
            proxy = stack.enter_context(between(server))
            proxy.rule = losing(random.Random(16), 1 / asked.lose)
            address = proxy.address
        print(json.dumps(run(server, address, asked.versions, asked.processes)))


def losing(drawn: random.Random, share: float) -> Rule:
    def rule(method: str, path: str) -> Fate:
        return "lose answer" if method == "PUT" and "/_delta_log/" in path and drawn.random() < share else "pass"

    return rule


def run(server: str, proxied: str, versions: int, processes: int) -> dict[str, float]:
    started = time.monotonic()
    DeltaTable.create(f"s3://{BUCKET}/{TABLE}", SCHEMA, "error", storage_options=options(server))
    spawned = multiprocessing.get_context("spawn")
    answers = spawned.Queue()
    feeds = [f"feed-{at}" for at in range(processes)]
    racers = [spawned.Process(target=race, args=(proxied, feed, versions, answers)) for feed in feeds]
    for racer in racers:
        racer.start()
    results = [answers.get(timeout=3600) for _ in racers]
    for racer in racers:
        racer.join()
    owners: dict[int, list[tuple[str, int]]] = {}
    for feed, told, found, _ in results:
        for version, number in (*told, *found):
            owners.setdefault(version, []).append((feed, number))
    store = client(server)
    wrong = 0
    last = max(owners)
    for version in range(1, last + 1):
        text = bytes(get(store, f"{TABLE}/_delta_log/{version:020}.json").bytes()).decode()
        txns = [json.loads(line)["txn"] for line in text.splitlines() if '"txn"' in line]
        wrong += [(txn["appId"], txn["version"]) for txn in txns] != owners.get(version)
    return {
        "versions": last,
        "double winners": sum(len(who) > 1 for who in owners.values()),
        "not as their owners say": wrong,
        "found again after a lost answer": sum(len(found) for _, _, found, _ in results),
        "refused": sum(refused for *_, refused in results),
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    main()
