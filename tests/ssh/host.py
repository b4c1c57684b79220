"""A region's host: a real OpenSSH server in a network namespace of its own, behind a link that can be cut."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.drivers.ssh.connection import Timeouts
from console.model.region import Region, Ssh

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = Timeouts(connect=15, login=30, answer=60, start=120, beat=1.0, beats=3)  # for a busy machine
_SERIAL = itertools.count()
_CONFIG = """
Port 22
ListenAddress 0.0.0.0
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel VERBOSE
AllowTcpForwarding yes
SetEnv HOME={folder}/home PATH={path} PYTHONPATH={root} CONSOLE_HOME={folder}/home/console XDG_RUNTIME_DIR={run} XDG_CACHE_HOME={folder}/cache {more}
"""


def sh(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass
class Host:
    """One far host. Its disk is ours, its network, home, runtime directory and PATH are its own.

    cut()     nothing passes in either direction any more, and nobody is told
    mend()    everything passes again
    """

    folder: Path
    name: str = "eu"
    path: str = f"{BIN}:/usr/bin:/bin"
    space: str = ""
    address: str = ""
    near: str = ""
    device: str = ""
    extra: str = ""  # lines of sshd_config
    environment: dict[str, str] = field(default_factory=dict)  # of its sessions, beside what each one has
    run: Path = field(default=Path(), init=False)  # where its agents listen
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        number = os.getpid() % 4000 * 4 + next(_SERIAL) % 4
        self.space, self.device = f"console{number}", f"cs{number}"
        third, fourth = divmod(number * 4 % 65_536, 256)
        self.near, self.address = f"10.{213 + number * 4 // 65_536}.{third}.{fourth + 1}", ""
        self.address = self.near.rsplit(".", 1)[0] + f".{fourth + 2}"
        for part in ("home", "cache", "lake"):
            (self.folder / part).mkdir(mode=0o700, parents=True)
        self.run = Path(tempfile.mkdtemp(prefix="console-"))  # a socket's path must be short, and pytest's are not
        for key in ("host_key", "key"):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        shutil.copy(self.folder / "key.pub", self.folder / "authorized_keys")
        self.trust()

    def __enter__(self) -> "Host":
        sh("ip", "netns", "add", self.space)
        sh("ip", "link", "add", self.device, "type", "veth", "peer", "name", "far", "netns", self.space)
        sh("ip", "addr", "add", f"{self.near}/30", "dev", self.device)
        sh("ip", "link", "set", self.device, "up")
        for words in (f"addr add {self.address}/30 dev far", "link set far up", "link set lo up"):
            sh("ip", "-n", self.space, *words.split())
        self.serve()
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        for pid in sh("ip", "netns", "pids", self.space).split():
            subprocess.run(["kill", "-9", pid], check=False, capture_output=True)
        if self._server:
            self._server.wait(10)
        sh("ip", "netns", "del", self.space)
        subprocess.run(["ip", "link", "del", self.device], check=False, capture_output=True)
        shutil.rmtree(self.run)

    def serve(self) -> None:
        """Start its sshd, and wait until it listens."""
        Path("/run/sshd").mkdir(exist_ok=True)
        config = self.folder / "sshd_config"
        more = " ".join(f"{name}={value}" for name, value in self.environment.items())
        text = _CONFIG.format(folder=self.folder, path=self.path, root=ROOT, run=self.run, more=more)
        config.write_text(text + self.extra)
        with (self.folder / "sshd.log").open("ab") as log:
            self._server = subprocess.Popen(
                ["ip", "netns", "exec", self.space, shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(config)],
                stderr=log, stdout=log,
            )  # fmt: skip
        until = time.monotonic() + 10
        while b"Server listening" not in (self.folder / "sshd.log").read_bytes():
            assert time.monotonic() < until, (self.folder / "sshd.log").read_text()
            time.sleep(0.02)

    def restart(self) -> None:
        """End sshd and all its sessions, and start it again; agents that were started go on."""
        self.end_sessions()
        if self._server:
            self._server.terminate()
            self._server.wait(10)
        (self.folder / "sshd.log").unlink()
        self.serve()

    def end_sessions(self) -> None:
        """Kill what serves the connections, as a reboot would; over a cut link nobody hears of it."""
        for pid in sh("ip", "netns", "pids", self.space).split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes() if Path(f"/proc/{pid}").exists() else b""
            if words.startswith((b"sshd:", b"sshd-session:")) and b"listener" not in words:
                subprocess.run(["kill", "-9", pid], check=False, capture_output=True)

    def cut(self) -> None:
        sh("ip", "-n", self.space, "link", "set", "far", "down")

    def mend(self) -> None:
        sh("ip", "-n", self.space, "link", "set", "far", "up")

    def slow(self, *, rate: str = "", off: bool = False) -> None:
        """Let no more through than `rate`, as `tc` writes it."""
        if off:
            sh("tc", "qdisc", "del", "dev", self.device, "root")
        else:
            sh("tc", "qdisc", "add", "dev", self.device, "root", "tbf", *f"rate {rate} burst 4k latency 2s".split())

    def trust(self, key: str = "host_key") -> None:
        """Write our known_hosts: this key and no other."""
        public = (self.folder / f"{key}.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"{self.address} {' '.join(public)}\n")

    def region(self, **ssh: Any) -> Region:
        facts: dict[str, Any] = {"user": "root", "key": f"file:{self.folder}/key"}
        facts |= {"known_hosts": str(self.folder / "known_hosts"), **ssh}
        return Region(
            name=self.name, warehouse=str(self.folder / "lake"), transport=Ssh(host=self.address, **facts), where=f"regions/{self.name}.yaml:1:1"
        )  # fmt: skip

    @property
    def log(self) -> str:
        return (self.folder / "sshd.log").read_text()

    def agent(self) -> int:
        """Pid of the agent that holds its warehouse."""
        return int(json.loads((self.folder / "lake" / "_console" / "agent.lock").read_text())["pid"])

    def processes(self, word: str) -> list[int]:
        """Pids on that host whose command line holds a word."""
        results = []
        for pid in sh("ip", "netns", "pids", self.space).split():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                results.append(int(pid))
        return results
