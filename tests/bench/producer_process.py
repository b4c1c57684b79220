"""A producer in a process of its own: `LANDING RATE`. Commits so many rows once a second until SIGTERM, and prints how many they were.

deltalake works on threads of its own, which no process can tell from those of the agent beside it.
"""

import signal
import sys
import threading
import time

from deltalake import write_deltalake

from tests.faults.rules.tables import rows


def main(landing: str, rate: int) -> int:
    """Rows written."""
    ended, written, began = threading.Event(), 0, time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(max(0.0, began + written / rate - time.monotonic())):
        write_deltalake(landing, rows(*range(rate)), mode="append", partition_by=["day"])
        written += rate
    return written


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2])))
