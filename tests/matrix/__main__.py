"""Older sets of Spark and Delta, each tested by one rollout of the demo's pipeline: `python -m tests.matrix [NAME …]`.

Sets that pass are written to `console/tested_versions.jsonl`, by which `console doctor` and agents say whether theirs was tested.
"""

import json
import shutil
import sys

from tests.matrix.environments import OLDER, ROOT, Environment

RECORD = ROOT / "console" / "tested_versions.jsonl"
RUN = "a rollout of the demo's pipeline (make matrix)"


def main(*names: str) -> int:
    failed = 0
    for environment in OLDER:
        if names and environment.name not in names:
            continue
        environment.prepare()
        folder = environment.folder / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        done = environment.run("-m", "tests.matrix.rollout", str(folder), timeout=3600)
        failed += done.returncode != 0
        print(f"{environment.name}: {done.stdout or done.stderr}", flush=True)
        if not done.returncode:
            keep(environment, json.loads(done.stdout.splitlines()[-1])["versions"])
    return failed


def keep(environment: Environment, versions: dict[str, str]) -> None:
    """The set in the record; a former one of the same environment is replaced."""
    kept = [json.loads(line) for line in RECORD.read_text().splitlines()]
    series = f"{environment.name}."
    kept = [entry for entry in kept if not entry["versions"]["spark"].startswith(series)]
    kept.append({"versions": versions, "run": RUN})
    kept.sort(key=lambda entry: str(entry["versions"]["spark"]), reverse=True)
    RECORD.write_text("".join(json.dumps(entry) + "\n" for entry in kept))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
