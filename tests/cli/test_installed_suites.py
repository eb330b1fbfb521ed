"""A suite of another package, installed by its entry point."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from kerneltruth.suites.catalog import open_suite

EXAMPLE = Path(__file__).parents[2] / "examples" / "suite"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "suites.md"
PROBLEMS = EXAMPLE / "problems"
SUITE = """
import kerneltruth as kt

class Good(kt.Suite):
    place = ""

    @classmethod
    def open(cls, path, opening):
        return cls()

    def tasks(self):
        yield kt.task("twice(x[M])", dims={"M": "batch"}, reference=lambda x: x * 2)
"""


def install(site, name, points, **modules):
    """Put modules and the metadata of a distribution where Python finds them."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{suite} = {value}" for suite, value in points.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[kerneltruth.suites]", *lines]))
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source)


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    known = {*sys.modules}
    yield folder
    for name in {*sys.modules} - known:
        if (
            getattr(sys.modules[name], "__file__", None)
            and str(folder) in sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.fixture
def example(site):
    """Install the example as its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["kerneltruth.suites"]
    source = (EXAMPLE / "kernel_problems.py").read_text()
    install(site, "kernel_problems", points, kernel_problems=source)
    return f"problems:{PROBLEMS}"


def test_the_example_is_short_and_shown_by_the_guide():
    source = (EXAMPLE / "kernel_problems.py").read_text()
    assert len(source.splitlines()) < 80
    guide = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^```(?:python|toml)\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    files = [source, (PROBLEMS / "center.py").read_text(), (EXAMPLE / "pyproject.toml").read_text()]
    assert len(shown) == len(files)
    for block, file in zip(shown, files, strict=True):
        assert block.strip() in file


def test_its_tasks_are_listed_with_what_they_take(kt, example):
    tasks = json.loads(kt("tasks", "--suite", example, "--json").out)["tasks"]
    assert [(t["key"], t["suite"], t["signature"]) for t in tasks] == [
        ("problems/center", "problems", "center(x[M, N])"),
        ("problems/twice", "problems", "twice(x[M, N])"),
    ]
    assert tasks[0]["dtypes"] == ["float32", "float16", "bfloat16"]


def test_a_kernel_is_judged_and_its_finding_replays(kt, example, candidate, tmp_path):
    wrong = candidate("def center(x):\n    return x - x.mean()\n")
    given = ("--suite", example, "--task", "center", "--out", tmp_path / "run", "--device", "cpu")
    assert kt("check", wrong, *given).code == 1
    assert kt("replay", tmp_path / "run", "--device", "cpu").code == 0


@pytest.mark.slow
def test_its_references_prove_its_tasks_and_are_the_eager_baseline(
    process, environment, example, site, candidate
):
    path = os.pathsep.join([environment["PYTHONPATH"], str(site)])
    given = ("--suite", example, "--device", "cpu", "--json")
    ran = process("audit", *given, "--cases", 6, env={"PYTHONPATH": path})
    assert json.loads(ran.out)["summary"]["hold"] == 2
    right = candidate("def center(x):\n    return x - x.mean(-1, keepdim=True)\n")
    how = ("--task", "center", "--against", "eager", "--budget", 0)
    ran = process("time", right, *how, *given, env={"PYTHONPATH": path})
    assert [[*shape["baselines"]] for shape in json.loads(ran.out)["shapes"]] == [["eager"]]


@pytest.mark.parametrize(
    ("points", "source", "said"),
    [
        (
            {"good": "nowhere:Good"},
            SUITE,
            "'nowhere:Good' of one does not load: ModuleNotFoundError",
        ),
        (
            {"good": "good_suite:Bad"},
            SUITE,
            "'good_suite:Bad' of one does not load: AttributeError",
        ),
        ({"good": "good_suite:kt"}, SUITE, "is no suite; name a class that inherits from"),
        (
            {"good": "good_suite:Good"},
            SUITE + "        yield from Good.tasks(self) if x else ()\n",
            "NameError: name 'x' is not defined",
        ),
        (
            {"good": "good_suite:Good"},
            SUITE + "        yield kt.task('twice(x[M])', reference=abs)\n",
            "correct the suite",
        ),
        (
            {"good": "good_suite:Good"},
            SUITE + "        yield kt.task('a(x[M])', dims={'M': 'row'}, reference=abs)\n",
            f"good_suite.py:{SUITE.count(chr(10)) + 1}); correct the suite",
        ),
        (
            {"good": "good_suite:Good"},
            SUITE + "        yield 3\n",
            "tasks() gives 3; give what kt.task(...) returns (good_suite); correct the suite",
        ),
        (
            {"good": "good_suite:Good"},
            SUITE.replace("yield", "for _ in range(2): yield"),
            "it names a task twice: 'twice'; rename one of them",
        ),
    ],
)
def test_a_wrong_suite_gets_one_line(kt, site, points, source, said):
    install(site, "one", points, good_suite=source)
    ran = kt("tasks", "--suite", "good")
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert ran.err.startswith("kerneltruth: --suite good: ")
    assert said in ran.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("x.nope()", "'Tensor' object has no attribute 'nope' (RESULT:12); correct the suite"),
        ("x.mul_(2)", "DeclarationError: the reference of twice changes its arguments; compute on"),
        ("None", "DeclarationError: the reference of twice returns NoneType; return a tensor"),
    ],
)
def test_a_suite_whose_reference_does_not_work_gets_one_line(kt, site, candidate, change, said):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=SUITE.replace("x * 2", change))
    ran = kt("check", candidate("def twice(x):\n    return x * 2\n"), "--suite", "good")
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert ran.err.startswith("kerneltruth: --suite good, task 'twice': ")
    assert said.replace("RESULT", str(site / "good_suite.py")) in ran.err


def test_two_packages_with_one_name_are_both_named(kt, site):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=SUITE)
    install(site, "two", {"good": "good_suite:Good"})
    ran = kt("tasks", "--suite", "good")
    assert ran.code == 2
    assert "of one and the entry point 'good_suite:Good' of two have that name" in ran.err


def test_a_package_whose_metadata_is_there_twice_is_one(kt, site, monkeypatch):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=SUITE)
    install(site / "again", "one", {"good": "good_suite:Good"})
    monkeypatch.syspath_prepend(site / "again")
    assert kt("tasks", "--suite", "good").code == 0


def test_a_suite_without_a_place_takes_no_path(kt, site):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=SUITE)
    ran = kt("tasks", "--suite", "good:here")
    assert (ran.code, "good:here: it takes no path; pass --suite good" in ran.err) == (2, True)
    ran = kt("tasks", "--suite", "core:here")
    assert (ran.code, "core: it takes no path; pass --suite core" in ran.err) == (2, True)


def test_an_unknown_suite_gets_the_list_of_own_and_installed_ones(kt, example):
    ran = kt("tasks", "--suite", "nosuch")
    assert ran.code == 2
    assert {"core", "kernelbench:PATH", "gpuemu:PATH", "problems:PATH"} <= {
        *re.split(r"[ ,\n]+", ran.err)
    }


DEMANDING = (
    SUITE.replace("    place =", "    terms = kt.Terms(demands={'kernel': 'rule 3'})\n    place =")
    + "\n"
)


@pytest.fixture
def demanding(site):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=DEMANDING)


def test_a_suite_whose_rules_demand_a_kernel_fails_a_result_without_one(
    kt, demanding, candidate, tmp_path
):
    plain = candidate("def twice(x):\n    return x * 2\n")
    given = ("--suite", "good", "--task", "twice", "--json", "--device", "cpu", "--cases", 4)
    document = json.loads(kt("check", plain, *given, "--out", tmp_path / "a").out)
    assert (document["verdict"], document["kind"]) == ("fail", "no_kernel")
    assert document["profile"]["kernel"]["decisive"]
    ran = kt("check", plain, *given, "--out", tmp_path / "b", "--contract", "torch")
    assert not json.loads(ran.out)["profile"]["kernel"]["decisive"]


def test_a_task_shows_its_suites_contract(kt, demanding):
    shown = kt("tasks", "twice", "--suite", "good", "--json")
    kernel = json.loads(shown.out)["tasks"][0]["contract"]["obligations"]["kernel"]
    assert kernel == {"decisive": True, "promised": True, "promises": [], "reason": "rule 3"}


def test_an_unknown_obligation_in_a_suite_gets_one_line(kt, site):
    source = DEMANDING.replace("'kernel'", "'speed'")
    install(site, "one", {"good": "good_suite:Good"}, good_suite=source)
    ran = kt("tasks", "--suite", "good")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "'speed' is no obligation" in ran.err


def test_an_error_in_a_suite_of_this_package_is_not_the_users(candidate):
    problem = candidate("class Model:\n    def forward(self, x):\n        return x\n", "1_Same.py")
    with pytest.raises(AttributeError, match="on_device"):
        open_suite(SimpleNamespace(option=f"kernelbench:{problem}"))


NARROW = (
    SUITE
    + """
    def own_function(self, name):
        from kerneltruth.runner.candidate import read_candidate
        source = "def twice(x):\\n    return x * 2 if x.is_contiguous() else x * 3\\n"
        return read_candidate(source, "twice.py", task_names=("twice",), task="twice")
"""
)


@pytest.mark.slow
def test_an_audit_by_a_contract_flags_only_what_decides(kt, site):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=NARROW)
    given = ("audit", "--suite", "good", "--device", "cpu", "--cases", 24, "--workers", 1, "--json")
    assert json.loads(kt(*given).out)["summary"]["flagged"] > 0
    assert json.loads(kt(*given, "--contract", "core").out)["summary"]["flagged"] == 0
    assert json.loads(kt(*given, "--contract", "torch").out)["summary"]["flagged"] > 0


def test_a_suite_that_does_not_prove_itself_is_reported(kt, site):
    source = NARROW.replace("x * 2 if x.is_contiguous() else x * 3", "x * 3")
    install(site, "one", {"good": "good_suite:Good"}, good_suite=source)
    ran = kt("audit", "--suite", "good", "--device", "cpu", "--cases", 4, "--workers", 1)
    assert ran.code == 1
    assert "good/twice does not hold" in ran.out


def test_an_unknown_contract_is_refused_in_an_audit_of_a_suite(kt, site):
    install(site, "one", {"good": "good_suite:Good"}, good_suite=SUITE)
    ran = kt("audit", "--suite", "good", "--device", "cpu", "--contract", "most")
    assert (ran.code, "--contract 'most': must be one of published" in ran.err) == (2, True)
