"""The shape of the code: sizes, circles, untyped documents, and the path of one `check`.

    python benchmarks/house.py [--results FOLDER] [--name house] [--time-tests]
    python benchmarks/house.py --at 416846b --beside benchmarks/results/house_before-cpu.json

The path is that of the process of the command, which judges a right relu on the CPU: files are
those of the package in which a function is called, and a climb is a call, from one file into
another, that lies on a circle of such calls. A call is a callback if its expression does not name
the function: one that was passed or stored, or an operator. `--at` adds a column for each commit,
by `git archive`; `--time-tests` runs the command of `make test-fast`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import machine
from structure import (
    DECLARATIONS,
    OWN,
    SOURCE,
    ambiguous,
    circles,
    classes,
    imports,
    modules,
    short,
    types,
)

ROOT = machine.HERE.parent
# Where a table of steps leads, and which page has it.
PATHS = {"a verdict": "ARCHITECTURE.md", "a speedup": "CONTRIBUTING.md"}
IMPORTS = 5
# `dict[str, Any]`, which it counts too, has a row of its own.
UNTYPED = re.compile(r"(?:dict|Mapping)\[str, (?:Any|object)\]")
_Definition = ast.FunctionDef | ast.ClassDef
RELU = "import torch\n\n\ndef relu(input, inplace=False):\n    return torch.relu(input)\n"
# Run in a process of its own: prints the files that were entered, and the calls between them.
TRACE = """
import json, sys
from pathlib import Path
root, kernel, out = map(Path, sys.argv[1:4])
import ast, itertools, linecache
files, calls = set(), {}
def expression(code, at):
    line, end, first, last = next(itertools.islice(code.co_positions(), at // 2, None))
    if None in (line, end, first, last):
        return ""
    text = [linecache.getline(code.co_filename, n).encode() for n in range(line, end + 1)]
    text[-1] = text[-1][:last]
    text[0] = text[0][first:]
    try:
        tree = ast.parse(b"".join(text).strip(), mode="eval").body
    except SyntaxError:
        return b"".join(text).decode()
    return ast.unparse(tree.func if isinstance(tree, ast.Call) else tree)
def seen(frame, event, _):
    if event == "call" and frame.f_back is not None:
        code, back = frame.f_code, frame.f_back
        here, there = code.co_filename, back.f_code.co_filename
        if here.startswith(str(root)) and "<" not in code.co_name:
            files.add(here)
            if there.startswith(str(root)) and there != here:
                calls.setdefault((there, here), {}).setdefault((back.f_code, back.f_lasti, code))
def by_name(sites):
    return any(
        name in expression(caller, at)
        for caller, at, code in sites
        for parts in [code.co_qualname.split(".")]
        for name in (parts[-2:-1] if parts[-1].startswith("__") else parts[-1:])
    )
from kerneltruth.cli import main
sys.argv = ["kerneltruth", "check", str(kernel), "--device", "cpu", "--seed", "0"]
sys.setprofile(seen)
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    found = [(*pair, by_name(sites)) for pair, sites in calls.items()]
    out.write_text(json.dumps({"files": sorted(files), "calls": found}))
"""


def path_of_a_check() -> dict[str, Any]:
    """How many files one `check` enters in its own process, and how often it climbs."""
    with tempfile.TemporaryDirectory() as folder:
        kernel, out = Path(folder) / "relu.py", Path(folder) / "trace.json"
        kernel.write_text(RELU)
        command = [sys.executable, "-c", TRACE, str(SOURCE), str(kernel), str(out)]
        # The code of this checkout runs, whatever is installed.
        code = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=code)
        seen = json.loads(out.read_text())
    every = [(short(caller), short(called), named) for caller, called, named in seen["calls"]]
    climbs = _climbs((a, b) for a, b, _ in every)
    callbacks = {(a, b) for a, b, named in every if not named}
    return {
        "files": len(seen["files"]),
        "climbs": climbs,
        "callbacks": sorted(callbacks & set(climbs)),
        "named": _climbs((a, b) for a, b, named in every if named),
    }


def _climbs(calls: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The calls between files that lie on a circle of these calls."""
    graph: dict[str, set[str]] = {}
    for caller, called in calls:
        graph.setdefault(caller, set()).add(called)
    group = {file: n for n, files in enumerate(circles(graph)) for file in files}
    return sorted(
        (caller, called)
        for caller, others in graph.items()
        for called in others
        if caller in group and group[caller] == group.get(called)
    )


def walk(page: str) -> list[tuple[bool, str, int]]:
    """The functions of a page's table of steps: whether in its short way, the file, and the lines.

    Lines are all from `def` to the end, with the docstring.
    """
    found = []
    text = (ROOT / page).read_text()
    for step, folder, begins in re.findall(r"^\| (.+) \| `([\w/]+)/` \| (.+) \|$", text, re.M):
        for number, path in enumerate(re.findall(r"`([^`]+)`", begins)):
            module, *names = path.split(".")
            node: ast.AST = ast.parse((OWN / folder / f"{module}.py").read_text())
            for name in names:
                node = next(n for n in _definitions(node) if n.name == name)
            assert isinstance(node, _Definition)
            lines = (node.end_lineno or 0) - node.lineno + 1
            found.append((step.startswith("**") and not number, f"{folder}/{module}", lines))
    folders = [file.rpartition("/")[0] for short_way, file, _ in found if short_way]
    assert len(folders) == len(set(folders)), f"{page}: the short way has a folder twice"
    return found


def walked() -> dict[str, int]:
    """What a reader of each path goes through, and of its short way."""
    counts = {}
    for path, page in PATHS.items():
        steps = walk(page)
        for way, chosen in (("the walk", steps), ("the short way", [s for s in steps if s[0]])):
            counts[f"functions of {way} to {path}"] = len(chosen)
            counts[f"files of {way} to {path}"] = len({file for _, file, _ in chosen})
            counts[f"lines of {way} to {path}"] = sum(lines for *_, lines in chosen)
    return counts


def _definitions(node: ast.AST) -> Iterator[_Definition]:
    return (n for n in ast.iter_child_nodes(node) if isinstance(n, _Definition))


def seconds_of_an_import() -> float:
    """The median of a few processes that import the package and end."""
    seconds = []
    code = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    for _ in range(IMPORTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import kerneltruth"], check=True, env=code)
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[IMPORTS // 2]


def seconds_of_the_fast_tests() -> float:
    """The command of `make test-fast`, as the Makefile has it, with this Python."""
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "test-fast"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (line,) = (part for part in shown.splitlines() if " -m pytest " in part)
    began = time.perf_counter()
    arguments = shlex.split(line.partition(" -m pytest ")[2])
    subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, check=True)
    return time.perf_counter() - began


def measured_at(commit: str) -> dict[str, Any]:
    """The same of the package as a commit has it."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x"], cwd=folder, check=True, input=packed.stdout)
        again = "import json, house; print(json.dumps(house.measured()))"
        source = {"HOUSE_SOURCE": f"{folder}/src/kerneltruth", "PYTHONPATH": str(machine.HERE)}
        ran = subprocess.run(
            [sys.executable, "-c", again],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, **source},
        )
        found: dict[str, Any] = json.loads(ran.stdout)
        return found


def measured() -> dict[str, Any]:
    known = modules()
    trees = {path: ast.parse(path.read_text()) for path in known.values()}
    lines = {path: len(path.read_text().splitlines()) for path in known.values()}
    own = {p: n for p, n in lines.items() if not DECLARATIONS.search(short(str(p)))}
    functions = [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{short(str(path))}:{node.name}")
        for path, tree in trees.items()
        if path in own
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    twice = sorted(name for name, files in classes(own).items() if len(files) > 1)
    graph = imports(known)
    longest = max(own, key=lambda path: own[path])
    trace = path_of_a_check()
    return {
        "lines of src, all": sum(lines.values()),
        "lines without declarations of kernels and tasks": sum(own.values()),
        "files, all": len(lines),
        "files without declarations": len(own),
        "files over 400 lines": sum(n > 400 for n in own.values()),
        "longest file": f"{own[longest]} ({short(str(longest))})",
        "longest function": "{} ({})".format(*max(functions)),
        "files that a check enters": trace["files"],
        "calls of a check within circles of files": len(trace["climbs"]),
        "callbacks among them": len(trace["callbacks"]),
        "calls within circles once callbacks are left out": len(trace["named"]),
        "import circles of modules": len(circles(graph)),
        "untyped dictionaries (`dict[str, Any]`)": sum(
            path.read_text().count("dict[str, Any]") for path in own
        ),
        "untyped mappings of any form (of `str` to `Any` or `object`)": sum(
            len(UNTYPED.findall(path.read_text())) for path in own
        ),
        "class names that stand more than once": len(twice),
        "names of several types, aliases included": len(ambiguous(types(own))),
        "seconds of `import kerneltruth`": f"{seconds_of_an_import():.2f}",
        "details": {
            "circles": circles(graph),
            "climbing": trace["climbs"],
            "callbacks": trace["callbacks"],
            "named": trace["named"],
            "classes": twice,
        },
    }


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="earlier measurements")
    parser.add_argument("--name", default="house", help="of the report")
    parser.add_argument("--at", nargs="*", default=[], metavar="COMMIT", help="measured as well")
    parser.add_argument("--time-tests", action="store_true", help="the command of `make test-fast`")
    options = parser.parse_args()
    found = measured()
    found |= walked()
    if options.time_tests:
        found["seconds of `make test-fast`"] = f"{seconds_of_the_fast_tests():.0f}"
    before = [measured_at(commit) for commit in options.at]
    before += [json.loads(path.read_text())["found"] for path in options.beside]
    rows = [
        (name, *(b.get(name) for b in before), value)
        for name, value in found.items()
        if name != "details"
    ]
    machine.publish(
        options.name,
        "The shape of the code",
        machine.facts("cpu"),
        machine.table(("", *options.at, *(path.stem for path in options.beside), "now"), rows),
        folder=options.results,
        data={"found": found},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
