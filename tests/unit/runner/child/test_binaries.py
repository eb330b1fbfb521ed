"""Static facts read from binaries agree with what NVIDIA's own tools say of them."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from kerneltruth.runner.child.binaries import BinaryFacts, read_amdgcn, read_cubin, uses_of

TOOLS = Path(importlib.util.find_spec("triton").origin).parent / "backends" / "nvidia" / "bin"
VALUES = 48


def ptx(arch):
    loads = [f"ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(VALUES)]
    stores = [f"st.volatile.global.f32 [%rd1+{4 * i}], %f{i};" for i in range(VALUES)]
    return "\n".join(
        [
            f".version 8.6\n.target {arch}\n.address_size 64",
            ".visible .entry kernel(.param .u64 p)\n{",
            f".reg .f32 %f<{VALUES}>;\n.reg .b64 %rd<2>;",
            "ld.param.u64 %rd1, [p];",
            *loads,
            *stores,
            "ret;\n}\n",
        ]
    )


@pytest.fixture(params=["sm_80", "sm_89", "sm_90a", "sm_100a"])
def assemble(request, tmp_path):
    def make(*options):
        source, cubin = tmp_path / "kernel.ptx", tmp_path / "kernel.cubin"
        source.write_text(ptx(request.param))
        tool = TOOLS / ("ptxas-blackwell" if request.param == "sm_100a" else "ptxas")
        command = [tool, *options, f"--gpu-name={request.param}", source, "-o", cubin]
        subprocess.run(command, check=True, capture_output=True)
        return cubin

    return make


def tool(name, *arguments):
    command = [TOOLS / name, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.processes
@pytest.mark.parametrize("options", [(), ("--maxrregcount=24",)])
def test_registers_and_spills_are_those_of_cuobjdump(assemble, options):
    cubin = assemble(*options)
    usage = tool("cuobjdump", "--dump-resource-usage", cubin)
    said = {k: int(v) for k, v in re.findall(r"(REG|STACK):(\d+)", usage)}
    facts = read_cubin(cubin.read_bytes())
    assert (facts.registers, facts.spills) == (said["REG"], said["STACK"] // 4)


@pytest.mark.processes
def test_a_kernel_short_of_registers_spills(assemble):
    assert read_cubin(assemble().read_bytes()).spills == 0
    assert read_cubin(assemble("--maxrregcount=24").read_bytes()).spills >= VALUES // 2


@pytest.mark.slow
@pytest.mark.processes
def test_instructions_are_the_lines_of_the_disassembly_before_the_padding(assemble):
    cubin = assemble()
    lines = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", tool("cuobjdump", "-sass", cubin), re.M)
    while lines[-1].strip() == "NOP":
        lines.pop()
    assert read_cubin(cubin.read_bytes()).instructions == len(lines)


@pytest.mark.parametrize("binary", [b"", b"no ELF file", b"\x7fELF", b"\x7fELF" + bytes(200)])
def test_what_is_no_cubin_yields_no_facts(binary):
    assert read_cubin(binary) == BinaryFacts()


AMD = """
kernel:
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
\t.loc\t1 9 10
; a comment
\tv_add_f32 v0, v1, v2
\ts_endpgm
.Lfunc_end0:
\ts_code_end
amdhsa.kernels:
  - .agpr_count:     0
    .sgpr_spill_count: 2
    .vgpr_count:     80
    .vgpr_spill_count: 3
"""


def test_facts_of_an_amd_kernel_come_from_its_text():
    assert read_amdgcn(AMD) == BinaryFacts(registers=80, spills=5, instructions=3)


def test_a_text_without_metadata_yields_no_facts():
    assert read_amdgcn("") == BinaryFacts()


@pytest.mark.parametrize(
    ("ptx", "uses"),
    [
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", ("wide_loads",)),
        ("ld.global.L1::evict_last.v2.b64 { %rd1, %rd2 }, [ %rd3 ];", ("wide_loads",)),
        ("ld.global.v2.b32 { %r1, %r2 }, [ %rd1 ];", ()),
        ("ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];", ()),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;", ("async_copies",)),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier [%r1], [%rd1];", ("tma",)),
        ("cp.async.commit_group;", ()),
        ("atom.global.gpu.acq_rel.add.f32 %r1, [ %rd1 + 0 ], %r2;", ("atomics",)),
        ("red.relaxed.gpu.global.add.f32 [%rd1], %r2;", ("atomics",)),
        ("redux.sync.add.s32 %r1, %r2, 0xffffffff; atom.shared.add.u32 %r1, [%r2], 1;", ()),
    ],
)
def test_how_memory_is_used_is_read_from_ptx(ptx, uses):
    assert uses_of(ptx) == uses
