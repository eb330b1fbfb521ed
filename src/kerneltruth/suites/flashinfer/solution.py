"""Turn solutions into submissions: one module each, with a function that returns the outputs.

A solution that writes its outputs into memory passed to it gets a few extra lines: they allocate
that memory in the child, poisoned and guarded like any other, and return it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kerneltruth.documents.lines import Labels, PublishedVerdict
from kerneltruth.suites.flashinfer.definition import FOLDER as DEFINITIONS
from kerneltruth.suites.flashinfer.definition import Definition, Tensor
from kerneltruth.suites.flashinfer.documents import Malformed, field, optional
from kerneltruth.suites.flashinfer.joining import join
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

FOLDER = "solutions"
_PYTHON = ("python", "triton")
_NATIVE = ("cuda", "cpp")
_KEYS = {"definition", "spec", "sources"}


def is_solution(data: Mapping[str, object]) -> bool:
    """Return whether a JSON object is meant to be a solution."""
    return len(_KEYS & data.keys()) >= 2


def read_solution(
    data: Mapping[str, object],
    origin: str,
    definitions: Mapping[str, Definition],
    peers: Mapping[tuple[str, str], PublishedVerdict],
) -> Read:
    """Return the submission in a solution's object."""
    try:
        name = field(data, "definition", str)
        own = field(data, "name", str)
        source = source_of(data, definitions.get(name), name)
        author = optional(data, "author", str, "")
    except Malformed as error:
        return Broken(origin=origin, reason=str(error))
    return Submission(
        origin=origin,
        name=name,
        source=source,
        labels=Labels(model=author or None),
        peer=peers.get((name, own)),
    )


def source_of(data: Mapping[str, object], definition: Definition | None, name: str) -> str:
    """Return a solution's one module.

    Raises:
        Malformed: it does not follow the schema, or cannot be joined to one module.
    """
    spec = field(data, "spec", dict)
    language = field(spec, "language", str)
    path, function = _entry(field(spec, "entry_point", str))
    sources = _sources(field(data, "sources", list))
    if path is None:
        path = _only(sources)
    if path not in sources:
        raise Malformed(f"the entry point's file {path!r} is not among the sources")
    writes = optional(spec, "destination_passing_style", bool, True)
    if language in _PYTHON and path.endswith(".py"):
        module = join(sources, path)
    elif language in _NATIVE:
        module = _built(sources, function, optional(spec, "binding", str, "tvm-ffi"))
    else:
        known = ", ".join((*_PYTHON, *_NATIVE))
        raise Malformed(f"the language {language!r} with {path!r}; must be one of {known}")
    if len(module) > MAX_SOURCE_BYTES:
        raise Malformed(f"{len(module)} characters; at most {MAX_SOURCE_BYTES} are read")
    if definition is None:
        if writes:
            raise Malformed(f"unknown definition {name!r}; it defines the outputs to allocate")
        return module
    ending = _writing(definition, function) if writes else f"{definition.entry} = {function}\n"
    return f"{module.rstrip()}\n\n\n{ending}"


def _entry(text: str) -> tuple[str | None, str]:
    """Return the file, if one is named, and the function of an entry point."""
    path, parted, function = text.rpartition("::")
    if not function.isidentifier():
        raise Malformed(f"`entry_point` {text!r} must be `file::function`")
    return (str(PurePosixPath(path)) if parted else None), function


def _only(sources: Mapping[str, str]) -> str:
    if len(sources) > 1:
        raise Malformed("`entry_point` must name one of the files: `file::function`")
    return next(iter(sources))


def _sources(items: Sequence[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        if not isinstance(item, dict):
            raise Malformed("`sources` must hold objects")
        path = PurePosixPath(field(item, "path", str))
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise Malformed(f"the source path {item['path']!r} leads out of the solution")
        if str(path) in found:
            raise Malformed(f"the source {item['path']!r} is given twice")
        found[str(path)] = field(item, "content", str)
    if not found:
        raise Malformed("`sources` is empty")
    return found


def _writing(definition: Definition, function: str) -> str:
    """Return a function that allocates the outputs, has them written, and returns them."""
    names = [t.name for t in definition.inputs]
    device = next((t.name for t in definition.inputs if t.shape is not None), None)
    if device is None:
        raise Malformed("no input is a tensor, so the device of the outputs is unknown")
    # Distinct from the names of inputs and outputs, which are arbitrary.
    made = [
        f"    _made_{i} = {_allocated(definition, t, device)}"
        for i, t in enumerate(definition.outputs)
    ]
    outputs = [f"_made_{i}" for i in range(len(definition.outputs))]
    returned = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return "\n".join(
        [
            "import torch as _torch",
            "",
            "",
            f"def {definition.entry}({', '.join(names)}):",
            *made,
            f"    {function}({', '.join([*names, *outputs])})",
            f"    return {returned}",
            "",
        ]
    )


def _allocated(definition: Definition, output: Tensor, device: str) -> str:
    if output.shape is None:
        raise Malformed(f"the output {output.name!r} is a plain number, which cannot be written")
    sizes = "".join(f"{_size(definition, axis)}, " for axis in output.shape)
    return f"_torch.empty(({sizes}), dtype=_torch.{output.dtype}, device={device}.device)"


def _size(definition: Definition, axis: str) -> str:
    known = definition.axes[axis]
    if known is not None:
        return str(known)
    for tensor in definition.inputs:
        if axis in (tensor.shape or ()):
            return f"{tensor.name}.shape[{(tensor.shape or ()).index(axis)}]"
    if any(t.name == axis and t.shape is None for t in definition.inputs):
        return axis
    raise Malformed(f"no input defines the size of the axis {axis!r}, which an output has")


_BUILD = '''\
"""Builds the extension that the solution's files make, as its torch binding says."""

import pathlib as _pathlib

from torch.utils.cpp_extension import load as _load

_FILES = {files!r}
_folder = _pathlib.Path(__file__).resolve().parent / "solution_files"
for _path, _text in _FILES.items():
    _file = _folder / _path
    _file.parent.mkdir(parents=True, exist_ok=True)
    _file.write_text(_text, encoding="utf-8")
_built = _load(
    name="solution_extension",
    sources=[str(_folder / p) for p in _FILES if p.endswith((".cu", ".cpp", ".cc", ".cxx", ".c"))],
    extra_include_paths=[str(_folder)],
)
{function} = _built.{function}
'''


def _built(sources: Mapping[str, str], function: str, binding: str) -> str:
    if binding != "torch":
        raise Malformed(f"C++ and CUDA with the binding {binding!r}: only `torch` is supported")
    return _BUILD.format(files=dict(sources), function=function)


def is_data_set(folder: Path) -> bool:
    """Return whether a folder is a data set with solutions."""
    return (folder / DEFINITIONS).is_dir() and (folder / FOLDER).is_dir()
