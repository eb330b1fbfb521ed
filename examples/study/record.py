"""Writes the recorded replies of the study: `python examples/study/record.py [--check]`.

No model said any of this. The kernels and their faults are written by hand after what models do, so
that the whole study runs offline and anyone can see what each answer is.
"""

import argparse
import json
import sys
from pathlib import Path

from faults import FAULTS
from plan import PLAN

FOLDER = Path(__file__).parent
METHODS = ("one_shot", "best_of_n", "refine")
MODEL = "hand-written"

_OPENINGS = (
    "Here is a Triton implementation:",
    "The operator is memory bound, so one pass over the data is enough.",
    "I use one program per block of elements and a mask for the tail.",
    "Below is the complete file.",
)
_REVISED = (
    "You are right. I have corrected it:",
    "Thanks for the counterexample; this version handles it.",
    "The cause was in the kernel; here is the whole file again.",
)
_PROSE = (
    "To implement this in Triton, first compute a flat index for every element of the output, "
    "then recover the position along each dim by division and remainder, and load from the input "
    "with its own strides. The block size should be a power of two, and the tail needs a mask. "
    "Would you like me to write the code?"
)
_REFUSAL = "I am not able to make this kernel any better than it is."


def faulty(task: str, variant: str) -> str:
    """The source of a kernel with the faults of a variant."""
    source = (FOLDER / "kernels" / f"{task}.py").read_text(encoding="utf-8")
    for name in () if variant == "right" else variant.split("+"):
        for old, new in FAULTS[task][name]:
            if old not in source:
                raise SystemExit(f"{task}: {name}: not in the kernel: {old!r}")
            source = source.replace(old, new)
    return source


def entry_of(source: str) -> str:
    """The wrapper that a kernel's file defines, its last function."""
    return source.rpartition("\ndef ")[2].partition("(")[0]


def reply(task: str, variant: str, turn: int, number: int) -> dict[str, object]:
    """What was answered: the text, and why it ended."""
    if variant == "prose":
        return {"text": _PROSE, "finish": "stop"}
    if variant == "refusal":
        return {"text": _REFUSAL, "finish": "stop"}
    opening = _REVISED[number % len(_REVISED)] if turn else _OPENINGS[number % len(_OPENINGS)]
    if variant == "cut_off":
        source = faulty(task, "right")
        return {
            "text": f"{opening}\n\n```python\n{source[: len(source) * 2 // 3]}",
            "finish": "length",
        }
    if variant == "other_name":
        source = faulty(task, "right")
        entry = entry_of(source)
        source = source.replace(f"\ndef {entry}(", f"\ndef triton_{entry}(")
    elif variant == "kernel_only":
        source = faulty(task, "right").rpartition("\n\n\ndef ")[0] + "\n"
    else:
        source = faulty(task, variant)
    return {"text": f"{opening}\n\n```python\n{source}```\n", "finish": "stop"}


def lines_of(method: str) -> str:
    """The recording of a method, as JSON lines."""
    lines = []
    for number, (task, (one, several, rounds)) in enumerate(PLAN.items()):
        match method:
            case "one_shot":
                places = [(0, 0, one)]
            case "best_of_n":
                places = [(sample, 0, variant) for sample, variant in enumerate(several)]
            case _:
                places = [(0, turn, variant) for turn, variant in enumerate(rounds)]
        for sample, turn, variant in places:
            place = {"task": task, "sample": sample, "round": turn}
            said = reply(task, variant, turn, number + sample + turn)
            lines.append(json.dumps({**place, "model": MODEL, **said}) + "\n")
    return "".join(lines)


def main() -> int:
    """Write the recordings, or say which of them is not what this script writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    check = parser.parse_args().check
    stale = 0
    for method in METHODS:
        path = FOLDER / "replies" / f"{method}.jsonl"
        text = lines_of(method)
        if check:
            same = path.is_file() and path.read_text(encoding="utf-8") == text
            stale += not same
            print(f"{path.name}: {'as written' if same else 'stale: run record.py'}")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {text.count(chr(10))} replies")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
