"""Read the gpuemu corpus: folders with `meta.json`, `kernel.py` and, for some, `ref_fp64.py`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kerneltruth.documents.model import loads
from kerneltruth.errors import UserError
from kerneltruth.runner.regular_file import read_regular

META, KERNEL, REFKIT = "meta.json", "kernel.py", "_refkit.py"
# Where a checkout has the folders.
_DATA = Path("gpuemu_corpus", "data")
_WRONG = "_buggy"


class SchemaDim(msgspec.Struct, frozen=True):
    """A dim, and the sizes at which the corpus tries it."""

    name: str
    candidates: tuple[int, ...]


class SchemaTensor(msgspec.Struct, frozen=True):
    """A tensor over dims."""

    name: str
    dims: tuple[str, ...]


class OpSchema(msgspec.Struct, frozen=True):
    """The shapes of an operator."""

    name: str
    dims: tuple[SchemaDim, ...]
    inputs: tuple[SchemaTensor, ...]
    output: SchemaTensor


class Meta(msgspec.Struct, frozen=True):
    """The contents of a kernel's `meta.json`; paths are relative to the corpus."""

    name: str
    source: str
    input_names: tuple[str, ...]
    reference: str
    kernel: str
    dtypes: tuple[str, ...]
    tolerances: dict[str, float]
    op_schema: OpSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusKernel:
    """A published kernel with the program that is its reference.

    Attributes:
        folder: of its files.
        program: the text of the reference.
        refkit: the text of the helpers that the reference imports; empty without any.
    """

    meta: Meta
    folder: Path
    source: str
    program: str
    refkit: str

    @property
    def is_wrong(self) -> bool:
        """Return whether its author calls it a bug."""
        return self.meta.name.endswith(_WRONG)

    @property
    def sha256(self) -> str:
        """Return the hash of all that its task is made of."""
        text = "\0".join((self.program, self.refkit, msgspec.json.encode(self.meta).decode()))
        return hashlib.sha256(text.encode()).hexdigest()

    def of_control(self, controls: set[str]) -> str:
        """Return the control whose task a wrong kernel is for: by its name, or its reference."""
        named = self.meta.name.removesuffix(_WRONG)
        return named if named in controls else Path(self.meta.reference).parent.name


def read_corpus(path: Path) -> tuple[CorpusKernel, ...]:
    """Return the kernels below a checkout of the corpus, or its folder `data`, by name.

    Raises:
        UserError: there are none, or one of their files is missing or wrong.
    """
    data = path / _DATA if (path / _DATA).is_dir() else path
    found = tuple(_kernel(meta, data) for meta in sorted(data.glob(f"*/{META}")))
    if not found:
        raise UserError(
            f"--suite gpuemu:{path}: no folder there has a {META}; name a checkout of gpuemu-corpus"
        )
    return found


def read_kernel(folder: Path) -> CorpusKernel:
    """Return the kernel in one folder of a corpus."""
    return _kernel(folder / META, folder.parent)


def _kernel(file: Path, data: Path) -> CorpusKernel:
    try:
        meta = msgspec.convert(loads(read_regular(file)), Meta)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise UserError(f"{file}: {said}; correct it, or leave its folder out") from error
    return CorpusKernel(
        meta=meta,
        folder=file.parent,
        source=_text(data, meta.kernel, file),
        program=_text(data, meta.reference, file),
        refkit=_text(data, REFKIT, file) if (data / REFKIT).is_file() else "",
    )


def _text(data: Path, name: str, file: Path) -> str:
    try:
        path = (data / name).resolve()
        if not path.is_relative_to(data.resolve()):
            raise UserError(f"{file}: {name!r} leads out of the corpus; name a file inside it")
        return read_regular(path).decode()
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot read {name!r}: {error}; put it there") from error
