"""Check that every relative link of the documents leads to a file, and its anchor to a heading.

    python benchmarks/check_links.py

It reads text only, so that `make lint` needs no site generator. A page under docs/ may link to
pages under docs/ alone, since the site holds nothing else. The exit code is 1 if a link is broken.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def main() -> int:
    broken = [f"{path.relative_to(ROOT)}: {why}" for path in documents() for why in faults(path)]
    print("\n".join(broken) or "every link of the documents leads somewhere")
    return int(bool(broken))


def documents() -> list[Path]:
    """Every Markdown file that is kept by hand or linked by one."""
    folders = (ROOT / "docs", ROOT / "examples")
    return sorted(
        [
            *ROOT.glob("*.md"),
            ROOT / "benchmarks" / "README.md",
            *(path for folder in folders for path in folder.rglob("*.md")),
        ]
    )


def faults(path: Path, docs: Path = DOCS) -> Iterator[str]:
    """What is wrong with each broken link of a document; `docs` is the site's folder."""
    for target in LINK.findall(prose(path)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = path.parent.joinpath(name).resolve() if name else path
        if not file.exists():
            yield f"{target} does not exist"
        elif path.is_relative_to(docs) and not file.is_relative_to(docs):
            yield f"{target} is not part of the site; name the file in backticks"
        elif anchor and anchor not in anchors(file):
            yield f"{target} names no heading"


def prose(path: Path) -> str:
    """A document's text without its blocks of code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as Python-Markdown and GitHub both make them."""
    return {re.sub(r"\s+", "-", plain(title)) for title in HEADING.findall(prose(path))}


def plain(title: str) -> str:
    return re.sub(r"[^\w\s-]", "", title).strip().lower()


if __name__ == "__main__":
    sys.exit(main())
