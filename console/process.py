"""Which process it is: a pid alone may be another's by now."""

import subprocess
from pathlib import Path


def birth(pid: int) -> str:
    """When that process was born, as the system tells it; "" if it lives no more."""
    if Path("/proc/self/stat").exists():
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if state in "ZX" else fields[18]
    told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip()
