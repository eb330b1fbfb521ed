"""Kernels judged in pytest: what a user's tests say of right and of wrong ones."""

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("warm_servers")]

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "pytest.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KERNELS = """
import pytest
from pathlib import Path

def relu(x):
    return x.clamp(min=0)

def clipped(x):
    return x.clamp(min=0.5)
"""
MARKED = "@pytest.mark.kernel(task='relu', device='cpu', cases=4)\n"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on the text of a file of tests; its plugin comes by the entry point."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^\[project\.entry-points\.pytest11\]\n(.*)$", project, re.MULTILINE)
    found = pytester.path / "installed" / "kerneltruth_here-1.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: kerneltruth-here\nVersion: 1\n")
    (found / "entry_points.txt").write_text(f"[pytest11]\n{entry.replace(chr(34), '')}\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{found.parent}")

    def run(text, *options, alone=False):
        pytester.makepyfile(test_kernels=KERNELS + text)
        given = ("-p", "no:cacheprovider", *options)
        # In this process the server is warm already.
        ran = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        return ran(*given)

    return run


def said_of(result):
    """The lines of the section on failures."""
    lines = result.outlines
    start = next(n for n, line in enumerate(lines) if " FAILURES " in line)
    return lines[start + 1 : next(n for n, line in enumerate(lines) if " short test" in line)]


@pytest.mark.slow
def test_a_returned_kernel_is_judged_and_a_failure_is_its_finding(run):
    result = run(
        f"{MARKED}def test_right():\n    return relu\n"
        f"{MARKED}def test_wrong():\n    return clipped\n"
    )

    result.assert_outcomes(passed=1, failed=1)
    said = said_of(result)
    assert said[1] == "clipped: fail (value) for relu, torch-only"
    assert any("smallest: M=1 N=1 float32 zeros" in line for line in said)
    assert len(said) < 12
    assert not any(line.startswith((">", "E ")) or ".py:" in line for line in said)
    result.stdout.fnmatch_lines(["FAILED test_kernels.py::test_wrong - *clipped: fail (value)*"])


@pytest.mark.slow
def test_the_fixture_judges_with_the_options_of_the_closest_mark(run):
    result = run(
        "pytestmark = pytest.mark.kernel(device='cpu', cases=4, seed=1)\n"
        "@pytest.mark.kernel(seed=3)\n"
        "@pytest.mark.parametrize('kernel', [relu, clipped])\n"
        "def test_relu(judge, kernel):\n"
        "    report = judge.check(kernel, task='relu')\n"
        "    assert (report.cases <= 4, report.seed) == (True, 3)\n"
        "    judge(kernel, task='relu')\n"
        "def test_unmarked_itself():\n"
        "    pass\n"
    )

    result.assert_outcomes(passed=2, failed=1)
    said = said_of(result)
    assert ">       judge(kernel, task='relu')" in said
    assert "E       kerneltruth.KernelIncorrect: clipped: fail (value) for relu, torch-only" in said
    assert [line for line in said if re.match(r"\S+\.py:\d+", line)] == [
        "test_kernels.py:15: KernelIncorrect"
    ]


@pytest.mark.slow
def test_paths_begin_beside_the_test_and_texts_are_judged(run, pytester):
    (pytester.path / "mine.py").write_text("def f(x):\n    return x.clamp(min=0)\n")
    (pytester.path / "ref.py").write_text(
        "import torch\ndef relu(x):\n    return torch.relu(x)\ndef inputs():\n"
        "    return (torch.randn(4, 8),)\n"
    )
    (pytester.path / "elsewhere").mkdir()
    result = run(
        "@pytest.mark.kernel(reference='ref.py', device='cpu', cases=3)\n"
        "def test_path():\n    return 'mine.py'\n"
        f"{MARKED}def test_text():\n    return 'def relu(x): return x.clamp(min=0)'\n",
        f"--rootdir={pytester.path / 'elsewhere'}",
    )

    result.assert_outcomes(passed=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{MARKED}def test():\n    relu\n", "test has the mark kernel and judges none: return"),
        ("@pytest.mark.kernel(task='rleu', device='cpu')\ndef test():\n    return relu\n", "rleu"),
        (
            "@pytest.mark.kernel(taks='relu')\ndef test():\n    return relu\n",
            "mark kernel: no option 'taks'; the options are device, task",
        ),
        (
            "@pytest.mark.kernel('relu')\ndef test():\n    return relu\n",
            "mark kernel: 'relu' has no name; write task='relu'",
        ),
        (f"{MARKED}def test():\n    return 'none.py'\n", "none.py': No such file"),
        (
            f"import unittest\n{MARKED}class TestRelu(unittest.TestCase):\n"
            "    def test(self):\n        return relu\n",
            "test has the mark kernel and is a method of unittest.TestCase",
        ),
        (
            f"{MARKED}def test():\n    def relu(x):\n        return x\n    return relu\n",
            "only a function at the top level",
        ),
        (
            "@pytest.mark.kernel(task='relu', device='cuda:7')\ndef test():\n    return relu\n",
            "device cuda:7: this machine shows",
        ),
    ],
)
def test_a_mistake_is_one_line(run, text, said):
    result = run(text)

    result.assert_outcomes(failed=1)
    shown = said_of(result)
    assert said in shown[1]
    assert len([line for line in shown if line]) == 2


@pytest.mark.slow
def test_a_mistake_in_a_call_of_the_fixture_shows_the_call_and_one_line(run):
    result = run("def test(judge):\n    judge(relu, task='rleu', device='cpu')\n")

    errors = [line for line in said_of(result) if line.startswith("E ")]
    assert len(errors) == 1
    assert "unknown task 'rleu'" in errors[0]


@pytest.mark.parametrize("option", ["--kt-cases=0", "--kt-cases=few", "--kt-seed=-1"])
def test_a_bad_option_is_one_line(run, option):
    result = run("", option)

    name, _, value = option.partition("=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        f"ERROR: {name} {value}: must be a whole number, at least {'01'['cases' in name]}"
    ]


@pytest.mark.slow
def test_options_of_the_command_win_over_marks(run):
    result = run(
        "@pytest.mark.kernel(task='relu', device='cpu', cases=9, seed=1)\n"
        "def test(judge):\n"
        "    report = judge(relu)\n"
        "    assert (report.cases, report.seed) == (4, 7)\n",
        *("--kt-cases", "4", "--kt-seed", "7"),
    )

    result.assert_outcomes(passed=1)


# A judge in place of one that starts a server, which would not change the seed that it is given.
SAYS_ITS_SEED = """
from types import SimpleNamespace
import kerneltruth.library.judge

class Judge:
    usable = True

    def __init__(self, *, seed, **options):
        self.seed = seed

    def check(self, candidate, **options):
        return SimpleNamespace(seed=self.seed)

    def close(self):
        pass

kerneltruth.library.judge.Judge = Judge
"""


@pytest.mark.slow
def test_processes_of_xdist_share_a_seed(run, pytester):
    pytester.makeconftest(SAYS_ITS_SEED)
    result = run(
        "@pytest.mark.kernel(task='relu', device='cpu', cases=2)\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test(judge, number, worker_id):\n"
        "    Path(__file__).with_name(f'{worker_id}-{number}').write_text(\n"
        "        str(judge.check(relu).seed)\n"
        "    )\n",
        *("-n", "2"),
        alone=True,
    )

    result.assert_outcomes(passed=4)
    written = list(pytester.path.glob("gw*-*"))
    assert {path.name[:3] for path in written} == {"gw0", "gw1"}
    assert len({path.read_text() for path in written}) == 1


@pytest.mark.slow
def test_what_this_machine_cannot_run_is_skipped_with_the_reason(run):
    result = run(
        f"{MARKED}def test():\n"
        "    return '''\n"
        "from torch.utils.cpp_extension import load_inline\n"
        "m = load_inline('m', '', cuda_sources='__global__ void k() {}', functions=[])\n"
        "def relu(x): return m.f(x)\n"
        "'''\n",
        "-rs",
    )

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*<source>: *"])


@pytest.mark.slow
def test_pytest_starts_without_torch_and_without_the_library(run):
    result = run(
        "import sys\n"
        "def test():\n"
        "    assert 'kerneltruth.library.pytest_plugin' in sys.modules\n"
        "    assert not {'torch', 'msgspec', 'kerneltruth.library.judge'} & {*sys.modules}\n",
        alone=True,
    )

    result.assert_outcomes(passed=1)


def test_the_guide_shows_what_a_failure_says(run):
    (shown,) = (text for kind, text in FENCE.findall(GUIDE.read_text()) if kind != "python")
    result = run(f"{MARKED}def test():\n    return clipped\n", "--kt-seed=3")

    assert shown in "\n".join(said_of(result)) + "\n"


@pytest.mark.slow
def test_the_example_of_the_guide_runs(run, pytester):
    (example,) = (text for kind, text in FENCE.findall(GUIDE.read_text()) if kind == "python")
    (pytester.path / "softmax.py").write_text(
        "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
    )
    run(example, "--kt-cases", "4").assert_outcomes(passed=3)
