"""The English of the project, as far as a rule can tell.

    python benchmarks/words.py

Fails, and says where, if a sentence that is no question begins with "Who", "Whose" or "Of", if one
has a phrase that `PHRASES` names, if code calls a thing by a participle (`NAMES`), or if tests call
a helper, a fixture or a class so (`VAGUE`). Sentences are those of docstrings, comments, messages
and documents. `make lint` runs it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "benchmarks", "tests", "docs", "examples")
# What scripts write from the above, and the words of others: prompts, answers of models.
OTHERS = re.compile(r"benchmarks/(results|findings)/|tasks/sentences/|reference/schema/")
FRONTED = re.compile(r"^\W*(Who|Whose|Of(?! course)) [^?]*[^?\s]\s*$")
# To be told apart is the verb of statistics.
PHRASES = re.compile(r"\b((is|are|be) told(?! [\w ]*\b(apart|from)\b)|so many|has teeth)\b")
NAMES = {"asked": "request", "told": "message", "due": "expected"}
# As names of what a whole module of tests uses, these say nothing. Values within one test may have
# them, and other participles may name a helper: `normalized` says what becomes of a tensor.
VAGUE = re.compile(
    r"_?(audited|begun|called|crossed|done|drawn|ended|found|given|gone|got|held|judged|kept|known"
    r"|left|made|said|seen|sent|shown|taken|tried|written)",
    re.IGNORECASE,
)
# Kernels of the corpus are named by the hash of their text, and stay.
NAMED = re.compile(r"(src|benchmarks|tests)/(?!kerneltruth/corpus/).*\.py$")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the number of line breaks before it."""
    at = 0
    for part in re.split(r"(?<=[.:!?])\s+(?=[\W_]*[A-Z])|\n\s*(?:\n|[-*|#>] ?|\d+\. )", text):
        start = text.index(part, at)
        yield text.count("\n", 0, start), " ".join(part.split())
        at = start + len(part)


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """What a file says in English, with the lines where it begins."""
    if path.suffix == ".md":
        yield 1, re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    elif path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
    else:
        yield from _strings(ast.parse(text))
        yield from _comments(text)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    parts = {
        id(p) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for p in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said = (v.value if isinstance(v, ast.Constant) else "0" for v in node.values)
            yield node.lineno, "".join(map(str, said))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, str(node.value)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments, of which those on lines that follow each other are one."""
    begun, last, said = 0, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            words = token.string.lstrip("#: ")
            if token.start[0] == last + 1:
                said += f"\n{words}"
            else:
                yield begun, said
                begun, said = token.start[0], words
            last = token.start[0]
    yield begun, said


def names(text: str) -> Iterator[tuple[int, str]]:
    """Each name of the code that `NAMES` has, with the line that gives it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        if name.strip("_").lower() in NAMES:
            yield node.lineno, name


def helpers(text: str) -> Iterator[tuple[int, str]]:
    """Each helper, fixture or class of a module of tests that `VAGUE` names, with its line."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and VAGUE.fullmatch(node.name):
            yield node.lineno, node.name


def faults_in(path: Path, text: str) -> Iterator[str]:
    """What is wrong in a file, one line each."""
    for line, unit in prose(path, text):
        for below, sentence in sentences(unit):
            where = f"{path}:{line + below}"
            if found := FRONTED.search(sentence):
                yield f'{where}: begins with "{found[1]}"; begin with the subject: {sentence[:60]}'
            if found := PHRASES.search(sentence):
                yield f'{where}: "{found[1]}": say who does it, or how many: {sentence[:60]}'
    if NAMED.match(path.as_posix()):
        for line, name in names(text):
            better = NAMES[name.strip("_").lower()]
            yield f"{path}:{line}: `{name}` names no thing; such as `{better}` does"
    if path.parts[0] == "tests" and path.suffix == ".py":
        for line, name in helpers(text):
            yield f"{path}:{line}: `{name}`: say what it does or returns, such as `judge`"


def files() -> Iterator[Path]:
    """The files that hold prose of this project."""
    own = Path(__file__).name, f"test_{Path(__file__).name}"
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.*")):
            others = path.name in own or OTHERS.search(path.as_posix())
            if path.suffix in {".py", ".md", ".html", ".js"} and not others:
                yield path
    yield from sorted(ROOT.glob("*.md"))


def main() -> int:
    found = [
        fault
        for path in files()
        for fault in faults_in(path.relative_to(ROOT), path.read_text(errors="replace"))
    ]
    print("\n".join(found) or "no sentence with its object first, no participle for a name")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
