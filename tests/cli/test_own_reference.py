"""A reference of a user's own and no declaration: `--reference FILE`."""

import ast
import json
import subprocess
import sys

import pytest

REFERENCE = '''
import torch


def row_rms(x, scale, eps):
    """The root mean square of each row, scaled."""
    return (x.float().square().mean(-1) + eps).sqrt().to(x.dtype) * scale


def inputs():
    rows, columns = 8, 96
    return torch.randn(rows, columns), torch.rand(rows), 1e-6
'''
RIGHT = """
import torch


def _wide(x):
    return x.float()


def any_name(x, scale, eps):
    return (_wide(x).square().mean(-1) + eps).sqrt().to(x.dtype) * scale
"""
WRONG = RIGHT.replace("mean(-1)", "sum(-1) / 96")
ON_CPU = ("--device", "cpu")
# What decides is tried within these.
FEW = ("--cases", 16, *ON_CPU)


@pytest.fixture
def reference(tmp_path):
    """Write a reference file with a text, and return its path."""

    def write(text=REFERENCE):
        path = tmp_path / "my_rms.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="module")
def _finding_files(kt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    path, kernel = folder / "my_rms.py", folder / "kernel.py"
    path.write_text(REFERENCE)
    kernel.write_text(WRONG)
    given = ("--reference", path, "--cases", 8, "--out", folder / "run", *ON_CPU)
    ran = kt("check", kernel, *given)
    assert ran.code == 1, ran.err
    return path, folder / "run"


@pytest.fixture
def finding_run(_finding_files):
    """A run with a finding of a wrong kernel, and the file of its reference as it was."""
    path, run = _finding_files
    path.write_text(REFERENCE)
    return run


@pytest.mark.slow
def test_a_kernel_of_any_name_is_judged_by_a_reference_file(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(), "--cases", 12, "--out", tmp_path / "run", "--json")
    document = json.loads(kt("check", candidate(RIGHT), *given, *ON_CPU).out)
    assert (document["task"], document["verdict"]) == ("reference/row_rms", "pass")


def test_a_kernel_for_the_example_sizes_alone_breaks_shapes(finding_run):
    (finding,) = (finding_run / "findings").glob("*.json")
    assert json.loads(finding.read_text())["obligations"] == ["shapes"]


@pytest.mark.slow
def test_a_finding_replays_by_the_reference_that_it_was_judged_by(kt, finding_run):
    ran = kt("replay", finding_run, *ON_CPU)
    assert (ran.code, "1 of 1 reproduced" in ran.out) == (0, True)


@pytest.mark.slow
def test_a_finding_whose_reference_changed_says_so(kt, finding_run):
    (finding_run.parent / "my_rms.py").write_text(REFERENCE.replace("1e-6", "1e-5"))
    ran = kt("replay", finding_run, *ON_CPU)
    assert ran.code == 2
    assert "my_rms.py is not the file that reference/row_rms was judged by" in ran.err


@pytest.mark.slow
def test_a_finding_replays_where_the_reference_is_not(kt, finding_run):
    (finding_run.parent / "my_rms.py").unlink()
    ran = kt("replay", finding_run, *ON_CPU)
    assert (ran.code, "1 of 1 reproduced" in ran.out) == (0, True)


def test_a_file_with_several_public_functions_needs_an_entry(kt, reference, candidate, tmp_path):
    source = RIGHT.replace("_wide", "wide")
    refused = kt("check", candidate(source), "--reference", reference(), *ON_CPU)
    assert refused.code == 2
    assert "several public functions: wide, any_name; pass --entry NAME" in refused.err
    given = ("--entry", "any_name", "--cases", 4, "--out", tmp_path / "run", *ON_CPU)
    assert kt("check", candidate(source), "--reference", reference(), *given).code == 0


def test_an_entry_that_a_file_lacks_is_refused(kt, reference, candidate):
    ran = kt("check", candidate(RIGHT), "--reference", reference(), "--entry", "other", *ON_CPU)
    assert ran.code == 2
    assert "has no entry for 'other': it defines _wide, any_name" in ran.err


RETURNED = "return torch.randn(rows, columns), torch.rand(rows), 1e-6"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((".sqrt()", ".sqroot()"), "row_rms() raises AttributeError at line 7"),
        ((".sqrt()", ".sqrt() * torch.rand(1)"), "row_rms() draws at random"),
        (("return (x", "return None; (x"), "row_rms() returns no tensor"),
        (("* scale", "* scale, len(x)"), "row_rms() returns int beside a tensor"),
        (("return (x", "x.zero_(); return (x"), "row_rms() changes argument 1"),
        (("def inputs", "def _inputs"), "it has no function inputs()"),
        (("def inputs()", "def inputs(n)"), "inputs() needs 'n'; give each of its parameters a"),
        (("def inputs", "def other(): pass\n\n\ndef inputs"), "several public functions"),
        (("import torch", "import torch as"), "my_rms.py:2: "),
        ((RETURNED, "pass"), "inputs() returns nothing"),
        ((RETURNED, "return {}"), "inputs() returns a dict"),
        ((RETURNED, "return {}, 2"), "inputs() returns a dict as argument 1"),
        ((RETURNED, RETURNED + ", torch.rand(4).to(torch.float8_e5m2)"), "a tensor of float8_e5m2"),
        ((RETURNED, RETURNED + ", torch.ones(4) * 1j"), "a tensor of complex64 as argument 4"),
        ((RETURNED, RETURNED + ", torch.ones(4).to_sparse()"), "a tensor of sparse_coo as arg"),
        ((RETURNED, "raise OSError('no data')"), "inputs() raises OSError at line 12: no data"),
        (("import torch", "import torch_not_there"), "'torch_not_there'; a reference is one file"),
        ((RETURNED, RETURNED + ", torch.ones(0)"), "a tensor without elements as argument 4"),
        ((RETURNED, RETURNED + ", [torch.ones(4), 2]"), "tensors and others in one list"),
        (("return (x", "return x[:0]; (x"), "row_rms() returns no elements"),
        (("return (x", "return x / 0 * 0; (x"), "row_rms() returns no finite number"),
        (("return (x", "return scale * 0; (x"), "constant is right; let inputs() give values that"),
        (("def row_rms(", "class row_rms:\n  def __call__("), "a class is none: row_rms; write"),
    ],
)
def test_a_file_that_is_no_reference_is_one_line(kt, reference, candidate, change, said):
    ran = kt("check", candidate(RIGHT), "--reference", reference(REFERENCE.replace(*change)))
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert said in ran.err


@pytest.mark.parametrize("end", ["import os; os._exit(3)", "raise SystemExit(2)"])
def test_a_reference_that_ends_its_process_says_what_to_do(kt, reference, candidate, end):
    path = reference(REFERENCE.replace("    return (x", f"    {end}\n    return (x"))
    ran = kt("check", candidate(RIGHT), "--reference", path, *ON_CPU)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert "; correct it, so that it returns on what its own inputs() gives" in ran.err


@pytest.mark.parametrize("parameters", ["x", "x, scale, eps, more"])
def test_a_kernel_whose_arguments_do_not_fit_is_one_line(kt, reference, candidate, parameters):
    source = RIGHT.replace("x, scale, eps):", f"{parameters}):")
    ran = kt("check", candidate(source), "--reference", reference(), *ON_CPU)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    said = f"any_name({parameters}) does not fit the arguments x, scale, eps of the reference"
    assert said in ran.err


def test_what_was_learned_is_told_in_one_line(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(), "--cases", 4, "--out", tmp_path / "run", *ON_CPU)
    ran = kt("check", candidate(RIGHT), *given)
    said = "learned row_rms(x[rows, columns], scale[rows], eps=1e-06) in float32"
    assert said in ran.err
    assert "leaves out" not in ran.err


def test_a_parameter_that_keeps_its_default_is_told(kt, reference, candidate, tmp_path):
    source = REFERENCE.replace("scale, eps)", "scale, eps=1e-6)").replace(", 1e-6\n", "\n")
    given = ("--reference", reference(source), "--cases", 2, "--out", tmp_path / "run", *ON_CPU)
    ran = kt("check", candidate(RIGHT.replace("eps):", "eps=1e-6):")), *given)
    assert "in float32, also float16, bfloat16; inputs() leaves out eps, which does not" in ran.err


def test_what_was_learned_is_written_out_as_a_declaration(kt, reference, candidate, tmp_path):
    written = tmp_path / "my_tasks.py"
    ran = kt("tasks", "--from", reference(), "-o", written)
    assert (ran.code, ran.out) == (0, "")
    given = ("--tasks", written, "--cases", 8, "--out", tmp_path / "run", "--json", *ON_CPU)
    document = json.loads(kt("check", candidate(RIGHT), *given).out)
    assert (document["task"], document["verdict"]) == ("my_tasks/row_rms", "pass")


@pytest.mark.slow
def test_a_declaration_imports_what_it_needs_and_no_more(kt, reference, tmp_path):
    head = "from __future__ import annotations\nimport math\nfrom os import path\n"
    source = REFERENCE.replace("def inputs():\n", "def inputs():\n    math.pi, path\n")
    ran = kt("tasks", "--from", reference(head + source))
    assert ran.code == 0, ran.err
    tree = ast.parse(ran.out)
    imports = [ast.unparse(s) for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    assert imports == ["from __future__ import annotations", "import kerneltruth as kt"]
    compile(ran.out, "my_tasks.py", "exec")


@pytest.mark.slow
def test_a_declaration_says_what_its_reference_states(kt, reference, candidate, tmp_path):
    stated = "tolerance = (0.5, 0.25)\nbackward = True\n"
    ran = kt("tasks", "--from", reference(REFERENCE + stated))
    assert "backward=True" in ran.out
    assert '"float16": 0.25' in ran.out
    assert "# A relative error of 0.5 was admitted too" in ran.out


def test_a_declaration_is_printed_as_json(kt, reference, tmp_path):
    written = tmp_path / "my_tasks.py"
    ran = kt("tasks", "--from", reference(), "--json", "-o", written)
    document = json.loads(ran.out)
    assert document["declaration"] == written.read_text()
    assert [task["name"] for task in document["tasks"]] == ["row_rms"]


def test_a_declaration_keeps_a_dtype_and_says_what_it_cannot_keep(kt, reference):
    path = reference(REFERENCE.replace("torch.rand(rows)", "torch.rand(rows).double()"))
    path.write_text(path.read_text().replace("(rows, columns)", "(columns, rows).t()"))
    written = kt("tasks", "--from", path).out
    assert "scale[rows]: float64" in written
    assert "# x was transposed in memory: a declared one is not." in written
    assert 'scaled."' in written


def test_a_declaration_replaces_no_file(kt, reference):
    path = reference()
    ran = kt("tasks", "--from", path, "-o", path)
    assert (ran.code, path.read_text()) == (2, REFERENCE)


@pytest.mark.slow
def test_the_reference_is_the_eager_baseline(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(), "--against", "eager", "--budget", 0, "--json", *ON_CPU)
    document = json.loads(kt("time", candidate(RIGHT), *given).out)
    assert [[*shape["baselines"]] for shape in document["shapes"]] == [["eager"], ["eager"]]


@pytest.mark.slow
def test_a_minimized_finding_has_a_script_with_the_kernel(kt, finding_run, tmp_path):
    (finding,) = (finding_run / "findings").glob("*.json")
    script = tmp_path / "shown.py"
    ran = kt("minimize", finding, "--script", script, *ON_CPU)
    assert ran.code == 0
    text = script.read_text()
    assert "def any_name(x, scale, eps)" in text
    assert "def row_rms(x, scale, eps)" in text


MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(16, 96)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_a_reference_in_kernelbenchs_form_has_no_declaration(kt, reference):
    ran = kt("tasks", "--from", reference(MODEL))
    assert ran.code == 2
    assert "it has KernelBench's form, which a declaration cannot express" in ran.err


def test_a_file_in_kernelbenchs_form_is_a_reference(kt, reference, candidate, tmp_path):
    source = MODEL.split("def get_inputs")[0].replace("class Model", "class ModelNew")
    given = ("--reference", reference(MODEL), "--cases", 6, "--out", tmp_path / "run", "--json")
    document = json.loads(kt("check", candidate(source), *given, *ON_CPU).out)
    assert (document["task"], document["verdict"]) == ("reference/my_rms", "pass")


LAYER = """
import torch


class Model(torch.nn.Module):
    def __init__(self, columns, wide, share):
        super().__init__()
        self.layer = torch.nn.Linear(columns, wide)
        self.share = share

    def forward(self, x):
        return torch.relu(self.layer(x)) * self.share


rows, columns, wide = 8, 96, 48


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return [columns, wide, 0.5]
"""
# As models write one: beside the model and what makes its inputs.
IN_PLACE_OF_A_MODEL = (
    LAYER
    + """

def kernel_function(rows, w, b, share=2.0):
    return torch.relu(rows @ w.t() + b) * share
"""
)


def test_a_function_may_stand_for_a_model(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(LAYER), "--out", tmp_path / "run", "--json", *FEW)
    document = json.loads(kt("check", candidate(IN_PLACE_OF_A_MODEL), *given).out)
    assert document["verdict"] == "pass"


@pytest.mark.slow
def test_the_script_of_a_function_for_a_model_calls_it_alike(kt, reference, candidate, tmp_path):
    wrong = IN_PLACE_OF_A_MODEL.replace("rows @ w.t() + b", "rows @ w.t() + b[:1]")
    given = ("--reference", reference(LAYER), "--out", tmp_path / "run", "--json", *FEW)
    document = json.loads(kt("check", candidate(wrong), *given).out)
    assert document["verdict"] == "fail"
    script = tmp_path / "shown.py"
    assert kt("minimize", document["finding"], "--script", script, *ON_CPU).code == 0
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.stdout.endswith("\nWRONG\n"), ran


BACKWARD = """
import torch

backward = True


def gated(x, y):
    return torch.sigmoid(x.float()).to(x.dtype) * y


def inputs():
    rows, columns = 8, 48
    return torch.randn(rows, columns), torch.randn(rows, columns)
"""
GRADIENT = """
import torch


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        gate = torch.sigmoid(x.float())
        ctx.save_for_backward(gate, y)
        return (gate * y.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        gate, y = ctx.saved_tensors
        own = grad.float() * y.float() * gate * (1 - gate)
        return own.to(y.dtype), (grad.float() * gate).to(y.dtype)


def fused(x, y):
    return _Gated.apply(x, y)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stated", ["", "tolerance = (1e-2, 1e-3)\n"])
@pytest.mark.parametrize(
    ("source", "broken"), [(GRADIENT, []), (GRADIENT.replace(" * (1 - gate)", ""), ["gradients"])]
)
def test_a_reference_that_is_differentiable_asks_for_gradients(
    kt, reference, candidate, tmp_path, stated, source, broken
):
    path = reference(stated + BACKWARD)
    given = ("--reference", path, "--out", tmp_path / "run", "--json", *FEW)
    document = json.loads(kt("check", candidate(source), *given).out)
    profile = document["profile"]
    assert document["verdict"] == ("fail" if broken else "pass")
    assert profile["gradients"]["status"] == ("broken" if broken else "held")
    decisive = [n for n, p in profile.items() if p["decisive"] and p["status"] == "broken"]
    assert decisive == broken


@pytest.mark.slow
@pytest.mark.parametrize(("stated", "verdict"), [("", "fail"), ("tolerance = (0.02, 0)", "pass")])
def test_a_tolerance_of_the_reference_is_admitted(
    kt, reference, candidate, tmp_path, stated, verdict
):
    source = RIGHT.replace("* scale", "* scale * 1.01")
    path = reference(REFERENCE.replace("import torch", f"import torch\n\n{stated}"))
    given = ("--reference", path, "--cases", 12, "--out", tmp_path / "run", "--json", *ON_CPU)
    assert json.loads(kt("check", candidate(source), *given).out)["verdict"] == verdict


def test_a_tolerance_that_means_nothing_is_one_line(kt, reference, candidate):
    path = reference(REFERENCE.replace("import torch", "import torch\n\ntolerance = 0.02"))
    ran = kt("check", candidate(RIGHT), "--reference", path)
    assert ran.code == 2
    assert "my_rms.py:4: tolerance = 0.02: give a relative and an absolute error" in ran.err


@pytest.mark.slow
def test_many_kernels_are_judged_by_a_reference(kt, reference, tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir()
    for name, source in (("one", RIGHT), ("two", WRONG)):
        (folder / f"{name}.py").write_text(source)
    given = ("--reference", reference(), "--candidates", folder, "--out", tmp_path / "run")
    ran = kt("run", *given, "--workers", 1, "--stage", "exe", "--cases", 8, "--json", *ON_CPU)
    assert ran.code == 0, ran.err
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    ended = {line["origin"]: line["stages"]["exe"]["outcome"] for line in map(json.loads, lines)}
    assert ended == {"one.py": "pass", "two.py": "fail"}


@pytest.mark.slow
def test_a_reference_is_never_called_wrong_itself(kt, reference):
    ran = kt("audit", "--reference", reference(), *ON_CPU)
    assert (ran.code, "1 of 1 tasks hold" in ran.out) == (0, True)


FIXED = """
import torch


def reference(x, places):
    return torch.tanh(x)[places % 6]


def get_inputs():
    return torch.tensor([-1.0, 0.2, 0.5, 2.0, 3.0, 4.0]), torch.tensor([5, 3])
"""
TANH = "def kernel(x, places):\n    return x.tanh()[places % 6]\n"


@pytest.mark.slow
def test_a_reference_without_sizes_is_judged_at_its_own(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(FIXED), "--out", tmp_path / "run", "--json", *FEW)
    document = json.loads(kt("check", candidate(TANH), *given).out)
    assert (document["task"], document["verdict"]) == ("reference/my_rms", "pass")
    assert document["profile"]["shapes"]["status"] == "not_applicable"


DRAWN = """
import numpy as np
import torch


def taken(x, places):
    return x[places] * 2


def inputs():
    rows = 64
    places = np.random.randint(rows - 1, rows, size=5)
    return torch.randn(rows, 8), torch.from_numpy(places)
"""
TAKEN = "def kernel(x, places):\n    return x.index_select(0, places) * 2\n"


@pytest.mark.slow
def test_integers_stay_within_what_each_size_has(kt, reference, candidate, tmp_path):
    given = ("--reference", reference(DRAWN), "--out", tmp_path / "run", "--json", *ON_CPU)
    assert json.loads(kt("check", candidate(TAKEN), *given).out)["verdict"] == "pass"


ROTARY = """
import torch

def rotary(q, cos, sin):
    half = q.shape[-1] // 2
    turned = torch.cat((-q[..., half:], q[..., :half]), -1)
    return (q * cos + turned * sin).to(q.dtype)

def inputs():
    rows, half = 12, 16
    angles = torch.rand(rows, half).repeat(1, 2)
    return torch.randn(rows, 2 * half, dtype=torch.float16), angles.cos(), angles.sin()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "verdict"), [("c[:, :half]", "pass"), ("c[:, half:] * 1.01", "fail")]
)
def test_a_kernel_may_rely_on_halves_that_repeat_in_the_example(
    kt, candidate, tmp_path, second, verdict
):
    path = tmp_path / "rotary.py"
    path.write_text(ROTARY)
    kernel = f"""
import torch

def mine(q, c, s):
    half = q.shape[-1] // 2
    a, b = q[:, :half].float(), q[:, half:].float()
    s = s[:, :half]
    return torch.cat((a * c[:, :half] - b * s, b * {second} + a * s), -1).to(q.dtype)
"""
    ran = kt("check", candidate(kernel), "--reference", path, "--cases", 24, "--json")
    document = json.loads(ran.out)
    assert document["verdict"] == verdict, document["detail"]
    assert document["profile"]["values"]["cases"] > 2 or verdict == "fail"


TWO_WEIGHTS = """
import torch

def blend(x, weight):
    return weight[0] * x + weight[1] * x.square()

def inputs():
    rows = 12
    return torch.randn(rows, 16), torch.randn(2)
"""


@pytest.mark.slow
def test_a_kernel_may_refuse_elements_that_its_reference_never_reads(kt, candidate, tmp_path):
    path = tmp_path / "blend.py"
    path.write_text(TWO_WEIGHTS)
    kernel = "def blend(x, w):\n    assert w.shape == (2,)\n    return w[0] * x + w[1] * x * x\n"
    ran = kt("check", candidate(kernel), "--reference", path, "--cases", 24, "--json")
    document = json.loads(ran.out)
    assert document["verdict"] == "pass", document["detail"]
    assert document["profile"]["shapes"]["cases"] > 4
