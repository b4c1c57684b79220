"""What a command costs with everything that it starts: processor seconds of the whole process tree, and seconds until it ended.

    python process_tree.py FILE COMMAND …      the costs go to FILE as JSON

A JVM that outlives the Python which started it, and an agent that detaches itself, become children of this process, since it is
their subreaper: the kernel adds what they took once they have ended, as it does for any child.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCost:
    """processor: user and system seconds of the whole tree;  seconds: by the clock, until the command ended"""

    processor: float
    seconds: float


class CommandFailed(Exception):
    """It ended with another code than 0; what it printed last."""


def cost_of(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float = 3600.0) -> TreeCost:
    """Run a command, wait until it and all below it have ended, and tell what they took.

    raises  CommandFailed; subprocess.TimeoutExpired: what it left running then goes on
    """
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        done = subprocess.run(
            [sys.executable, "-P", __file__, file.name, *command], cwd=cwd, env=dict(env), capture_output=True, text=True,
            check=False, timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise CommandFailed(
                f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        return TreeCost(**json.loads(file.read()))


def main(file: str, *command: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    seconds = time.monotonic() - began
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass  # the last one has ended
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(file).write_text(json.dumps({"processor": used.ru_utime + used.ru_stime, "seconds": seconds}))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
