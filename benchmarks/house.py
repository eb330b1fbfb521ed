"""The shape of the code: sizes, circles, untyped documents, and the path of one `check`.

    python benchmarks/house.py [--results FOLDER] [--name house]
    python benchmarks/house.py --beside benchmarks/results/house-before.json

The path is that of the process of the command, which judges a right relu on the CPU: files are
those of the package in which a function is called, and a climb is a call, from one file into
another, that lies on a circle of such calls. Seconds of the tests are not measured.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
from structure import DECLARATIONS, SOURCE, circles, classes, imports, modules, short

ROOT = machine.HERE.parent
IMPORTS = 5
RELU = "import torch\n\n\ndef relu(input, inplace=False):\n    return torch.relu(input)\n"
# Run in a process of its own: prints the files that were entered, and the calls between them.
TRACE = """
import json, sys
from pathlib import Path
root, kernel, out = map(Path, sys.argv[1:4])
files, calls = set(), []
def seen(frame, event, _):
    if event == "call" and frame.f_back is not None:
        here, there = frame.f_code.co_filename, frame.f_back.f_code.co_filename
        if here.startswith(str(root)) and "<" not in frame.f_code.co_name:
            files.add(here)
            if there.startswith(str(root)) and there != here:
                calls.append((there, here))
from kerneltruth.cli import main
sys.argv = ["kerneltruth", "check", str(kernel), "--device", "cpu", "--seed", "0"]
sys.setprofile(seen)
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    out.write_text(json.dumps({"files": sorted(files), "calls": calls}))
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
    graph: dict[str, set[str]] = {}
    for caller, called in seen["calls"]:
        graph.setdefault(short(caller), set()).add(short(called))
    group = {file: n for n, files in enumerate(circles(graph)) for file in files}
    climbs = sorted(
        (caller, called)
        for caller, others in graph.items()
        for called in others
        if caller in group and group[caller] == group.get(called)
    )
    return {"files": len(seen["files"]), "climbs": len(climbs), "climbing": climbs}


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
    seconds = []
    for _ in range(IMPORTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import kerneltruth"], check=True)
        seconds.append(time.perf_counter() - began)
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
        "calls of a check within circles of files": trace["climbs"],
        "import circles of modules": len(circles(graph)),
        "untyped dictionaries (`dict[str, Any]`)": sum(
            path.read_text().count("dict[str, Any]") for path in own
        ),
        "class names that stand more than once": len(twice),
        "seconds of `import kerneltruth`": f"{sorted(seconds)[IMPORTS // 2]:.2f}",
        "details": {
            "circles": circles(graph),
            "climbing": trace["climbing"],
            "classes": twice,
        },
    }


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="earlier measurements")
    parser.add_argument("--name", default="house", help="of the report")
    options = parser.parse_args()
    found = measured()
    before = [json.loads(path.read_text())["found"] for path in options.beside]
    rows = [
        (name, *(b.get(name) for b in before), value)
        for name, value in found.items()
        if name != "details"
    ]
    machine.publish(
        options.name,
        "The shape of the code",
        machine.facts("cpu"),
        machine.table(("", *(path.stem for path in options.beside), "now"), rows),
        folder=options.results,
        data={"found": found},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
