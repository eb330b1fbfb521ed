"""What `fuzz.py` feeds: each reader of bytes that a child, a file or an endpoint may hold.

A reader takes bytes and raises one of its refusals, or returns. What it returns must be what would
be read again if the judge wrote it: anything else is a forgery.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kerneltruth.analysis.line_parts import LinePart
from kerneltruth.analysis.lines import result_of
from kerneltruth.cases.materialize import flat_bytes
from kerneltruth.cases.strategies import generate
from kerneltruth.corpus import ENTRIES, source
from kerneltruth.documents.exports import seal_of
from kerneltruth.documents.lines import read_line
from kerneltruth.documents.model import dumps, plain
from kerneltruth.errors import UserError
from kerneltruth.generate.completion import ReplyStream, read_completion
from kerneltruth.library.messages import answer_in, encoded, question_in
from kerneltruth.oracle.arguments import Layouts
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.oracle.judge import rule
from kerneltruth.runner.arguments import Data
from kerneltruth.runner.bundle import Bundle, bundle_in, bundle_text
from kerneltruth.runner.candidate import (
    is_torch_only,
    only_function,
    public_functions,
    read_candidate,
    returns_value,
)
from kerneltruth.runner.claims import checked
from kerneltruth.runner.link import LARGEST_HEADER, Ended, Link
from kerneltruth.runner.observation import (
    Access,
    Binary,
    KernelLaunches,
    KernelWork,
    Launch,
    Observation,
    OtherResult,
    TensorResult,
)
from kerneltruth.runner.protocol import ProtocolError
from kerneltruth.runner.source_numbers import block_sizes, thresholds
from kerneltruth.runner.source_state import may_keep_state
from kerneltruth.runner.wire import MAGIC, VERSION, decode, encode
from kerneltruth.runs.findings import finding_from, load_finding
from kerneltruth.runs.ledger import Ledger
from kerneltruth.runs.parts import load_inputs, load_source
from kerneltruth.runs.store import RunStore, load_snapshot
from kerneltruth.runs.tasks_file import read_tasks
from kerneltruth.suites.flashinfer.definition import read_definitions
from kerneltruth.suites.flashinfer.trace import read_traces
from kerneltruth.suites.flashinfer.workload import read_workloads
from kerneltruth.suites.gpuemu.corpus import read_corpus
from kerneltruth.suites.gpumode.problem import read_problems as read_gpumode_problems
from kerneltruth.suites.kernelbench.published_problems import (
    read_problems as read_kernelbench_problems,
)
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import find

STORED = Path(__file__).parent.parent / "tests/unit/runs/stored"
_PREFIX = struct.Struct("<4sHIQ")
_LIMIT = 2**24
_CHAIN = re.compile(rb'"chain":"[0-9a-f]{32}"\}\Z')


class Forgery(Exception):
    """A reader accepted what no judge writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reader, and what it is given first.

    Attributes:
        read: takes bytes, and a folder of its own.
        refusals: how it may say no; in one line.
        seeds: inputs that it accepts.
    """

    read: Callable[[bytes, Path], None]
    refusals: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]


def _same(one: str, other: str) -> None:
    if one != other:
        raise Forgery(f"read as {one:.300}, and again as {other:.300}")


def _reader(data: bytes) -> Callable[[int], bytes]:
    stream = io.BytesIO(data)

    def read(count: int) -> bytes:
        # A child may claim any length: space comes with the bytes.
        chunk = stream.read(min(count, len(data)))
        if len(chunk) < count:
            raise EOFError
        return chunk

    return read


RESULT = TensorResult(
    dtype="float32", shape=(2, 3), strides=(3, 1), device="cpu", data=bytes(24), alias=None
)
OBSERVED = Observation(
    ended="returned",
    results=(RESULT, OtherResult(type="int", text="3")),
    buffers={"input": bytes(8)},
    launches=(Launch(kernel="k", grid=(1,), constants={"B": 16}, signature={"x": "*fp32"}),),
    work=KernelWork(
        runs=(KernelLaunches(name="k", module="f.py", own=True, launches=1, device_s=1e-6),),
        elements=6,
        stored=6,
    ),
    binaries=(Binary(kernel="k", target="sm_90", ok=True, registers=10, seconds=0.5),),
    accesses=(
        Access(kernel="k", line=3, write=True, program=(0, 0), buffer="x", element=-1, elements=2),
    ),
    timings={"device_s": 1e-3, "peak_bytes": 64.0},
    guards_hit=("y",),
    seconds=0.1,
)
RAISED = Observation(ended="raised", error="ValueError", message="too odd", output="printed")


def _framed(message: Observation) -> bytes:
    """A message without its prefix: the header, a line break, the payload."""
    sent = encode(message)
    (_, _, size, _) = _PREFIX.unpack(sent[: _PREFIX.size])
    return sent[_PREFIX.size :][:size] + b"\n" + sent[_PREFIX.size + size :]


def _sent(data: bytes) -> bytes:
    """The message of a framed one: lengths that fit, so that its header is read."""
    if data.startswith(MAGIC):
        return data
    header, _, payload = data.partition(b"\n")
    return _PREFIX.pack(MAGIC, VERSION, len(header), len(payload)) + header + payload


def _observed(data: bytes, sizes: Mapping[str, int]) -> Observation:
    return checked(decode(_reader(_sent(data)), limit=_LIMIT, header_limit=LARGEST_HEADER), sizes)


def read_wire(data: bytes, folder: Path) -> None:
    """A child's answer, as it is received and checked."""
    del folder
    sizes = {"input": 8}
    found = _observed(data, sizes)
    written = encode(found)
    again = checked(decode(_reader(written), limit=_LIMIT), sizes)
    _same(repr(encode(again)), repr(written))


def _call() -> tuple[Any, Any, Any]:
    task = find("relu")
    case = next(iter(generate(task, seed=1, count=1)))
    expectation = expect(task, case, Policy())
    return task, expectation, Layouts().of(task, case, expectation.inputs)


_CALL: list[Any] = []


def _right() -> Observation:
    if not _CALL:
        _CALL.extend(_call())
    _, expectation, laid = _CALL
    results = tuple(
        TensorResult(
            dtype=str(o.reference.dtype).removeprefix("torch."),
            shape=tuple(o.reference.shape),
            strides=tuple(o.reference.stride()),
            device="cpu",
            data=bytes(flat_bytes(o.reference).numpy()),
        )
        for o in expectation.outputs
    )
    buffers: dict[str, Data] = {name: bytes(p.buffer) for name, p in laid.placed.items()}
    return replace(OBSERVED, results=results, buffers=buffers, accesses=(), guards_hit=())


def read_verdict(data: bytes, folder: Path) -> None:
    """A child's answer, and the ruling on it."""
    del folder
    task, expectation, laid = _CALL
    sizes = {name: len(p.buffer) for name, p in laid.placed.items()}
    found = _observed(data, sizes)
    ruled = rule(task, expectation, laid.placed, found, deadline_s=1.0, device="cpu")
    dumps(ruled.verdict)
    dumps(ruled.stats)
    right = ruled.verdict.word == "pass"
    if right and any(
        not isinstance(r, TensorResult) or r.shape != tuple(o.reference.shape)
        for r, o in zip(found.results, expectation.outputs, strict=True)
    ):
        raise Forgery("a result of another form passes")


def read_packet(data: bytes, folder: Path) -> None:
    """What the warden's channel brings."""
    del folder
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire, far = socket.socketpair()
    output, printed = os.pipe()
    link = Link(wire, ours, output)
    try:
        theirs.send(data[:4096] or b"{}")
        theirs.close()
        link.receive(deadline=time.monotonic() + 1)
    except Ended as end:
        observation = end.observation
        if observation.ended not in ("died", "flooded", "lost"):
            raise Forgery(f"a packet ended a call as {observation.ended}") from end
        if link.pid is not None and link.pid < 2:
            raise Forgery(f"a packet named the process {link.pid}") from end
    finally:
        link.close()
        theirs.close()
        far.close()
        os.close(printed)


FINDINGS = tuple(path.read_bytes() for path in sorted((STORED / "findings").glob("*.json")))
LINES = (STORED / "results.jsonl").read_bytes()


def read_finding(data: bytes, folder: Path) -> None:
    """A finding, its source and its inputs, within a run."""
    path = folder / "findings" / "f.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    finding = load_finding(path)
    written = dumps(finding)
    _same(dumps(finding_from(json.loads(written))), written)
    finding.case.summary()
    load_source(path, finding.candidate.sha256)
    load_inputs(path)


def read_export(data: bytes, folder: Path) -> None:
    """An exported finding whose seal is right."""
    made = _json(data)
    path = folder / "f.json"
    if isinstance(made, dict):
        made["form"] = "exported finding"
        made.pop("sha256", None)
        with contextlib.suppress(RecursionError):
            data = json.dumps(made | {"sha256": seal_of(made)}).encode()
    path.write_bytes(data)
    finding = load_finding(path)
    load_source(path, finding.candidate.sha256)
    load_snapshot(path)


def _exported() -> bytes:
    made = {"form": "exported finding", "finding": json.loads(FINDINGS[0]), "source": "x = 1\n"}
    return json.dumps(made | {"inputs": None, "schema": 2, "version": "1"}).encode()


def _chained() -> bytes:
    """Results as a run holds them now, each line with its digest."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "results.jsonl"
        with Ledger(path, keep=dict) as ledger:
            for line in map(json.loads, LINES.splitlines()):
                key = line.pop("key")
                ledger.append(key, line)
        return path.read_bytes()


CHAINED = _chained()


def read_ledger(data: bytes, folder: Path) -> None:
    """Results of a run: none but the lines of the seed may come back."""
    path = folder / "results.jsonl"
    path.write_bytes(data)
    with Ledger(path, keep=dict) as ledger:
        count = len(ledger.lines())
    read, known = (text.split(b"\n")[:count] for text in (data, CHAINED))
    if read != known and any(_CHAIN.search(line) for line in read):
        raise Forgery("a line with a digest is read that was not written so")


def read_results(data: bytes, folder: Path) -> None:
    """Lines of results without digests, as an older run has them, for `analyze`."""
    path = folder / "results.jsonl"
    path.write_bytes(data)
    with contextlib.suppress(UserError):
        Ledger(path, keep=read_line).close()
    Ledger(path, keep=partial(result_of, run=0), form=LinePart).close()


def read_manifest(data: bytes, folder: Path) -> None:
    """A run's manifest, and what it keeps of its tasks."""
    (folder / "run.json").write_bytes(data)
    with RunStore.open(folder, keep=dict) as store:
        written = dumps(store.manifest)
        _same(dumps(store.manifest), written)
    (folder / "tasks.json").write_bytes(data)
    read_tasks(folder)


def _submissions(folder: Path) -> None:
    for item in read_submissions(folder):
        if isinstance(item, Broken):
            continue
        dumps(item.labels)
        dumps(item.peer)
        only_function(item.source)


def _fresh(folder: Path, files: Mapping[str, bytes]) -> Path:
    """A folder with these files alone."""
    root = folder / "given"
    shutil.rmtree(root, ignore_errors=True)
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def read_predictions(data: bytes, folder: Path) -> None:
    """Answers to KernelBenchX and TritonBench, and those of `generate`."""
    _submissions(_fresh(folder, {"answers.jsonl": data}))
    _submissions(_fresh(folder, {"answers.jsonl": data, "generation.json": b"{}"}))


def read_kernelbench(data: bytes, folder: Path) -> None:
    """A submission to KernelBench, its run directory with verdicts, and its rows of problems."""
    _submissions(_fresh(folder, {"submission.json": data}))
    kernel = "level_1_problem_2_sample_0_kernel.py"
    _submissions(_fresh(folder, {kernel: b"x = 1\n", "eval_results.json": data}))
    read_kernelbench_problems(_fresh(folder, {"rows.jsonl": data}) / "rows.jsonl")


def read_flashinfer(data: bytes, folder: Path) -> None:
    """A file of a data set of FlashInfer-Bench; the first byte says which."""
    files = dict(zip(FLASHINFER, FLASHINFER_SEEDS, strict=True))
    files[tuple(FLASHINFER)[data[0] % 4 if data else 0]] = data[1:]
    root = _fresh(folder, files)
    definitions, _ = read_definitions(root)
    read_workloads(root, definitions)
    read_traces(root)
    for _ in read_submissions(root, definitions=definitions):
        pass


def read_gpuemu(data: bytes, folder: Path) -> None:
    """A kernel's `meta.json` of the gpuemu corpus."""
    files = {"relu/meta.json": data, "relu/kernel.py": b"x = 1\n", "relu/ref.py": b"y = 1\n"}
    for kernel in read_corpus(_fresh(folder, files)):
        kernel.of_control({"relu"})


def read_gpumode(data: bytes, folder: Path) -> None:
    """A problem of GPU MODE: `task.yml`, a line of NUL, and its reference."""
    stated, _, reference = data.partition(b"\0")
    files = {"group/problem/task.yml": stated, "group/problem/reference.py": reference}
    for problem in read_gpumode_problems(_fresh(folder, files)).values():
        problem.source()
        problem.submitted("import torch\ncustom_kernel = print\n")


def read_reply(data: bytes, folder: Path) -> None:
    """A model's reply: a file of a folder, and code in fences."""
    _submissions(_fresh(folder, {"relu.py": data}))


def read_screen(data: bytes, folder: Path) -> None:
    """A candidate's source, read and never run."""
    del folder
    text = data.decode("utf-8", "surrogatepass" if data[:1] == b"#" else "strict")
    block_sizes(text)
    thresholds(text)
    may_keep_state(text)
    returns_value(text, "relu")
    only_function(text)
    candidate = read_candidate(text, "relu.py", task_names=("relu",), task="relu")
    is_torch_only(candidate)
    dumps(candidate.ref)
    again = read_candidate(candidate.source, "relu.py", task_names=("relu",), task="relu")
    _same(repr(again), repr(candidate))


def read_bundle(data: bytes, folder: Path) -> None:
    """A candidate of several files in one text."""
    text = data.decode()
    bundle = bundle_in(text)
    # Writing one takes more memory than reading it.
    if bundle is not None and len(text) < _LIMIT:
        if bundle_in(bundle_text(bundle)) != bundle:
            raise Forgery("a bundle that is written otherwise")
        public_functions(text, "f.py")
    read_screen(data, folder)


def read_service(data: bytes, folder: Path) -> None:
    """Questions and answers between a library's caller and its server."""
    del folder
    read = answer_in if data[:1] == b"a" else question_in
    found = read(data[1:])
    written = encoded(found)
    _same(repr(encoded(read(written))), repr(written))


def read_endpoint(data: bytes, folder: Path) -> None:
    """The response of a model's endpoint, whole and as a stream."""
    del folder
    replies = [read_completion(data)]
    stream = ReplyStream()
    for line in data.decode("utf-8", "replace").split("\n"):
        if not stream.feed(line):
            break
    for reply in (*replies, stream.reply()):
        dumps(plain(reply)).encode()


def read_inputs(data: bytes, folder: Path) -> None:
    """The stored inputs of a finding."""
    path = folder / "findings" / "f.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(FINDINGS[0])
    (folder / "inputs").mkdir(exist_ok=True)
    (folder / "inputs" / "f.safetensors").write_bytes(data)
    load_snapshot(path)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _lines(*objects: Mapping[str, Any]) -> bytes:
    return b"\n".join(json.dumps(each).encode() for each in objects)


KERNEL = "import torch\ndef relu(input):\n    return torch.relu(input)\n"
PREDICTIONS = _lines(
    {"file": "relu.py", "predict": f"Here:\n```python\n{KERNEL}```\n", "sample": 1, "model": "m"},
    {"instruction": "Wrapper Entry Information: def relu(input)", "response": [KERNEL]},
    {"task": "relu", "code": KERNEL, "peer": {"check": "c", "compiled": True, "correct": None}},
)
SUBMISSION = {"metadata": {"model": "m"}, "kernels": {"level_1_problem_2_sample_0": KERNEL}}
EVALUATED = {"2": [{"sample_id": 0, "compiled": True, "correctness": False, "runtime": 1.5}]}
MODEL = (
    "import torch\nN = 4\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return x\ndef get_inputs():\n    return [torch.rand(N)]\n"
    "def get_init_inputs():\n    return []\n"
)
ROW = {"problem_id": 2, "level": 1, "name": "2_Same", "code": MODEL}
_HALF = {"shape": ["M", "N"], "dtype": "float16"}
FLASHINFER = {
    "definitions/a/a.json": {
        "name": "twice",
        "op_type": "twice",
        "description": "x twice",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 48}},
        "constraints": ["M % 2 == 0"],
        "inputs": {"x": _HALF, "s": {"shape": None, "dtype": "float32"}},
        "outputs": {"y": _HALF},
        "reference": "def run(x, s):\n    return x * 2\n",
    },
    "workloads/a/a.jsonl": {
        "definition": "twice",
        "workload": {
            "axes": {"M": 4},
            "inputs": {
                "x": {"type": "safetensors", "path": "a.safetensors", "tensor_key": "x"},
                "s": {"type": "scalar", "value": 2.0},
            },
        },
    },
    "traces/a/a.jsonl": {
        "definition": "twice",
        "solution": "own",
        "evaluation": {
            "status": "PASSED",
            "performance": {"latency_ms": 0.5, "speedup_factor": 2.0},
        },
    },
    "solutions/a/a.json": {
        "name": "own",
        "definition": "twice",
        "author": "me",
        "spec": {"language": "triton", "entry_point": "main.py::run"},
        "sources": [
            {"path": "main.py", "content": "from helper import f\ndef run(x, s, y):\n    f(y)\n"},
            {"path": "helper.py", "content": "def f(y):\n    y.zero_()\n"},
        ],
    },
}
FLASHINFER_SEEDS = tuple(json.dumps(each).encode() for each in FLASHINFER.values())
GPUEMU = {
    "name": "relu_buggy",
    "source": "somewhere",
    "input_names": ["x"],
    "reference": "relu/ref.py",
    "kernel": "relu/kernel.py",
    "dtypes": ["float32"],
    "tolerances": {"float32": 1e-5},
    "op_schema": {
        "name": "relu",
        "dims": [{"name": "N", "candidates": [1, 16]}],
        "inputs": [{"name": "x", "dims": ["N"]}],
        "output": {"name": "y", "dims": ["N"]},
    },
}
GPUMODE = (
    b'files:\n  - {"name": "reference.py", "source": "reference.py"}\ndescription: |\n  Add.\n'
    b'tests:\n  - {"size": 16, "seed": 4}\n\0'
    b"from utils import make_match_reference\ndef generate_input(size, seed):\n    return size\n"
    b"def ref_kernel(data):\n    a, b, out = data\n    out[...] = a + b\n    return out\n"
    b"check_implementation = make_match_reference(ref_kernel, rtol=1e-3)\n"
)
ASK = {
    "type": "ask",
    "number": 1,
    "about": {
        "type": "time",
        "file": "f.py",
        "dtype": None,
        "baselines": ["eager"],
        "budget_s": 1.5,
        "deadline_s": 2,
    },
}
ANSWERED = {"type": "refused", "number": 1, "fault": "user", "reason": "no such task"}
COMPLETION = {
    "id": "1",
    "model": "m",
    "choices": [{"finish_reason": "stop", "message": {"content": [{"text": "x"}]}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
DELTA = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}


def _inputs() -> bytes:
    import torch

    from kerneltruth.runs.tensors import to_bytes

    return to_bytes({"x": torch.ones(2, 3), "z": torch.ones(2, dtype=torch.complex64)})


def _sources() -> tuple[bytes, ...]:
    own = [KERNEL, *(source(entry) for entry in ENTRIES[:6])]
    return tuple(text.encode() for text in own)


def _bundles() -> tuple[bytes, ...]:
    files = {"pkg/__init__.py": b"", "pkg/ops.py": KERNEL.encode(), "pkg/k.so": bytes(range(256))}
    made = Bundle(module="pkg.ops", function="relu", files=files)
    return (bundle_text(made).encode(),)


_WIRE = (ProtocolError, EOFError)
_JSON = (UserError, ValueError, RecursionError)


def targets() -> dict[str, Target]:
    """Every target by name."""
    right = _framed(_right())
    framed = (_framed(OBSERVED), _framed(RAISED), encode(RAISED))
    packets = (
        b'{"child": 7}',
        b'{"signal": 9}',
        b'{"code": 1}',
        b'{"over": "ran"}',
        b'{"gone": 0}',
    )
    events = b"data: " + json.dumps(DELTA).encode() + b"\ndata: [DONE]\n"
    manifest = (STORED / "run.json").read_bytes()
    tasks = b'{"schema": 2, "tasks": {"relu": {"numbers": {"lines": 3}, "dtypes": ["float32"]}}}'
    user = (UserError,)

    def target(
        read: Callable[[bytes, Path], None],
        refusals: tuple[type[Exception], ...],
        *seeds: bytes,
    ) -> Target:
        return Target(read=read, refusals=refusals, seeds=seeds)

    dumped = (json.dumps(each).encode() for each in (SUBMISSION, EVALUATED, ROW))
    data_set = (bytes([n]) + seed for n, seed in enumerate(FLASHINFER_SEEDS))
    said = (b"q" + json.dumps(ASK).encode(), b"a" + json.dumps(ANSWERED).encode())
    replies = (f"Sure:\n```python\n{KERNEL}```\n~~~\nx\n~~~\n".encode(), KERNEL.encode())
    return {
        "wire": target(read_wire, _WIRE, *framed),
        "verdict": target(read_verdict, _WIRE, right, *framed),
        "packet": target(read_packet, (), *packets),
        "finding": target(read_finding, user, *FINDINGS),
        "export": target(read_export, user, _exported()),
        "ledger": target(read_ledger, user, CHAINED),
        "results": target(read_results, user, LINES),
        "manifest": target(read_manifest, user, manifest, tasks),
        "inputs": target(read_inputs, user, _inputs()),
        "predictions": target(read_predictions, user, PREDICTIONS),
        "kernelbench": target(read_kernelbench, user, *dumped),
        "flashinfer": target(read_flashinfer, user, *data_set),
        "gpuemu": target(read_gpuemu, user, json.dumps(GPUEMU).encode()),
        "gpumode": target(read_gpumode, user, GPUMODE),
        "reply": target(read_reply, user, *replies),
        "screen": target(read_screen, (UserError, UnicodeDecodeError), *_sources()),
        "bundle": target(read_bundle, (UserError, UnicodeDecodeError), *_bundles()),
        "service": target(read_service, _JSON, *said),
        "endpoint": target(read_endpoint, (), json.dumps(COMPLETION).encode(), events),
    }
