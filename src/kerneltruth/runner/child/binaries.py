"""Static facts of a compiled kernel, read from the binary itself.

An NVIDIA cubin is an ELF file: code lies in `.text.*` sections, registers and stack frames in
`.nv.info`. Reading it directly takes under a millisecond, where starting `cuobjdump` takes ten and
`nvdisasm` hundreds. For AMD, the assembler text that Triton keeps has all facts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kerneltruth.runner.observation import Binary

_ELF_MAGIC = b"\x7fELF"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_OPCODE_MASK = 0xFFF
_NOP = 0x918

# `.nv.info` records are (format, attribute, size or value); only format 4 has a payload of `size`.
_HAS_PAYLOAD = 4
_REGISTER_COUNT = 0x2F
_FRAME_SIZE = 0x11

_TENSOR_CORES = re.compile(r"\b(wgmma|tcgen05|mma)\.")
# What PTX shows of how memory is used.
_USES = {
    "wide_loads": re.compile(
        r"\bld\.global[\w.:]*\.v(?:4\.[bfsu]32|[248]\.[bfsu]64|8\.[bfsu]32)\b"
    ),
    "async_copies": re.compile(r"\bcp\.async\.c[ag]\b"),
    "tma": re.compile(r"\bcp\.async\.bulk\.tensor\b"),
    "atomics": re.compile(r"\b(?:atom|red)\.[\w.:]*\bglobal\b"),
}

_AMD_FIELD = re.compile(
    r"^\s+(?:- )?\.(vgpr_count|vgpr_spill_count|sgpr_spill_count):\s+(\d+)", re.M
)
_AMD_INSTRUCTION = re.compile(r"^\t[a-z]\w*", re.M)
_AMD_CODE_END = ".Lfunc_end0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFacts:
    """Facts of a binary; None where it has none.

    Attributes:
        registers: per thread, the most of any function in the binary (vector registers on AMD).
        spills: 32-bit words of local memory per thread, as Triton's own `n_spills` counts them.
        instructions: machine instructions, without the padding behind the last one.
    """

    registers: int | None = None
    spills: int | None = None
    instructions: int | None = None


def read_cubin(binary: bytes) -> BinaryFacts:
    """Facts of an NVIDIA cubin; all None when it is not an ELF file that we understand."""
    try:
        sections = list(_sections(binary))
    except (struct.error, IndexError, ValueError):
        return BinaryFacts()
    registers: list[int] = []
    frames: list[int] = []
    instructions = 0
    for name, content in sections:
        if name == ".nv.info":
            for attribute, value in _information(content):
                if attribute == _REGISTER_COUNT:
                    registers.append(value)
                elif attribute == _FRAME_SIZE:
                    frames.append(value)
        elif name.startswith(".text."):
            instructions += _count_sass(content)
    return BinaryFacts(
        registers=max(registers, default=None),
        spills=sum(frames) // 4 if frames else None,
        instructions=instructions or None,
    )


def read_amdgcn(text: str) -> BinaryFacts:
    """Facts of an AMD kernel from the assembler text that Triton keeps beside the binary."""
    fields = {name: int(value) for name, value in _AMD_FIELD.findall(text)}
    code = text.partition(_AMD_CODE_END)[0]
    instructions = len(_AMD_INSTRUCTION.findall(code))
    spills = [fields[k] for k in ("vgpr_spill_count", "sgpr_spill_count") if k in fields]
    return BinaryFacts(
        registers=fields.get("vgpr_count"),
        spills=sum(spills) if spills else None,
        instructions=instructions or None,
    )


def _sections(binary: bytes) -> Iterator[tuple[str, bytes]]:
    if binary[:4] != _ELF_MAGIC:
        raise ValueError("not an ELF file")
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [_SECTION.unpack_from(binary, table + size * i) for i in range(count)]
    names = _content(binary, headers[names_index])
    for header in headers:
        name = names[header[0] : names.index(b"\0", header[0])].decode()
        yield name, _content(binary, header)


def _content(binary: bytes, header: tuple[int, ...]) -> bytes:
    return binary[header[4] : header[4] + header[5]]


def _information(content: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, position)
        position += 4
        if form != _HAS_PAYLOAD:
            continue
        if size == 8:
            _, value = struct.unpack_from("<II", content, position)
            yield attribute, value
        position += size


def _count_sass(code: bytes) -> int:
    words = [word[0] for word in struct.iter_unpack("<QQ", code[: len(code) // 16 * 16])]
    while words and words[-1] & _OPCODE_MASK == _NOP:
        words.pop()
    return len(words)


def uses_of(ptx: str) -> tuple[str, ...]:
    """Return how a kernel uses memory, by its PTX: words of `BinaryRecord.uses`."""
    return tuple(word for word, pattern in _USES.items() if pattern.search(ptx))


def describe(kernel: Any, *, name: str, target: str, **more: Any) -> Binary:
    """Return the facts of a kernel that Triton has compiled."""
    asm, metadata = kernel.asm, kernel.metadata
    facts = BinaryFacts()
    if "cubin" in asm:
        facts = read_cubin(asm["cubin"])
    elif "amdgcn" in asm:
        facts = read_amdgcn(asm["amdgcn"])
    ptx = asm.get("ptx")
    return Binary(
        kernel=name,
        target=target,
        ok=True,
        registers=facts.registers,
        spills=facts.spills,
        shared_bytes=getattr(metadata, "shared", None),
        instructions=facts.instructions,
        num_warps=getattr(metadata, "num_warps", None),
        tensor_cores=None if ptx is None else bool(_TENSOR_CORES.search(ptx)),
        uses=None if ptx is None else uses_of(ptx),
        **more,
    )
