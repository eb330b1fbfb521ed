"""The tests with the lowest, the pinned and the newest versions of Triton and PyTorch.

    python benchmarks/compat.py [--only NAME ...] [--with torch=2.14.1,triton=3.8.0 ...]
    python benchmarks/compat.py --fast .venv

Builds an environment for each, with nothing but pip and what the project declares, and runs the
audit and the tests of the interpreter and of quality in it. An environment takes up to 8 GB, which
it gives back unless `--keep`. `--fast` only replaces Triton in the environment that it names, by
the lowest and the newest version, and runs a few minutes' worth of tests.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "compat.json"
FOLDER = ROOT / "build" / "compat"

TESTS = ("tests/interpreter", "tests/quality")
FAST_TESTS = (
    "tests/interpreter/test_versions.py",
    "tests/interpreter/test_fidelity.py",
    "tests/interpreter/test_plans.py",
    "tests/interpreter/test_launches.py",
    "tests/interpreter/test_runner_triton.py",
)
# The newest that the adapters were written for.
NEWEST_TRITON = "triton==3.9.*"
VERSIONS = (
    "import json, platform, torch, triton; "
    "print(json.dumps([platform.python_version(), torch.__version__, triton.__version__]))"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What came out in one environment."""

    name: str
    python: str
    torch: str
    triton: str
    audit: str
    passed: int
    skipped: tuple[str, ...]
    failed: tuple[str, ...]
    minutes: float


def declared() -> dict[str, str]:
    """The requirements of the lowest versions that the project declares, by package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = (re.fullmatch(r"(torch|triton)>=(\S+)", need) for need in project["dependencies"])
    return {m[1]: f"{m[1]}=={m[2]}.*" for m in found if m}


def environments(more: list[str]) -> dict[str, list[str]]:
    """By name: what pip is asked for beside the project; nothing for the newest."""
    pins = (ROOT / "requirements" / "audit.txt").read_text().splitlines()
    chosen = {
        "lowest": list(declared().values()),
        "pinned": [line for line in pins if re.match(r"(torch|triton)==", line)],
    }
    for text in more:
        chosen[text] = [part.replace("=", "==", 1) for part in text.split(",")]
    return {**chosen, "newest": []}


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    """A command in the project's root, its output kept."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        text=True,
        check=False,
        **more,  # type: ignore[call-overload]
    )


def made(folder: Path, needs: list[str]) -> Path:
    """The Python of an environment with the project and these packages in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder)
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    # The project itself is always installed anew: it may have changed, and its number has not.
    for what in ([*needs, ".[test]"], ["--force-reinstall", "--no-deps", "."]):
        if run(*pip, *what).returncode:
            raise SystemExit(f"pip could not install {' '.join(what)}")
    return python


def audited(python: Path) -> str:
    """What `kerneltruth audit` says in one cell of the table."""
    command = (python.parent / "kerneltruth", "audit", "--json", "--no-peer-checks")
    done = run(*command, "--device", "cpu", "--out", python.parents[1] / "run", capture_output=True)
    if done.returncode not in (0, 1):
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"
    facts = json.loads(done.stdout)["summary"]
    return (
        f"{facts['controls_clean']} of {facts['controls']} controls clean, "
        f"{facts['bugs_caught']} of {facts['bugs']} bugs caught"
    )


def tested(python: Path, tests: tuple[str, ...], report: Path) -> tuple[int, list[str], list[str]]:
    """How many tests passed, why others were skipped, and which failed."""
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}")
    run(python, "-m", "pytest", *options, *tests)
    passed, skipped, failed = 0, [], []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        skip = case.find("skipped")
        if skip is not None:
            skipped.append(str(skip.get("message")))
        elif case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed += 1
    return passed, skipped, failed


def tried(name: str, python: Path, tests: tuple[str, ...], *, audit: bool) -> Row:
    """One row of the table."""
    start = time.monotonic()
    said = audited(python) if audit else ""
    passed, skipped, failed = tested(python, tests, python.parents[1] / "tests.xml")
    versions = json.loads(run(python, "-c", VERSIONS, capture_output=True).stdout)
    return Row(
        name=name,
        python=versions[0],
        torch=versions[1],
        triton=versions[2],
        audit=said,
        passed=passed,
        skipped=tuple(skipped),
        failed=tuple(failed),
        minutes=(time.monotonic() - start) / 60,
    )


def replaced(base: Path, need: str, folder: Path) -> Path:
    """The Python of an environment that has another Triton, and all else from `base`."""
    shutil.rmtree(folder, ignore_errors=True)
    run(base / "bin" / "python", "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    (others,) = base.resolve().glob("lib/python3*/site-packages")
    (site / "base.pth").write_text(f"{ROOT / 'src'}\n{others}\n")
    pip = (base / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    if run(*pip, "install", "--no-deps", "--target", site, need).returncode:
        raise SystemExit(f"pip could not install {need}")
    return folder / "bin" / "python"


def table(rows: list[Row]) -> str:
    """The rows in Markdown, and below it what was skipped and what failed."""
    head = "| versions | Python | PyTorch | Triton | `audit` | tests passed | skipped | failed |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {r.name} | {r.python} | {r.torch} | {r.triton} | {r.audit} | {r.passed} "
        f"| {len(r.skipped)} | {len(r.failed)} |"
        for r in rows
    ]
    for row in rows:
        reasons = {why: row.skipped.count(why) for why in row.skipped}
        lines += ["", f"{row.name}: {row.minutes:.0f} minutes."]
        lines += [f"- skipped, {count}: {why}" for why, count in reasons.items()]
        lines += [f"- failed: `{name}`" for name in row.failed]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Build, run, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--with", action="append", default=[], dest="more", metavar="VERSIONS")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--fast", type=Path, metavar="ENVIRONMENT")
    options = parser.parse_args()
    rows = []
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.fast:
        for name, need in {"lowest": declared()["triton"], "newest": NEWEST_TRITON}.items():
            python = replaced(options.fast, need, options.folder / f"{name}-triton")
            rows.append(tried(name, python, FAST_TESTS, audit=False))
        print(table(rows))
        return int(any(row.failed or not row.passed for row in rows))
    for name, needs in environments(options.more).items():
        if options.only and name not in options.only:
            continue
        folder = options.folder / re.sub(r"\W+", "-", name)
        rows.append(tried(name, made(folder, needs), TESTS, audit=True))
        kept(rows[-1])
        if not options.keep:
            shutil.rmtree(folder)
    print(table(rows))
    return int(any(row.failed or not row.passed for row in rows))


def kept(row: Row) -> None:
    """Put the row in the place of an earlier one for the same versions, and write the table."""
    stored = json.loads(RESULT.read_text()) if RESULT.exists() else []
    rows = {r["name"]: Row(**r) for r in stored} | {row.name: row}
    ordered = sorted(rows.values(), key=lambda r: [int(n) for n in re.findall(r"\d+", r.torch)])
    RESULT.write_text(json.dumps([asdict(r) for r in ordered], indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(
        "# Versions of Triton and PyTorch\n\nWritten by `make compat`: each environment is built by"
        f" pip, and used on a CPU.\n\n{table(ordered)}"
    )


if __name__ == "__main__":
    sys.exit(main())
