"""The places of console's own files on this machine: sockets, journal, logs. Directories are 0700."""

import hashlib
import os
import re
from pathlib import Path

_REASON_BYTES = 200
# deltalake ends itself on the first ones, and takes `%41` for `A` and a backslash for a slash: another folder
_UNFIT = re.compile(r"[\[\]^|\\]|%[0-9A-Fa-f]{2}")
UNFIT = "rename the folder, or mount it elsewhere: without [ ] ^ | \\, and without % in front of two digits"


def unfit(path: str) -> str:
    """The part of a local path that rules out a Delta table there, "" if there is none."""
    unfit_part = _UNFIT.search(path)
    return unfit_part[0] if unfit_part else ""


def unfit_here(path: str) -> str:
    """The same of a path of this machine, and of the target of its links, which deltalake uses."""
    return unfit(path) or (unfit(os.path.realpath(path)) if path.startswith("/") else "")


def _own(path: Path) -> Path:
    """The folder, created with its parents if needed: anyone who may write to one of these could replace it."""
    if not path.is_dir():
        _own(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def state_dir() -> Path:
    """Journal and logs: `$CONSOLE_HOME/state`, else `$XDG_STATE_HOME/console`, else `~/.local/state/console`."""
    if home := os.environ.get("CONSOLE_HOME"):
        return _own(Path(home) / "state")
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return _own(Path(base) / "console")


def cache_dir() -> Path:
    """Files that may be deleted at any time: `$CONSOLE_HOME/cache`, else `$XDG_CACHE_HOME/console`, else `~/.cache/console`."""
    if home := os.environ.get("CONSOLE_HOME"):
        return _own(Path(home) / "cache")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return _own(Path(base) / "console")


def pause_file() -> Path:
    """While it exists no rollout of this user on this machine begins a batch or a region; its text is the reason.

    `$CONSOLE_PAUSE`, else `$XDG_CONFIG_HOME/console/pause`, else `~/.config/console/pause`.
    """
    if named := os.environ.get("CONSOLE_PAUSE"):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "console" / "pause"


def paused(path: Path) -> str | None:
    """The text in a pause file, "" where it is empty or cannot be read, None where there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""  # there is something of that name: its author wants a pause
    try:
        text = os.read(fd, _REASON_BYTES).decode("utf-8", "replace")
    except OSError:
        text = ""
    finally:
        os.close(fd)
    return " ".join(text.split())


def region_dir(warehouse: str) -> Path:
    """What this machine keeps of a region whose warehouse is in a bucket: settings and figures of the agents that ran here."""
    return _own(state_dir() / "regions" / hashlib.sha256(_one_name(warehouse).encode()).hexdigest()[:20])


def _one_name(warehouse: str) -> str:
    """A bucket's URI as the libraries know it; a path as it is."""
    return warehouse.replace("s3a://", "s3://", 1).rstrip("/") if "://" in warehouse else warehouse


def log_dir() -> Path:
    return _own(state_dir() / "log")


def screen_file(title: str) -> Path:
    """The state that the screen of one pipeline keeps between two visits."""
    return state_dir() / "screens" / f"{hashlib.sha256(title.encode()).hexdigest()[:16]}.json"


def pictures_dir() -> Path:
    """Pictures of screens that the operator saved."""
    return _own(state_dir() / "pictures")


def runtime_dir() -> Path:
    """Sockets: `$XDG_RUNTIME_DIR/console`, else `/tmp/console-<uid>`; refused where another user owns it.

    A unix socket's path is limited to 107 bytes, hence never below a warehouse.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(base) / "console" if base else Path(f"/tmp/console-{os.getuid()}")
    _own(path)
    if path.is_symlink() or path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o077:
        raise PermissionError(f"{path} is not ours alone; remove it or set XDG_RUNTIME_DIR")
    return path


def socket_path(warehouse: str) -> Path:
    """The socket of the agent that holds this warehouse (absolute path or URI)."""
    return runtime_dir() / f"{hashlib.sha256(_one_name(warehouse).encode()).hexdigest()[:20]}.sock"


def jars_dir() -> Path:
    """Delta's jars, put there by `console setup`: `$CONSOLE_JARS`, else `.console/jars` of the checkout this package lies
    in, else `$CONSOLE_HOME/jars`, `$XDG_DATA_HOME/console/jars` or `~/.local/share/console/jars`. It may not exist yet.
    """
    if named := os.environ.get("CONSOLE_JARS"):
        return Path(named)
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".console" / "jars"
    if home := os.environ.get("CONSOLE_HOME"):
        return Path(home) / "jars"
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "console" / "jars"
    older = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "console" / "jars"  # 0.1.0's place
    return older if older.is_dir() and not data.is_dir() else data


def archive_path() -> Path:
    """The class archive of the region's JVM (console/agent/class_archive.py)."""
    return jars_dir() / "classes.jsa"


def version_path(warehouse: Path, path: str) -> str:
    """The place of a version, from its path in a release or receipt.

    0.1.0 wrote a landing table's path in full, and knew none outside of its warehouse: where the warehouse was moved or
    copied, the table is the folder of that name in it, and never the one that was left behind.

    path  below the warehouse; a URI; or absolute
    """
    if "://" in path or Path(path).is_relative_to(warehouse):
        return path
    place = Path(path)
    return str(warehouse / (place.name if place.is_absolute() else place))
