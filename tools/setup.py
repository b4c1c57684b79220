"""Sets the checkout up: the virtual environment, Java's presence, Delta's jars. Doing it twice does nothing.

    python3 tools/setup.py python     .venv/ with the locked dependencies and this project
    python3 tools/setup.py spark      Java 17 or newer that Spark supports, and Delta's jars in .console/jars/
    python3 tools/setup.py bucket     the same, and the jars by which Spark reaches a bucket
    python3 tools/setup.py postgres   PostgreSQL 13 or newer, which the tests of `console schema` start for themselves
    python3 tools/setup.py clocks     libfaketime, by which fault tests step the clock of running processes

Needs the standard library only, since it runs before anything is installed. Talks on stderr.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
JARS = ROOT / ".console" / "jars"
LOG = ROOT / ".console" / "setup.log"
JAVA_PACKAGE = "openjdk-17-jre-headless"
JAVA_VERSIONS = (17, 21)
POSTGRES_PACKAGE = "postgresql"
OLDEST_POSTGRES = 13
CLOCK_PACKAGE = "libfaketime"
OLDEST_PYTHON = (3, 11)


class SetupError(Exception):
    """What is missing, and what to type."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run(*command: str | Path, **env: str) -> None:
    """Run it quietly: what it says goes to the log, and only the end of it is shown, if it fails."""
    words = [str(word) for word in command]
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a+") as log:
        start = log.seek(0, os.SEEK_END)
        done = subprocess.run(words, cwd=ROOT, env={**os.environ, **env}, stdout=log, stderr=log, check=False)
        log.seek(start)
        if done.returncode:
            say("".join(log.readlines()[-20:]))
            raise SetupError(f"failed: {' '.join(words)[:200]} (all of it: {LOG.relative_to(ROOT)})")


def debian_may_install() -> bool:
    """True for root on a machine with apt: there the set-up may install what it misses."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt(package: str) -> None:
    say(f"installing {package}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "-qq", "update", **quiet)
    run("apt-get", "-qq", "install", "-y", "--no-install-recommends", package, **quiet)


# ---------------------------------------------------------------------------------------------------------- Python


def python_wanted() -> str:
    """What the environment must have been made from."""
    parts = (LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.split()[0].encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def set_up_python() -> None:
    stamp, wanted = VENV / ".console-setup", python_wanted()
    if PYTHON.exists() and stamp.is_file() and stamp.read_text() == wanted:
        return
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: make PYTHON=python3.11 …")
    if not PYTHON.exists():
        make_venv()
    say("installing the locked dependencies into .venv/")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as first:
        # pyspark comes as source: its build must use the locked setuptools, not whichever is newest today
        first.write(locked("setuptools"))
        first.flush()
        pip("install", "--require-hashes", "-r", first.name)
    pip("install", "--require-hashes", "--no-build-isolation", "-r", str(LOCK))
    pip("install", "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    # a fifth of a second of every start, where the environment forbids Python to keep what it compiles
    run(PYTHON, "-m", "compileall", "-q", "console")
    stamp.write_text(wanted)


def make_venv() -> None:
    if find_spec("ensurepip") is None:
        if not debian_may_install():
            raise SetupError("this Python cannot make virtual environments: apt-get install python3-venv")
        apt("python3-venv")
    run(sys.executable, "-m", "venv", VENV)


def pip(*words: str) -> None:
    run(PYTHON, "-m", "pip", "-q", "--disable-pip-version-check", *words)


def locked(name: str) -> str:
    """The lines of one requirement in the lock, hashes included."""
    match = re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", LOCK.read_text(), re.MULTILINE | re.DOTALL)
    if match is None:
        raise SetupError(f"{LOCK.name} holds no {name}")
    return match[0]


# ----------------------------------------------------------------------------------------------------------- Spark


def java_output() -> str:
    """Output of `java -version` of the Java that Spark would start; "" without one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return ""
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    return done.stderr + done.stdout


def java_version() -> int:
    """Its major version; 0 without one."""
    match = re.search(r'version "(\d+)', java_output())
    return int(match[1]) if match else 0


def set_up_java() -> None:
    if java_version() in JAVA_VERSIONS:
        return
    if debian_may_install() and "JAVA_HOME" not in os.environ:
        apt(JAVA_PACKAGE)
    if (version := java_version()) not in JAVA_VERSIONS:
        has = f"this is Java {version}" if version else "there is none here"
        raise SetupError(
            f"Spark needs Java 17, {has}. Install the package {JAVA_PACKAGE} (or set JAVA_HOME to a Java 17)"
        )


def set_up_jars(*more: str) -> None:
    """Delta's jars and the class archive, as an installed console fetches them. more: options of `console setup`"""
    command = [str(PYTHON), "-P", "-m", "console.main", "setup", *more]
    environment = {**os.environ, "CONSOLE_JARS": str(JARS)}
    if subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        raise SetupError("the jars are not there")


# ------------------------------------------------------------------------------------------------------ PostgreSQL


def postgres_version() -> int:
    """Major version of the newest server that Debian's packages put here; 0 without one."""
    match = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((int(path.parts[-3]) for path in match if path.parts[-3].isdigit()), default=0)


def set_up_postgres() -> None:
    if postgres_version() >= OLDEST_POSTGRES or shutil.which("initdb"):
        return
    if debian_may_install():
        apt(POSTGRES_PACKAGE)
    if postgres_version() < OLDEST_POSTGRES:
        raise SetupError(
            f"the tests of `console schema` need a PostgreSQL server: apt-get install {POSTGRES_PACKAGE}"
            " (or have its initdb in PATH)"
        )


# ---------------------------------------------------------------------------------------------------------- clocks


def set_up_clocks() -> None:
    def there() -> bool:
        return any(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

    if not there() and debian_may_install():
        apt(CLOCK_PACKAGE)
    if not there():
        raise SetupError(f"the fault tests step the clock of a JVM by libfaketime: install the package {CLOCK_PACKAGE}")


def main(what: str) -> int:
    try:
        match what:
            case "python":
                set_up_python()
            case "spark":
                set_up_java()
                set_up_python()
                set_up_jars()
            case "bucket":
                set_up_java()
                set_up_python()
                set_up_jars("--with", "s3")
            case "postgres":
                set_up_postgres()
            case "clocks":
                set_up_clocks()
            case _:
                raise SetupError("say `python`, `spark`, `bucket`, `postgres` or `clocks`")
    except SetupError as error:
        say(f"set-up: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
