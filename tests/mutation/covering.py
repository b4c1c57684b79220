"""Which tests pass which lines, quickest first: one run of them all under coverage, kept until the tree changes."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.mutation.mutants import ROOT

KEPT = ROOT / ".console" / "mutation"
Lines = dict[str, dict[int, list[str]]]  # file → line (0: read at import) → tests


def tree() -> str:
    """What the answers depend on."""
    result = hashlib.sha256()
    for path in sorted([*ROOT.glob("console/**/*.py"), *ROOT.glob("tests/**/*.py")]):
        result.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return result.hexdigest()[:16]


def covering(tests: Sequence[str], files: Sequence[str]) -> Lines:
    """The tests of some files and folders, by the lines of `files` that they pass.

    raises  SystemExit where one of them fails as it is, for then a failure says nothing of a mutant
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256("\0".join((tree(), *tests, *files)).encode()).hexdigest()[:16]
    kept = KEPT / f"lines-{name}.json"
    if not kept.exists():
        kept.write_text(json.dumps(_run(tests, files, kept.with_suffix(".d"))))
    return {file: {int(n): item for n, item in lines.items()} for file, lines in json.loads(kept.read_text()).items()}


def _run(tests: Sequence[str], files: Sequence[str], place: Path) -> Lines:
    import coverage

    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    data, settings, report = place / "coverage", place / "coverage.ini", place / "tests.xml"
    include = "\n".join(f"    {ROOT / file}" for file in files)
    settings.write_text(
        f"[run]\ndata_file = {data}\ndynamic_context = test_function\ninclude =\n{include}\n"
        "disable_warnings = no-data-collected,module-not-measured\n"
    )
    env = {**os.environ, "COVERAGE_CORE": "ctrace"}
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", *tests]
    done = subprocess.run([*command, "-p", "no:cacheprovider", f"--junitxml={report}"], cwd=ROOT, env=env, check=False)
    if done.returncode:
        raise SystemExit("the tests fail on the file as it is")
    took: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        took[_test(f"{case.get('classname')}.{str(case.get('name')).partition('[')[0]}")] += float(case.get("time", 0))
    result = coverage.CoverageData(basename=str(data))
    result.read()
    lines: Lines = {}
    for file in files:
        by_line: dict[int, list[str]] = defaultdict(list)
        everything = set[str]()
        for number, contexts in result.contexts_by_lineno(str(ROOT / file)).items():
            passing = {test for context in contexts if (test := _test(context))}
            everything |= passing
            if passing:
                by_line[number] = sorted(passing, key=lambda test: took[test])
        by_line[0] = sorted(everything, key=lambda test: took[test])
        lines[file] = dict(by_line)
    return lines


def _test(context: str) -> str:
    """`days.test_slices.test_x` as pytest names it; "" for what is passed outside a test."""
    parts = ["tests", *context.removeprefix("tests.").split(".")]
    for i in range(len(parts), 0, -1):
        if (ROOT / Path(*parts[:i])).with_suffix(".py").is_file():
            return "::".join([str(Path(*parts[:i]).with_suffix(".py")), *parts[i:]])
    return ""
