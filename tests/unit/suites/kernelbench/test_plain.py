"""Plain functions as problems: sizes where their inputs are made, and how they are evaluated."""

import ast

import pytest
import torch

from kerneltruth.errors import UserError
from kerneltruth.suites.kernelbench.constants import constants_of_inputs
from kerneltruth.suites.kernelbench.inside.facts import facts, ignores
from kerneltruth.suites.kernelbench.inside.plain import LoadedFunction, example
from kerneltruth.suites.kernelbench.inside.widths import Widening
from kerneltruth.suites.kernelbench.messages import ExampleAnswer, FactsRequest, IgnoresRequest
from kerneltruth.suites.kernelbench.own_reference import read_reference
from kerneltruth.suites.kernelbench.schema_cache import schema_of

LISTS = """
import torch

def scaled(xs, y, eps=1e-6):
    return [x.float() * y.float() + eps for x in xs]

def inputs(rows=4):
    columns, seed = 24, 7
    torch.manual_seed(seed)
    xs = [torch.randn(rows, columns, dtype=torch.float16) for _ in range(3)]
    return xs, torch.randn(columns, dtype=torch.float16), 1e-6
"""


def constants(source, fixed=()):
    return constants_of_inputs(ast.parse(source), "inputs", fixed)


def loaded(source, name="scaled"):
    return LoadedFunction(source, name, "inputs")


def test_names_parameters_and_numbers_in_calls_are_sizes_of_a_plain_function():
    found = constants(LISTS.replace("torch.randn(columns,", "torch.randn(2 * 12,"))
    assert found == {"inputs.columns": 24, "inputs.seed": 7, "inputs.rows": 4}
    assert constants("def inputs():\n    return torch.randn(3, 8)") == {
        "inputs:3": 3,
        "inputs:8": 8,
    }


BOUNDED = """
import torch

def f(x, ids):
    return x[ids]

def inputs():
    return torch.randn(50, 4), torch.randint(0, {}, (8,))
"""


@pytest.mark.parametrize(("bound", "follows"), [(50, True), (2000, False)])
def test_a_bound_of_random_integers_follows_the_size_that_it_equals(bound, follows):
    x, ids = loaded(BOUNDED.format(bound), "f").inputs("{'inputs:50': 3}")
    assert (tuple(x.shape), int(ids.max()) < 3) == ((3, 4), follows)


def test_a_name_that_is_assigned_twice_is_no_size():
    assert constants("def inputs():\n    n = 8\n    n = 9\n    return n") == {}


def test_sizes_are_replaced_where_the_inputs_are_made():
    made = loaded(LISTS).inputs("{'inputs.columns': 5, 'inputs.rows': 2}")
    assert [tuple(v.shape) for v in made[:4]] == [(2, 5), (2, 5), (2, 5), (5,)]


def test_members_of_a_list_have_names_and_come_back_as_a_list():
    problem = loaded(LISTS)
    made = problem.inputs("{}")
    model = problem.build("{}")
    assert problem.names(model, made) == ["xs.0", "xs.1", "xs.2", "y", "eps"]
    assert len(model(*made)) == 3


def test_an_exact_run_keeps_float64_where_the_function_asks_for_less():
    problem = loaded(LISTS)
    given = [v.double() if isinstance(v, torch.Tensor) else v for v in problem.inputs("{}")]
    with problem.evaluating(torch.float64):
        out = problem.build("{}")(*given)
    assert {o.dtype for o in out} == {torch.float64}
    with Widening(torch.float32):
        assert torch.ones(2).half().dtype == torch.float32


def test_rounding_by_chance_leaves_what_the_function_computes_in_float32():
    source = LISTS.replace("x.float() * y.float() + eps", "x.float() * 3")
    problem = loaded(source)
    made = [v.float() if isinstance(v, torch.Tensor) else v for v in problem.inputs("{}")]
    narrow, mode = problem.rounding(made, "float16", 0)
    with mode:
        out = problem.build("{}")(*narrow)
    assert torch.equal(out[0], made[0] * 3)


def test_rounding_by_chance_rounds_what_the_function_computes_in_a_narrow_dtype():
    source = LISTS.replace("x.float() * y.float() + eps", "x * y")
    problem = loaded(source)
    made = [v.float() if isinstance(v, torch.Tensor) else v for v in problem.inputs("{}")]
    drawn = []
    for salt in range(2):
        narrow, mode = problem.rounding(made, "float16", salt)
        with mode:
            drawn.append(problem.build("{}")(*narrow)[0])
    assert {d.dtype for d in drawn} == {torch.float16}
    assert not torch.equal(*drawn)


def learned(source, name="f"):
    request = FactsRequest(constants="{}", dtypes=("float16",))
    return facts(LoadedFunction(source, name, "inputs"), request)


ARRANGED = """
import torch

def f(x, places):
    return x[places % 40]

def inputs():
    return torch.randn(40), {}
"""


@pytest.mark.parametrize(
    ("made", "arranged"),
    [
        ("torch.randperm(40)", True),
        ("torch.tensor([0, 7, 20, 40])", True),
        ("torch.tensor([9, 3, 9, 1])", False),
        ("torch.full((6,), 3)", False),
    ],
)
def test_offsets_and_permutations_are_told_from_draws(made, arranged):
    assert learned(ARRANGED.format(made)).inputs[1].arranged is arranged


@pytest.mark.parametrize(
    ("made", "form"),
    [
        ("torch.tensor([-1.0, 1.0, 1.0]).repeat(10)", "sign"),
        ("torch.ones(30)", None),
        ("torch.zeros(30, 30)", None),
        ("torch.eye(30) * 2", "symmetric"),
        ("torch.randn(8, 30).softmax(-1)", "stochastic"),
        ("torch.randn(8, 30).log_softmax(-1)", "log_stochastic"),
        ("torch.nn.functional.normalize(torch.randn(8, 30), dim=-1)", "normalized"),
        ("torch.randn(8, 15).repeat(1, 2)", "halves"),
        ("torch.randn(8, 15).repeat_interleave(2, -1)", "pairs"),
        ("torch.randn(8, 1).repeat(1, 30)", None),
        ("torch.nn.functional.logsigmoid(torch.randn(8, 30))", "negative"),
        ("-torch.rand(3)", None),
        ("-torch.rand(8, 30).cumsum(-1)", "descending"),
        ("torch.randn(30).sort().values", "ascending"),
        ("torch.randn(3).sort().values", None),
        ("torch.linspace(0, 1, 30)", "ascending"),
        ("torch.arange(240.0).view(8, 30)", None),
        ("torch.rand(8, 1).repeat(1, 30)", None),
        ("torch.rand(8, 30)", None),
        ("torch.randn(8, 30)", None),
    ],
)
def test_one_number_everywhere_is_no_form_of_a_tensor(made, form):
    source = f"import torch\n\ndef f(x):\n    return x * 2\n\ndef inputs():\n    return ({made},)\n"
    assert learned(source).inputs[0].form == form


ONE_BY_ONE = """
import torch

def f(x, weight):
    pairs = torch.nn.functional.max_pool1d(x[None], 2)[0]
    return weight[0] * x + weight[1] * x.square(), pairs

def inputs():
    rows, columns = 4, 12
    return torch.randn(rows, columns), torch.randn(2)
"""


@pytest.mark.parametrize(
    ("constants", "ignored"),
    [
        ("{'inputs:2': 7}", True),
        ("{'inputs.columns': 27}", False),
        ("{'inputs.columns': 27, 'inputs:2': 7}", False),
        ("{'inputs.columns': 5}", False),
    ],
)
def test_a_size_of_which_more_is_never_read_is_told(constants, ignored):
    found = ignores(LoadedFunction(ONE_BY_ONE, "f", "inputs"), IgnoresRequest(constants=constants))
    assert found.ignored is ignored


def test_a_row_that_no_index_happens_to_name_is_not_called_ignored():
    source = (
        "import torch\n\ndef f(ids, table):\n    return table[ids]\n\ndef inputs():\n"
        "    rows = 30\n    return torch.tensor([1, 2, 3]), torch.randn(rows, 4)\n"
    )
    problem = LoadedFunction(source, "f", "inputs")
    assert not ignores(problem, IgnoresRequest(constants="{'inputs.rows': 63}")).ignored


def test_a_number_that_matters_has_another_value():
    source = (
        "import torch\n\ndef f(x, eps, flag, unused):\n    return x + eps if flag else x - eps\n"
    )
    source += "\ndef inputs():\n    return torch.randn(4, 8), 1e-6, True, 2.0\n"
    assert learned(source).numbers == {"eps": "0.01", "flag": "False"}


def test_an_example_that_cannot_be_judged_by_says_why():
    source = LISTS.replace("for x in xs]", "for x in xs if x.add_(1) is not None]")
    assert "scaled() changes argument 1" in example(loaded(source), "{}").trouble


def test_a_reference_in_kernelbenchs_form_says_what_it_lacks(tmp_path):
    path = tmp_path / "norm.py"
    path.write_text("import torch\nclass Model(torch.nn.Module): pass\n")
    with pytest.raises(UserError) as caught:
        read_reference(path)
    assert str(caught.value) == (
        f"{path}: the problem does not define get_inputs and get_init_inputs; "
        "see docs/guides/own-kernels.md"
    )


def test_a_reference_is_read_with_what_it_states(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("tolerance = (1e-2, 0)\nROWS = 8\n" + LISTS)
    problem = read_reference(path)
    assert (problem.name, problem.function.tolerance) == ("scaled", (1e-2, 0))
    assert "ROWS" in problem.constants
    assert "tolerance" not in problem.constants


ON_GPU = """
import torch

DEVICE = torch.device("cuda:0")

def f(x, y):
    linear = torch.nn.Linear(4, 4).to("cuda").to("cuda", torch.float16).float()
    torch.nn.init.ones_(linear.weight), torch.nn.init.ones_(linear.bias)
    y = y.to("cuda", None, True).to(device="cuda", dtype=None, non_blocking=True)
    return linear(x.to("cuda")) + y.cuda() + torch.ones(4, device=x.device)

def inputs():
    return torch.randn(4, device=DEVICE), torch.randn(4).to(DEVICE, torch.float16)
"""


def test_a_file_that_asks_for_a_gpu_is_evaluated_where_its_inputs_are():
    problem = loaded(ON_GPU, "f")
    made = problem.inputs("{}")
    assert example(problem, "{}") == ExampleAnswer()
    assert {v.device.type for v in (*made, problem.build("{}")(*made))} == {"cpu"}
    assert made[1].dtype == torch.float16
    with torch.device("meta"):
        assert problem.inputs("{}")[0].is_meta


def test_a_seeded_generator_keeps_no_shape_from_being_known_without_drawing():
    source = """
import torch

def f(x):
    return x

def inputs():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(4, 2, generator=generator)
"""
    with torch.device("meta"):
        assert loaded(source, "f").inputs("{}")[0].is_meta
    assert torch.equal(loaded(source, "f").inputs("{}")[0], loaded(source, "f").inputs("{}")[0])


HUGE = """
import torch

def scaled(x):
    assert x.numel() < 2**26, "minutes, if it is called at this size"
    return x * 2

def inputs():
    rows, columns = 2**16, 2**13
    return torch.randn(rows, columns)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("computes", "trouble"),
    [("x * 2", None), ("x.mul_(2)", "scaled() changes argument 1")],
)
def test_an_example_that_takes_minutes_is_tried_at_smaller_sizes(
    runner, tmp_path, computes, trouble
):
    path = tmp_path / "scaled.py"
    path.write_text(HUGE.replace("x * 2", computes))
    schema = schema_of(read_reference(path), runner)
    assert trouble in schema.trouble if trouble else schema.trouble is None
    assert trouble or schema.distinct >= 3


NAMED = """
import torch

def f(x, *, alpha, beta=1.0):
    return x * alpha + beta

def inputs():
    return torch.randn(4, 8), 2.0, 3.0
"""


def test_arguments_beyond_the_places_of_a_function_go_to_its_keywords():
    found = learned(NAMED)
    assert found.numbers == {"alpha": "1.0", "beta": "1.5"}
    assert example(loaded(NAMED, "f"), "{}") == ExampleAnswer()


def test_more_arguments_than_a_function_takes_are_refused():
    said = example(loaded(NAMED.replace("3.0", "3.0, 4.0"), "f"), "{}").trouble
    assert "f() raises TypeError" in said


def test_a_function_that_does_not_say_its_parameters_takes_them_in_order():
    source = "import torch\nf = torch.mul\ndef inputs():\n    return torch.ones(3), torch.ones(3)\n"
    assert example(loaded(source, "f"), "{}") == ExampleAnswer()
    problem = loaded(source, "f")
    assert problem.names(problem.build("{}"), problem.inputs("{}")) == ["input_0", "input_1"]


@pytest.mark.parametrize(
    ("made", "layout"),
    [
        ("torch.randn(8, 4)", "contiguous"),
        ("torch.randn(4, 8).t()", "transposed"),
        ("torch.randn(8, 8)[:, ::2]", "strided"),
        ("torch.randn(8, 6)[:, :4]", "row_gaps"),
        ("torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)", "channels_last"),
        ("torch.randn(1, 4).expand(8, 4)", "contiguous"),
    ],
)
def test_an_example_argument_keeps_how_it_lies_in_memory(made, layout):
    source = f"import torch\ndef f(x): return x * 2\ndef inputs(): return ({made},)\n"
    (facts,) = learned(source).inputs
    assert facts.layout == layout
    assert bool(facts.example) is (layout != "contiguous")
