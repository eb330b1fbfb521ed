"""What is replaced in Triton is there, in every version; what is not says so and harms no GPU."""

import importlib.metadata
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import kerneltruth
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.interpreter import UnsupportedError, versions

HERE = Path(__file__).parent
SOURCE = str(Path(kerneltruth.__file__).parents[1])
CORPUS = Path(kerneltruth.__file__).parent / "corpus"


def python(*command, path=(), **environment):
    paths = os.pathsep.join([*map(str, path), SOURCE])
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done


@pytest.fixture(scope="module")
def patches():
    done = python(HERE / "patches_child.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "misfits",
        "unknown",
        "not replaced",
        "kept and not there",
        "kept and replaced",
        "not replaced while interpreting",
        "planned and not there",
        "by identity and not there",
        "not lent",
    ],
)
def test_every_patch_is_in_force(patches, what):
    assert patches[what] == []


@pytest.mark.slow
def test_the_language_is_replaced_while_interpreting(patches):
    names = {
        "range",
        "static_range",
        "reduce",
        "associative_scan",
        "to_ir",
        "__index__",
        "__bool__",
    }
    assert names <= set(patches["replaced while interpreting"])


@pytest.mark.parametrize(
    ("version", "module"),
    [
        ("3.6.0", "triton_3_6"),
        ("3.7.1", "triton_3_6"),
        ("3.8.0", "triton_3_8"),
        ("3.9.0+git1", "triton_3_9"),
        ("3.10.0", "triton_3_9"),
        ("4.0.0", "triton_3_9"),
    ],
)
def test_each_version_has_its_adapter(version, module):
    assert versions.range_of(versions.number(version)) == module


@pytest.mark.parametrize("version", ["3.5.1", "2.1.0", "unknown"])
def test_versions_before_the_window_have_none(version):
    with pytest.raises(UnsupportedError):
        versions.range_of(versions.number(version))


# Each change is made in a process forked from one that has imported Triton.
PROGRAM = """
import json, os, sys
import torch, triton.language
import triton.runtime.interpreter as it
from kerneltruth.runner import interpreter

def outcome(change):
    exec(change)
    interpreter.prepare()
    told = interpreter.refusal()
    if told is None and hasattr(it.InterpreterBuilder, "create_frobnicate"):
        try:
            it.interpreter_builder.create_frobnicate()
        except interpreter.UnsupportedError as error:
            told = str(error)
    return told

found = {}
for name, change in json.loads(sys.argv[1]).items():
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            os.write(theirs, json.dumps(outcome(change)).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        found[name] = json.load(file)
print(json.dumps(found))
"""
NEWER = "import triton; interpreter.LAST_TESTED = (0, 0)"
CHANGES = {
    "its create_load takes other arguments": (
        "it.InterpreterBuilder.create_load = lambda self, ptr, a, b, c, d: 0"
    ),
    "its builder has no create_select": "del it.InterpreterBuilder.create_select",
    "its builder has a create_descriptor_reduce of its own": (
        "it.InterpreterBuilder.create_descriptor_reduce = lambda *_: 0"
    ),
    "it has no _patch_lang_core": "del it._patch_lang_core",
    "no attribute 'TensorDescHandle'": "del it.TensorDescHandle",
    "it has no InterpretedFunction.rewrite": "del it.InterpretedFunction.rewrite",
    "cannot import name": "del it.interpreter_semantic",
    "has no attribute '_sum_combine'": "del triton.language.standard._sum_combine",
    "ModuleNotFoundError": "sys.modules['triton.runtime.interpreter'] = None",
    "it is too old": "triton.__version__ = '3.5.1'",
    "a kernel whose result is known computed": (
        f"{NEWER}; import numpy; from kerneltruth.runner.interpreter import arithmetic; "
        "arithmetic.METHODS['create_fmul'] = arithmetic.METHODS['create_fadd']"
    ),
    "newer than kerneltruth": "it.InterpreterBuilder.create_frobnicate = lambda self: 1",
}


@pytest.fixture(scope="module")
def refusals():
    changes = {**CHANGES, "nothing": "pass", "nothing, but newer": NEWER}
    done = python("-c", PROGRAM, json.dumps(changes), TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_an_interpreter_that_changed_is_refused_with_one_line(refusals, what):
    (line,) = refusals[what].splitlines()
    assert what in line


@pytest.mark.slow
def test_the_line_names_the_versions(refusals):
    line = refusals["its builder has no create_select"]
    installed = importlib.metadata.version("triton")
    assert line.startswith(f"kernels run without a GPU with Triton 3.6 to 3.9, this is {installed}")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["nothing", "nothing, but newer"])
def test_a_version_that_changes_nothing_is_interpreted(refusals, what):
    assert refusals[what] is None


# What a later Triton may be: some of its interpreter is gone, or all, without which Triton itself
# does not load where it is to interpret.
LATER = {
    "create_select": """
import triton.runtime.interpreter as it
del it.InterpreterBuilder.create_select
""",
    "No module named": """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name == "triton.runtime.interpreter":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LATER)
def test_other_candidates_run_whatever_became_of_the_interpreter(tmp_path, monkeypatch, what):
    (tmp_path / "sitecustomize.py").write_text(LATER[what])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    kernel = (CORPUS / "controls" / "relu.py").read_text()
    plain = "import torch, triton\n\n\ndef relu(input):\n    return torch.relu(input)\n"
    with Runner(device="cpu") as runner:
        ended = {}
        for source in (kernel, plain):
            candidate = read_candidate(source, "relu.py", task_names=("relu",))
            with runner.open(candidate) as session:
                ended[candidate.language] = (session.loaded.ended, session.loaded.message)
    assert ended["torch"] == ("returned", None)
    assert ended["triton"][0] == "unsupported"
    (line,) = ended["triton"][1].splitlines()
    assert what in line


@pytest.mark.slow
def test_where_kernels_are_compiled_the_interpreter_is_not_imported():
    program = """
        import sys
        from kerneltruth.runner import zygote
        from kerneltruth.runner.child import launches, serving, worker
        zygote._warm_up((), None)
        launches.install()
        ours = [m for m in sys.modules if m.startswith("kerneltruth.runner.interpreter")]
        print(ours, "triton.runtime.interpreter" in sys.modules)
    """
    done = python("-c", textwrap.dedent(program), TRITON_INTERPRET="0")
    assert done.stdout.strip() == "[] False", done.stderr
