"""What is recorded of launches, and which configuration autotuned kernels take."""

import pytest
from candidates_for_tests import again, call_once, floats, opened

SCALE = """
@triton.jit
def scale(x, y, n, factor, flag, BLOCK: tl.constexpr, NAME: tl.constexpr = "a"):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * factor, i < n)
"""
TUNED = """
{before}
@triton.autotune([triton.Config({{"BLOCK": 4}}), triton.Config({{"BLOCK": 8}}, num_warps=8),
                  triton.Config({{"BLOCK": 16}})], ["n"]{options})
{after}
@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr{more}):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, {value}, i < n)

def f(x):
    n = x.numel()
    y = torch.{output}_like(x)
    add_one[lambda m: (triton.cdiv(n, m["BLOCK"]),)](x, y, n)
    return y
"""


def tuned(
    options="", before="", after="", more="", value="tl.load(x + i, i < n) + 1", output="empty"
):
    return TUNED.format(
        options=options, before=before, after=after, more=more, value=value, output=output
    )


ADDING = tuned(value="tl.load(y + i, i < n) + tl.load(x + i, i < n)", output="zeros")


def launch_of(observation):
    (launch,) = observation.launches
    return launch


def test_a_launch_is_recorded_with_its_constants_and_types(runner):
    body = SCALE + (
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    scale[(1,)](x, y, x.numel(), 0.5, True, BLOCK=4)\n"
        "    return y\n"
    )
    launch = launch_of(call_once(runner, body, 1.0, 2.0))
    assert (launch.kernel, launch.grid, launch.configs) == ("scale", (1,), 1)
    assert launch.constants == {"BLOCK": 4, "NAME": "a"}
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "factor": "fp32", "flag": "i1"}
    assert launch.signature == types


@pytest.mark.parametrize(
    "call", ["scale(x, y, x.numel(), 0.5, True, 4)", "unused(x)", "tl.cdiv(x.numel(), 4)"]
)
def test_a_kernel_that_is_called_without_a_grid_raises_as_the_compilers_does(runner, call):
    body = SCALE + f"def f(x):\n    y = torch.zeros_like(x)\n    {call}\n    return y\n"
    observation = call_once(runner, body, 1.0, 2.0)
    assert (observation.ended, observation.error) == ("raised", "RuntimeError")
    assert observation.message == "Cannot call @triton.jit'd outside of the scope of a kernel"


def test_equal_launches_are_recorded_once(runner):
    body = SCALE + (
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    for _ in range(3):\n"
        "        scale[(1,)](x, y, x.numel(), 0.5, True, BLOCK=4)\n"
        "    return y\n"
    )
    assert len(call_once(runner, body, 1.0).launches) == 1


def test_launches_of_an_earlier_call_are_forgotten(runner):
    with opened(runner, tuned()) as session:
        again(session, *[1.0] * 4, config=0)
        assert launch_of(again(session, *[1.0] * 4, config=1)).constants == {"BLOCK": 8}


def test_integers_beyond_32_bits_are_recorded_as_such(runner):
    body = SCALE + (
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    scale[(1,)](x, y, 2**40, 0.5, True, BLOCK=1)\n"
        "    return y\n"
    )
    assert launch_of(call_once(runner, body, 1.0)).signature["n"] == "i64"


@pytest.mark.parametrize(("config", "block"), [(0, 4), (1, 8), (2, 16), (3, 4), (7, 8)])
def test_the_judge_chooses_the_configuration(runner, config, block):
    observation = call_once(runner, tuned(), *[1.0] * 20, config=config)
    launch = launch_of(observation)
    assert (launch.constants["BLOCK"], launch.grid) == (block, (-(-20 // block),))
    assert (launch.configs, floats(observation)) == (3, [2.0] * 20)


def test_configurations_are_pruned_before_the_choice(runner):
    prune = ', prune_configs_by={"early_config_prune": lambda configs, named, **meta: configs[1:]}'
    launch = launch_of(call_once(runner, tuned(options=prune), 1.0, config=0))
    assert (launch.constants["BLOCK"], launch.configs) == (8, 2)


@pytest.mark.parametrize("place", ["before", "after"])
def test_heuristics_work_on_either_side_of_autotune(runner, place):
    decorator = '@triton.heuristics({"EVEN": lambda args: args["n"] % 4 == 0})'
    text = tuned(more=", EVEN: tl.constexpr", **{place: decorator})
    assert launch_of(call_once(runner, text, *[1.0] * 8)).constants == {"BLOCK": 4, "EVEN": True}


def test_a_configuration_hook_runs_before_the_launch(runner):
    text = tuned().replace(
        'triton.Config({"BLOCK": 16})',
        'triton.Config({"BLOCK": 16}, pre_hook=lambda args: args["x"].fill_(4))',
    )
    assert floats(call_once(runner, text, 1.0, 1.0, config=2)) == [5.0, 5.0]


def test_the_first_configuration_runs_as_on_a_first_call_after_a_benchmark(runner):
    assert floats(call_once(runner, ADDING, 1.0, 2.0, config=0)) == [2.0, 4.0]


def test_other_configurations_run_as_on_later_calls(runner):
    assert floats(call_once(runner, ADDING, 1.0, 2.0, config=1)) == [1.0, 2.0]


@pytest.mark.parametrize("option", ["reset_to_zero", "restore_value"])
def test_a_kernel_that_cleans_up_after_a_benchmark_is_right_in_each(runner, option):
    text = ADDING.replace('["n"])', f'["n"], {option}=["y"])')
    results = [floats(call_once(runner, text, 1.0, 2.0, config=c)) for c in (0, 1)]
    assert results == [[1.0, 2.0], [1.0, 2.0]]


def test_a_result_that_needs_reset_to_zero_is_wrong_on_later_calls(runner):
    text = ADDING.replace('["n"])', '["n"], reset_to_zero=["y"])').replace("zeros_", "ones_")
    results = [floats(call_once(runner, text, 1.0, 2.0, config=c)) for c in (0, 1)]
    assert results == [[1.0, 2.0], [2.0, 3.0]]


def test_a_symbol_given_twice_is_refused_as_triton_does(runner):
    text = tuned().replace("(x, y, n)\n", "(x, y, n, BLOCK=4)\n")
    observation = call_once(runner, text, 1.0)
    assert (observation.ended, observation.error) == ("raised", "ValueError")


def test_a_warmed_up_kernel_answers_and_launches(runner):
    body = SCALE + (
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    args = (x, y, x.numel(), 3.0, True)\n"
        "    kernel = scale.warmup(*args, BLOCK=4, grid=(1,))\n"
        "    kernel._init_handles()\n"
        "    assert 65536 // kernel.n_regs and 65536 // kernel.metadata.shared\n"
        "    kernel[(1, 1, 1)](*args, 4)\n"
        "    return y\n"
    )
    assert floats(call_once(runner, body, 1.0, 2.0)) == [3.0, 6.0]


def test_a_grid_that_no_gpu_accepts_is_refused(runner):
    body = SCALE + (
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    scale[(1, 65536)](x, y, x.numel(), 0.5, True, BLOCK=4)\n"
        "    return y\n"
    )
    observation = call_once(runner, body, 1.0)
    assert (observation.ended, observation.error) == ("raised", "RuntimeError")


def test_a_kernel_passes_for_a_compiled_one_with_its_parameters(runner):
    body = SCALE + (
        "class Entry:\n"
        "    def __init__(self, wrapped):\n"
        "        self.fn = wrapped\n"
        "        while not isinstance(wrapped, triton.runtime.JITFunction):\n"
        "            wrapped = wrapped.fn\n"
        "        self.constants = [p.name for p in wrapped.params if p.is_constexpr]\n"
        "        assert wrapped.__globals__ is globals()\n"
        "        assert wrapped.signature.parameters['NAME'].default == 'a'\n"
        "        assert not hasattr(wrapped, 'no_such_attribute')\n"
        "entry = Entry(triton.heuristics({'flag': lambda a: True})(scale))\n"
        "def f(x):\n"
        "    y = torch.empty_like(x)\n"
        "    entry.fn[(1,)](x, y, x.numel(), factor=len(entry.constants), BLOCK=4)\n"
        "    return y\n"
    )
    assert floats(call_once(runner, body, 1.0, 2.0)) == [2.0, 4.0]


def test_a_kernel_takes_any_object_with_an_address_and_a_dtype(runner):
    body = SCALE + (
        "class Buffer:\n"
        "    def __init__(self, base, offset):\n"
        "        self.base, self.dtype, self.device = base, base.dtype, base.device\n"
        "        self.address = base.data_ptr() + offset * base.element_size()\n"
        "    def data_ptr(self):\n"
        "        return self.address\n"
        "def f(x):\n"
        "    y = torch.zeros_like(x)\n"
        "    scale[(1,)](Buffer(x, 1), Buffer(y, 0), 1, 0.5, True, BLOCK=4)\n"
        "    return y\n"
    )
    assert floats(call_once(runner, body, 1.0, 3.0)) == [1.5, 0.0]
