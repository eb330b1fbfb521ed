"""Problems in GPU MODE's form judged on the command line: `--suite gpumode:PATH`."""

import json

import pytest

ON_CPU = ("--device", "cpu", "--cases", 6)
META = """# name: shifted
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}

lang: "py"

description: |
  Add one
  to each element.

config:
  main: "eval.py"

tests:
  # The first one counts.
  - {"size": 24, "seed": 4242}
  - {"size": 48, "seed": 1}

benchmarks:
  - {"size": 4096, "seed": 3}
"""
UTILS = """
def match_reference(data, output, reference, rtol=1e-05, atol=1e-08):
    return (reference(data) - output).abs().max() < atol, ""


def make_match_reference(reference, **more):
    return lambda data, output: match_reference(data, output, reference, **more)
"""
REFERENCE = """
import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    x, output = data
    output[...] = x + 1
    return output


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(size, size, device="cuda", dtype=torch.float32, generator=gen)
    return x, torch.empty_like(x)


check_implementation = make_match_reference(ref_kernel, rtol=1e-4)
"""
RIGHT = """#!POPCORN leaderboard shifted
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    x, output = data
    output[...] = x + 1
    return output
"""
WRONG = {
    # Whatever the memory holds.
    "empty.py": RIGHT.replace("    output[...] = x + 1\n", ""),
    "even_sizes.py": RIGHT.replace(
        "    output[...] = x + 1", "    n = x.shape[0] // 8 * 8\n    output[:n] = x[:n] + 1"
    ),
}


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "problems" / "group" / "shifted"
    folder.mkdir(parents=True)
    (folder / "task.yml").write_text(META)
    (folder / "task.py").write_text("input_t = output_t = object\n")
    (folder / "reference.py").write_text(REFERENCE)
    (folder.parent / "utils.py").write_text(UTILS)
    return tmp_path / "checkout"


@pytest.mark.slow
def test_a_reference_is_never_flagged_and_wrong_submissions_are(kt, checkout, tmp_path):
    suite = f"gpumode:{checkout}"
    audit = json.loads(kt("audit", "--suite", suite, "--json", *ON_CPU).out)
    assert audit["summary"]["good"]
    folder = tmp_path / "answers"
    folder.mkdir()
    for name, source in {"right.py": RIGHT, **WRONG}.items():
        (folder / name).write_text(source)
    given = ("--suite", suite, "--candidates", folder, "--stage", "exe", "--workers", 1)
    ran = kt("run", *given, "--out", tmp_path / "run", "--json", *ON_CPU)
    found = {c["name"].partition("@")[0]: c["verdict"] for c in json.loads(ran.out)["candidates"]}
    assert found == {"right.py": "pass", "empty.py": "fail", "even_sizes.py": "fail"}


@pytest.mark.slow
def test_a_finding_of_a_submission_replays(kt, checkout, candidate, tmp_path):
    given = ("--suite", f"gpumode:{checkout}", "--task", "group/shifted", *ON_CPU)
    wrong = candidate(WRONG["empty.py"].partition("\n")[2])
    assert kt("check", wrong, *given, "--out", tmp_path / "run").code == 1
    assert kt("replay", tmp_path / "run", "--device", "cpu").code == 0


def listed(kt, checkout):
    tasks = json.loads(kt("tasks", "--suite", f"gpumode:{checkout}", "--json").out)["tasks"]
    return tasks[0]


def test_a_problem_is_listed_with_what_it_takes(kt, checkout):
    task = listed(kt, checkout)
    assert (task["key"], task["signature"]) == ("gpumode/group/shifted", "shifted(x, output)")
    assert task["description"] == "Add one to each element."
    assert task["unrefereeable"] is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("def generate_input", "def makes", "reference.py does not define generate_input"),
        ("make_match_reference(ref_kernel, rtol=1e-4)", "print", "any result with some properties"),
        ("def ref_kernel(", "def ref_kernel(:", "reference.py is not Python"),
    ],
)
def test_a_problem_that_cannot_be_judged_says_why(kt, checkout, old, new, said):
    file = checkout / "problems" / "group" / "shifted" / "reference.py"
    file.write_text(REFERENCE.replace(old, new))
    assert said in listed(kt, checkout)["unrefereeable"]


def test_a_problem_for_several_gpus_says_so(kt, checkout):
    file = checkout / "problems" / "group" / "shifted" / "task.yml"
    file.write_text("multi_gpu: true\n" + META)
    assert listed(kt, checkout)["unrefereeable"] == "it asks for several GPUs"


TYPES = """
from typing import TypeVar
import torch

input_t = TypeVar("input_t", bound=BOUND)
output_t = TypeVar("output_t", bound=torch.Tensor)
"""
HELD = """
import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    x, mask, held, factors = data
    total = x * mask * held["weights"]["scale"] * held["columns"] + held["weights"]["shift"]
    return total * factors[0] * factors[1]


def generate_input(rows: int, columns: int, seed: int, plain: bool) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randn(rows, columns, device="cuda", generator=gen)
    mask = torch.ones(rows, columns) if plain else torch.randint(0, 2, (rows, columns))
    scale, shift = (torch.randn(columns, generator=gen) for _ in range(2))
    held = {"weights": {"scale": scale, "shift": shift}, "columns": columns, "name": "held"}
    return x, mask, held, [torch.randn(rows, 1, generator=gen) for _ in range(2)]


check_implementation = make_match_reference(ref_kernel, rtol=1e-4)
"""
OF_HELD = """
def custom_kernel(data):
    x, mask, held, factors = data
    assert held["name"] == "held" and x.shape[1] == held["columns"]
    scale, shift = held["weights"].values()
    x = torch.where(mask.bool(), x, 0)
    return (x * scale * held["columns"] + shift) * factors[0] * factors[1]


import torch
"""


@pytest.fixture
def nested_problem(checkout):
    folder = checkout / "problems" / "group" / "shifted"
    bound = "tuple[torch.Tensor, torch.Tensor, dict, list[torch.Tensor]]"
    (folder / "task.py").write_text(TYPES.replace("BOUND", bound))
    (folder / "reference.py").write_text(HELD)
    one, other = '{"size": 24, "seed": 4242}', '{"size": 48, "seed": 1}'
    sizes = '{"rows": 24, "columns": 12, "seed": 1, "plain": %s}'
    tests = META.replace(one, sizes % "True").replace(other, sizes % "False")
    (folder / "task.yml").write_text(tests)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("was", "becomes", "verdict"),
    [
        ("", "", "pass"),
        ('held["columns"] + shift', "12 + shift", "fail"),
        ("scale, shift =", "shift, scale =", "fail"),
        ("factors[0] * factors[1]", "factors[0] * factors[0]", "fail"),
    ],
)
def test_dicts_lists_and_numbers_in_data_come_as_they_are(
    kt, nested_problem, candidate, tmp_path, was, becomes, verdict
):
    kernel = candidate(OF_HELD.replace(was, becomes))
    given = (
        "--suite",
        f"gpumode:{nested_problem}",
        "--task",
        "shifted",
        *ON_CPU[:2],
        "--cases",
        16,
    )
    found = json.loads(kt("check", kernel, *given, "--json", "--out", tmp_path / "run").out)
    assert found["verdict"] == verdict, found
    again = kt("replay", tmp_path / "run", "--device", "cpu")
    assert again.code == 0 or verdict == "pass", again.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("types", "returned", "said"),
    [
        (
            "object",
            "{'x': x}, x",
            "element 1 of data is a dict, and a tensor by input_t in task.py",
        ),
        ("tuple[dict, torch.Tensor]", "{'x': x.shape}, x", "element 1 of data holds a Size, not"),
        ("object", "x.to(torch.float8_e5m2), x", "generate_input makes a tensor of float8_e5m2"),
        ("tuple[dict, torch.Tensor]", "{}, x, x", "TypeError: its data are 3 parts; its reference"),
    ],
)
def test_data_that_cannot_be_taken_are_told(kt, checkout, types, returned, said):
    folder = checkout / "problems" / "group" / "shifted"
    (folder / "task.py").write_text(TYPES.replace("BOUND", types))
    written = f"return {returned}"
    (folder / "reference.py").write_text(
        REFERENCE.replace("return x, torch.empty_like(x)", written)
    )
    shown = kt("tasks", "group/shifted", "--suite", f"gpumode:{checkout}", "--json")
    (task,) = json.loads(shown.out)["tasks"]
    assert said in task["unrefereeable"]


def test_a_folder_without_problems_gets_one_line(kt, tmp_path):
    ran = kt("tasks", "--suite", f"gpumode:{tmp_path}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no folder there has a task.yml; name a checkout of reference-kernels" in ran.err
