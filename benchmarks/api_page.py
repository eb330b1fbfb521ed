"""Write docs/reference/api.md from the docstrings of what `import kerneltruth` offers.

    python benchmarks/api_page.py [--check]

With `--check` nothing is written, and the exit code is 1 if the page is not current.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kerneltruth as kt

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Examples")
HEAD = """# The library

What `import kerneltruth as kt` offers; [the guide](../guides/library.md) begins with a kernel. This
page is written by `benchmarks/api_page.py` from the docstrings. In the examples `judge` is a
`kt.Judge` on the CPU, and the kernels are

```python
relu = "def relu(x): return x.clamp(min=0)"
clipped = "def relu(x): return x.clamp(min=0.5)"
```

Messages of `UserError` and `EnvironmentFault` are one line: what is wrong with which value, the
rule, and the next step.
"""
# An annotation, which is kept as text.
_QUOTED = re.compile(r"(: )'([^']*)'")
# First what a reader needs first.
ORDER = (
    "check",
    "assert_correct",
    "Judge",
    "CheckOptions",
    "NamedCandidate",
    "Report",
    "FoundFailure",
    "task",
    "Dim",
    "Output",
    "Variants",
    "Promises",
    "Benchmark",
    "Suite",
    "Opening",
    "TaskSource",
    "Terms",
)


def page() -> str:
    """The page's text."""
    names = [*ORDER, *(name for name in kt.__all__ if name not in ORDER)]
    return "\n".join([HEAD, *(line for name in names for line in _entry(name))]).rstrip() + "\n"


def _entry(name: str) -> Iterator[str]:
    thing = getattr(kt, name)
    yield f"## `{name}`\n"
    if inspect.isfunction(thing):
        yield from _signature(f"kt.{name}", thing)
    elif "__init__" in vars(thing) and not issubclass(thing, Exception):
        yield from _signature(f"kt.{name}", thing.__init__)
    yield from _document(thing)
    if not inspect.isclass(thing):
        return
    if name == "Judge":
        yield from _document(thing.__init__, skip_first=True)
    yield from _properties(thing)
    for inner, member in vars(thing).items():
        if not inner.startswith("_") and inspect.isfunction(member):
            yield f"### `{name}.{inner}`\n"
            yield from _signature(inner, member)
            yield from _document(member)


def _signature(name: str, function: Any) -> Iterator[str]:
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    shown = [_QUOTED.sub(r"\1\2", str(p)) for p in kept]
    first = next((n for n, p in enumerate(kept) if p.kind == p.KEYWORD_ONLY), None)
    if first is not None:
        shown.insert(first, "*")
    returned = signature.return_annotation
    after = "" if returned in (signature.empty, "None") else f" -> {returned}"
    word = "async " if inspect.iscoroutinefunction(function) else ""
    text = f"{word}{name}({', '.join(shown)}){after}"
    if len(text) > 96:
        inner = ",\n    ".join(shown)
        text = f"{word}{name}(\n    {inner},\n){after}"
    yield f"```\n{text}\n```\n"


def _properties(kind: type) -> Iterator[str]:
    found = {n: m for n, m in vars(kind).items() if isinstance(m, property)}
    if found:
        yield "| property | |"
        yield "|---|---|"
        for name, member in found.items():
            yield f"| `{name}` | {_in_a_line(inspect.getdoc(member) or '')} |"
        yield ""


def _document(thing: Any, *, skip_first: bool = False) -> Iterator[str]:
    text = inspect.getdoc(thing) or ""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", text, flags=re.MULTILINE)
    if not skip_first:
        yield parts[0].strip() + "\n"
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        inner = textwrap.dedent(body).strip()
        if title == "Examples":
            yield f"```pycon\n{inner}\n```\n"
        else:
            yield from _listed(title, inner)


def _listed(title: str, body: str) -> Iterator[str]:
    """A section's entries as a table."""
    yield f"| {title.lower()} | |"
    yield "|---|---|"
    for entry in re.split(r"\n(?=\S)", body):
        name, _, said = entry.partition(":")
        yield f"| `{name.strip()}` | {_in_a_line(said)} |"
    yield ""


def _in_a_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or compare it with what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    made = page()
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
