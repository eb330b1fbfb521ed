"""Says what of Triton is replaced, in the interpreter and in the language: a JSON document."""

import inspect
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import triton.language as tl
import triton.runtime.interpreter as it

from kerneltruth.runner.interpreter import install, installation, language
from kerneltruth.runner.interpreter.versions import adapter

before = {"misfits": list(installation.misfits()), "unknown": installation.unknown()}
names = set(vars(it.InterpreterBuilder))
owners = {"tl": tl, "core": tl.core, "math": tl.math, "tensor": tl.tensor}
planned = {
    member.__name__
    for owner in owners.values()
    for _, member in inspect.getmembers(owner, tl.core.is_builtin)
    if language.is_planned(member)
}
install()

builder = vars(it.InterpreterBuilder)
methods = installation.methods()
replacements = language.replacements()
with language.interpreting():
    inside = [
        name
        for owner, name, value in replacements
        if inspect.getattr_static(owner, name) is not value
    ]
kept = installation.KEPT | adapter().kept
found = {
    **before,
    "not replaced": [n for n, m in methods.items() if builder.get(n) is not m]
    + [
        path
        for path, function in installation.REPLACED.items()
        if getattr(getattr(it, path.split(".")[0]), path.split(".")[1]) is not function
    ],
    "kept and not there": sorted(kept - names),
    "kept and replaced": sorted(kept & set(methods)),
    "not replaced while interpreting": inside,
    "replaced while interpreting": sorted({name for _, name, _ in replacements}),
    "planned and not there": sorted(language.PLANNED - planned),
    "by identity and not there": [n for n in language.BY_IDENTITY if not hasattr(tl, n)],
    "not lent": sorted(
        f"{prefix}.{name}"
        for prefix, owner in owners.items()
        for name, member in inspect.getmembers(owner, tl.core.is_builtin)
        if name not in language.BY_IDENTITY and not hasattr(member, "__wrapped__")
    ),
}
json.dump(found, sys.stdout)
