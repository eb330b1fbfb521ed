"""Which sentence of a published prompt makes each promise of a task.

    python benchmarks/prompt_sentences.py KERNELBENCHX TRITONBENCH

Both are checkouts (github.com/BonnieW05/KernelBenchX, github.com/thunlp/TritonBench). Writes
`src/kerneltruth/tasks/sentences/SUITE.json`, and prints each promise that no sentence makes; the
exit code is 1 if there is one.

A prompt is its description, its signature with the entries of arguments, its notes and its formula.
An argument is promised by its entry, else by a sentence that names it, else by the signature; a
string value that this does not name, by a sentence that does. Dtypes, gradients, numbers in the
place of tensors and broadcasting are promised by sentences with the words below.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltruth.cases.promised import Promise, promises_of
from kerneltruth.tasks.registry import tasks_of
from kerneltruth.tasks.sentences import FOLDER, subject_of
from kerneltruth.tasks.spec import Task

FILES = {"kernelbenchx": "data/kernelbenchx_v1.json", "tritonbench": "data/TritonBench_T_v1.jsonl"}
PARTS = ("description", "func_inputs", "other")
FORMULA = "math"
LONGEST = 400
INTEGERS = r"integ\w+ (or \w+ )?(input|type|tensor)|integral|integer, float|integer,? and"
WORDS = {
    "float16": r"float16|fp16|torch\.half",
    "bfloat16": r"bfloat16|bf16",
    "float32": r"float32|fp32|\bfloats?\b",
    "float64": r"float64|\bdouble\b",
    "complex64": r"complex|cfloat",
    "complex128": r"complex|cdouble",
    "bool": r"\bbool",
    "int8": rf"int8|{INTEGERS}",
    **dict.fromkeys(("uint8", "int16", "int32", "int64"), INTEGERS),
}
EXACT = {"complex64": "cfloat", "complex128": "cdouble"}
GRADIENTS = r"autograd|differentiab|backprop"
NUMBER = r"number|scalar|float"
# Sentences that speak of all dtypes at once.
ANY_DTYPE = r"in terms of dtype"
BREAK = re.compile(r"(?<=[.;!])\s+(?=[A-Z`'\"(*-])|\n+")
SIGNATURE = re.compile(r"[\w.]+\(([^()]|\([^()]*\))*\)(\s*->\s*[\w.]+)?")
NO_ENTRY = re.compile(r"\s*(str|Tensor|torch|int|bool|float|Optional|Union)\b[^;\n]{0,30}?[,)=]")
AFTER_ENTRIES = re.compile(r"\s(?:Keyword args?|Args|Shape|Returns?|Example)\s*:| - Input:")


def clean(text: str) -> str:
    """The text on one line."""
    return re.sub(r"\s+", " ", text.replace("**", "")).strip(" -*;,")


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A published prompt in sentences.

    Attributes:
        sentences: of the description, the arguments and the notes.
        entries: what is said of each argument beside its name.
        signature: of the function.
        formula: in sentences, which count where nothing else promises.
    """

    sentences: tuple[str, ...]
    entries: dict[str, str]
    signature: str
    formula: tuple[str, ...]

    def saying(self, *patterns: str) -> str | None:
        """The first sentence with all of these."""
        pool = (*self.sentences, *self.entries.values(), *self.formula)
        return next((s for s in pool if all(re.search(p, s, re.I) for p in patterns)), None)

    def of_argument(self, name: str) -> str | None:
        """What promises an argument."""
        word = rf"\b{re.escape(name).replace('_', '[_ ]')}\b"
        signed = self.signature if re.search(rf"{word}\s*[:=,)]", self.signature) else None
        if name == "out":
            return self.entries.get(name) or signed or self.saying(r"\bout \(")
        named = (s for s in self.sentences if re.search(word, s, re.I))
        return self.entries.get(name) or next(named, None) or signed or self.saying(word)


def prompt_of(stored: dict[str, Any], names: Iterable[str]) -> Prompt:
    """The prompt of a task with these arguments."""
    parts = [str(stored.get(part) or "").replace("\\n", "\n") for part in PARTS]
    found = SIGNATURE.search(parts[1])
    signature = clean(found[0]) if found else ""
    said = [clean(s).removeprefix("def ") for part in parts for s in BREAK.split(part)]
    formula = str(stored.get(FORMULA) or "").replace("\\n", "\n")
    return Prompt(
        sentences=tuple(s for s in said if len(s) > 8 and not s.startswith(signature or "\0")),
        entries=entries_of(parts[1], sorted(names, key=len, reverse=True)),
        signature=signature,
        formula=tuple(clean(s) for s in BREAK.split(formula)),
    )


def entries_of(text: str, names: list[str]) -> dict[str, str]:
    """What a text says of each argument, from its name to the next one's."""
    either = "|".join(map(re.escape, names))
    start = re.compile(
        rf"(?:^|(?<=[\s;,.*`(-]))[`*]*({either})[`*]*\s*(?:\([^:]{{0,80}}\)\s*[`*]*)?:(?!:)"
    )
    starts = [m for m in start.finditer(text) if not NO_ENTRY.match(text[m.end() :])]
    found: dict[str, str] = {}
    for here, after in zip(starts, [*starts[1:], None], strict=False):
        entry = clean(text[here.start() : after.start() if after else len(text)])
        entry = clean(AFTER_ENTRIES.split(entry)[0])
        if len(entry) > len(here[0]) + 3:
            found.setdefault(here[1], shortened(entry))
    return found


def shortened(text: str) -> str:
    """The text up to the last sentence that ends within the longest allowed."""
    if len(text) <= LONGEST:
        return text
    whole = text[:LONGEST].rpartition(". ")[0]
    return f"{whole}." if whole else text[:LONGEST]


def sentence(task: Task, promise: Promise, prompt: Prompt) -> str | None:
    """The sentence that makes a promise; None where none does."""
    subject = subject_of(task, promise.kind, promise.name, promise.value)
    kind, _, name = subject.partition(" ")
    match kind:
        case "dtype":
            words = WORDS.get(name, name)
            signed = prompt.signature if re.search(words, prompt.signature, re.I) else None
            exact = prompt.saying(EXACT[name]) if name in EXACT else None
            return exact or prompt.saying(words) or signed or prompt.saying(ANY_DTYPE)
        case "gradients":
            return prompt.saying(GRADIENTS)
        case "number":
            entry = prompt.entries.get(name, "")
            return entry if re.search(NUMBER, entry, re.I) else prompt.saying(NUMBER)
        case "absent":
            lists = [n for n, members in task.lists().items() if name in members]
            return prompt.of_argument((*lists, name)[0])
        case "argument" if name.startswith("_"):
            return of_form(name.removeprefix("_"), prompt)
        case "argument":
            return with_value(prompt.of_argument(name), promise.value, prompt)
        case _:
            return prompt.saying(name or kind)


def with_value(said: str | None, value: object, prompt: Prompt) -> str | None:
    """A sentence, and the one that names the value if it does not."""
    if said is None or not isinstance(value, str) or value.removeprefix("torch.") in said:
        return said
    named = prompt.saying(rf"\b{re.escape(value)}\b")
    return said if named is None else f"{said} … {named}"


def of_form(name: str, prompt: Prompt) -> str | None:
    """What promises another number of dims, or broadcasting."""
    entry = prompt.entries.get(name, "")
    if "broadcast" in entry:
        return entry
    if name in ("rank", "batched", "trailing", "lead"):
        said = prompt.saying(r"\(\*|any number of dim|batch(es)? of|batch dim|zero or more")
        return said if said or name != "lead" else prompt.saying("broadcast")
    word = rf"\b{re.escape(name)}\b"
    said = prompt.saying("broadcast", word) or prompt.saying("broadcast")
    return said or (entry if re.search(r"scalar|number|\(\*", entry) else None)


def sentences_of(task: Task, prompt: Prompt) -> Iterator[tuple[Promise, str, str | None]]:
    """Each promise beyond the published inputs, by subject, with its sentence."""
    usual = {a.name: a.default for a in task.attributes}
    for promise in promises_of(task):
        if promise.kind == "attribute" and repr(promise.value) == repr(usual[promise.name]):
            continue
        if promise.kind == "absent" and promise.name.startswith("_"):
            continue
        if promise.kind == "recipe" or (promise.kind, promise.name) == ("dtype", "float32"):
            continue
        subject = subject_of(task, promise.kind, promise.name, promise.value)
        yield promise, subject, sentence(task, promise, prompt)


def stored_prompts(checkout: Path, suite: str) -> dict[str, dict[str, Any]]:
    """What a checkout says of each task, by the name of its file."""
    text = (checkout / FILES[suite]).read_text("utf-8")
    return {Path(entry["file"]).stem: entry for entry in json.loads(text)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernelbenchx", type=Path)
    parser.add_argument("tritonbench", type=Path)
    options = parser.parse_args()
    missing = 0
    for suite in FILES:
        stored = stored_prompts(getattr(options, suite), suite)
        found: dict[str, dict[str, str]] = {}
        for task in tasks_of(suite).values():
            names = [n for n in (*task.call_order(), "out") if not n.startswith("_")]
            prompt = prompt_of(stored[task.name], names)
            here = found.setdefault(task.name, {})
            for promise, subject, said in sentences_of(task, prompt):
                if said is not None:
                    here[subject] = max(here.get(subject, ""), said, key=len)
                elif not subject.startswith("argument _"):
                    missing += 1
                    print(f"{task.key}: no sentence promises {promise}")
        (FOLDER / f"{suite}.json").write_text(
            json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
        )
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
