"""Put the audit's printed output into docs/results/audit.md, between its two marks.

    python benchmarks/refresh_audit.py [FILE] [--run] [--check]

Without FILE it takes benchmarks/results/audit-cpu.txt, or else the newest audit-*.txt there. With
--run it runs the audit first and writes that file, the command as its first line. With --check it
changes nothing, and its exit code is 1 if the page shows another output.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import machine

from kerneltruth.engine.devices import choose_device

PAGE = machine.HERE.parent / "docs" / "results" / "audit.md"
BEGIN, END = "<!-- audit:begin -->", "<!-- audit:end -->"
COUNTS = "controls clean"


def main() -> int:
    options = _options()
    source = _run(options.device) if options.run else options.file or _newest()
    if source is None:
        print("no audit-*.txt in benchmarks/results; use --run", file=sys.stderr)
        return 1
    old = PAGE.read_text(encoding="utf-8")
    new = replaced(old, block(source.read_text(encoding="utf-8")))
    if options.check:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    print(f"{PAGE.name}: {'unchanged' if old == new else 'now shows ' + source.name}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="what `kerneltruth audit` printed")
    parser.add_argument("--run", action="store_true", help="run the audit first")
    parser.add_argument("--device", default="auto", help="for --run: auto, cpu or cuda[:N]")
    parser.add_argument("--check", action="store_true", help="only compare")
    return parser.parse_args()


def _newest() -> Path | None:
    usual = machine.RESULTS / "audit-cpu.txt"
    if usual.exists():
        return usual
    found = sorted(machine.RESULTS.glob("audit-*.txt"), key=lambda p: p.stat().st_mtime)
    return found[-1] if found else None


def _run(device: str) -> Path:
    """Run the audit and keep what it prints."""
    here = choose_device(device)
    command = [sys.executable, "-m", "kerneltruth", "audit", "--device", here]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if COUNTS not in ran.stdout:
        raise SystemExit(f"the audit printed no result (exit code {ran.returncode})")
    machine.RESULTS.mkdir(exist_ok=True)
    path = machine.RESULTS / f"audit-{machine.slug(machine.facts(here))}.txt"
    path.write_text(f"$ kerneltruth audit\n{ran.stdout}", encoding="utf-8")
    return path


def block(printed: str) -> str:
    """The page's form of the audit's output: the counts, then the table, folded."""
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    command = lines.pop(0) if lines[0].startswith("$ ") else "$ kerneltruth audit"
    start = next(i for i, line in enumerate(lines) if line.startswith(COUNTS))
    table, counts = lines[:start], lines[start:]
    while table and not table[-1]:
        table.pop()
    while table and not table[0]:
        table.pop(0)
    return "\n".join(
        [
            *("```", command, "...", *counts, "```", ""),
            *("<details><summary>The table, kernel by kernel</summary>", ""),
            *("```", *table, "```", "", "</details>"),
        ]
    )


def replaced(text: str, inside: str) -> str:
    """The text with another block between the marks."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{inside}\n{END}{tail}"


if __name__ == "__main__":
    sys.exit(main())
