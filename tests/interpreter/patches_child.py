"""Says what of Triton is replaced, in the interpreter and in the language: a JSON document."""

import inspect
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import triton.language as tl
import triton.runtime.interpreter as it

from kerneltruth.runner.interpreter import install, installation, language, plans
from kerneltruth.runner.interpreter.versions import adapter

before = {"misfits": list(installation.misfits()), "unknown": installation.unknown()}
names = set(vars(it.InterpreterBuilder))
# What reads of planned operations were made, by name.
planned = []
original = plans.planned
plans.planned = lambda slow, ambient=None: planned.append(slow) or original(slow, ambient)
with_semantic = language._with_semantic
members = {}


def noted(member):
    made = with_semantic(member)
    members[made] = member.__name__
    return made


language._with_semantic = noted
install()

builder = vars(it.InterpreterBuilder)
methods = installation.methods()
scope = language._scope()
with language.interpreting():
    inside = [
        name
        for owner, name, value in scope.replacements
        if inspect.getattr_static(owner, name) is not value
    ]
kept = installation._KEPT | adapter().kept
found = {
    **before,
    "not replaced": [n for n, m in methods.items() if builder.get(n) is not m]
    + [
        path
        for path, function in installation._REPLACED.items()
        if getattr(getattr(it, path.split(".")[0]), path.split(".")[1]) is not function
    ],
    "kept and not there": sorted(kept - names),
    "kept and replaced": sorted(kept & set(methods)),
    "not replaced while interpreting": inside,
    "replaced while interpreting": sorted({name for _, name, _ in scope.replacements}),
    "planned and not there": sorted(language._PLANNED - {members[slow] for slow in planned}),
    "by identity and not there": [n for n in language._BY_IDENTITY if not hasattr(tl, n)],
    "not lent": sorted(
        f"{prefix}.{name}"
        for prefix, owner in {"tl": tl, "math": tl.math, "tensor": tl.tensor}.items()
        for name, member in inspect.getmembers(owner, tl.core.is_builtin)
        if name not in language._BY_IDENTITY and not hasattr(member, "__wrapped__")
    ),
}
json.dump(found, sys.stdout)
