"""The agent in one file, for hosts without console: reproducible bytes, checked by digest on the host."""

import hashlib
import io
import shlex
import zipfile
from functools import cache
from pathlib import Path

import console
from console.errors import ConsoleError, Protocol, RegionError

# the modules that the remote side runs: the agent and its transport
_ROOMS = ("agent", "model")
_FILES = (
    "__init__.py", "aws_profile.py", "crash.py", "errors.py", "paths.py", "process.py", "record.py", "remedy.py", "spark_versions.py", "tested_versions.jsonl", "text.py",
    "drivers/__init__.py", "drivers/audit.py", "drivers/frames.py", "drivers/prerequisites.py", "drivers/local.py", "drivers/lock_holder.py", "drivers/protocol.py", "drivers/rpc.py", "drivers/transport.py",
    "drivers/ssh/__init__.py", "drivers/ssh/remote.py", "drivers/store_secrets.py", "drivers/survey.py",
)  # fmt: skip
_FOLDER = ".cache/console"  # below the remote user's home

# prints `have` if the file is there intact, else `send`, reads it from stdin, checks it, and only then renames it
_RECEIVE = """
import hashlib, os, sys
digest, folder = sys.argv[1], sys.argv[2]
folder = os.path.join(os.path.expanduser("~"), folder)
path = os.path.join(folder, "agent-" + digest + ".pyz")
def whole():
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return os.fstat(file.fileno()).st_uid == os.getuid() and hashlib.sha256(file.read()).hexdigest() == digest
    except OSError:
        return False
if sys.version_info < (3, 11):
    print("old", sys.version.split()[0])
elif whole():
    print("have")
else:
    print("send", flush=True)
    data = sys.stdin.buffer.read()
    os.umask(0o077)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    new = path + "." + str(os.getpid())
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    print("have" if whole() else "broken")
"""


@cache
def packed() -> tuple[bytes, str]:
    """The file, and its SHA-256."""
    root = Path(console.__file__).resolve().parent
    names = {*_FILES, *(p.relative_to(root).as_posix() for room in _ROOMS for p in (root / room).rglob("*.py"))}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(names):
            entry = zipfile.ZipInfo(f"console/{name}", (2020, 1, 1, 0, 0, 0))
            entry.external_attr = 0o600 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, (root / name).read_bytes())
    data = out.getvalue()
    return data, hashlib.sha256(data).hexdigest()


def receiver() -> str:
    """The remote command line that receives the file."""
    return shlex.join(["python3", "-I", "-c", _RECEIVE, packed()[1], _FOLDER])


def started() -> str:
    """The remote command line that serves one request from the file."""
    return f'env PYTHONPATH="$HOME/{_FOLDER}/agent-{packed()[1]}.pyz" python3 -P -m console.drivers.ssh.remote'


def taken(answer: str, region: str) -> ConsoleError | None:
    """The problem in the receiver's last line; None if the file is there and verified."""
    match answer.split():
        case ["have"]:
            return None
        case ["old", version]:
            hint = "install Python 3.11 or later there, with pyspark and deltalake"
            return RegionError(
                f"{region}: python3 on its host is {version:.20}", region=region, hint=hint, code="E_BOOTSTRAP"
            )
        case ["broken"]:
            hint = "look at the disk of its host; the file is in ~/.cache/console"
            return RegionError(
                f"{region}: the agent's file arrived incomplete", region=region, hint=hint, code="E_BOOTSTRAP"
            )
    return Protocol(
        f"{region}: its host answered {answer[:80]!r} to the agent's file", region=region, code="E_PROTOCOL"
    )
