"""The examples in the docstrings of the library's names, and those of its guide, run."""

import doctest
import inspect
import linecache
import re
import runpy
from pathlib import Path

import pytest

import kerneltruth as kt

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("warm_servers")]

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "library.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RELU = "def relu(x): return x.clamp(min=0)"
CLIPPED = "def relu(x): return x.clamp(min=0.5)"


@pytest.fixture(scope="module")
def names(warm_servers):
    """The names that examples use: a judge, a right kernel, and a wrong one."""
    with kt.Judge(device="cpu", workers=2, seed=1) as judge:
        yield {"kt": kt, "judge": judge, "relu": RELU, "clipped": CLIPPED}


def documented(name):
    """A public name's docstrings: its own, and those of its public methods."""
    thing = getattr(kt, name)
    yield name, thing
    for inner, member in vars(thing).items() if inspect.isclass(thing) else ():
        if not inner.startswith("_") and (inspect.isfunction(member)):
            yield f"{name}.{inner}", member


EXAMPLES = [pair for name in kt.__all__ for pair in documented(name)]
FEWER_WORDS = {
    *("Report.to_json", "FoundFailure.to_json"),
    # The example of the class shows them together.
    *(f"Suite.{name}" for name in vars(kt.Suite) if not name.startswith("_")),
    *("Output.dtype_at", "Output.parts_at", "Variants.at"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "thing"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_public_name_has_a_document_and_an_example_that_runs(name, thing, names):
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs=names)
    assert test.docstring
    assert test.examples or name in FEWER_WORDS
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    said = []
    assert runner.run(test, out=said.append).failed == 0, "".join(said)


@pytest.mark.slow
def test_the_examples_of_the_guide_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.py").write_text(
        "from torch import softmax as s\n\n\ndef softmax(x):\n    return s(x, -1)\n"
    )
    # The last one times, which the example of `Judge.time` does too, and takes half a minute.
    *blocks, timing = FENCE.findall(GUIDE.read_text(encoding="utf-8"))
    assert "judge.time" in timing
    shown = "\n".join(blocks)
    linecache.cache["<guide>"] = (len(shown), None, shown.splitlines(keepends=True), "<guide>")
    exec(compile(shown, "<guide>", "exec"), {"__name__": "guide"})
    said = capsys.readouterr().out
    assert said.startswith("softmax.py: pass for softmax")
    assert "plain pass" in said
    assert "clipped fail" in said
    assert [p.name for p in tmp_path.iterdir()] == ["softmax.py"]


@pytest.mark.slow
def test_the_reward_of_the_example_tells_right_from_wrong_and_from_no_kernel():
    script = runpy.run_path(str(ROOT / "examples" / "reward.py"))
    right, wrong = "```python\n" + RELU + "\n```", "```python\n" + CLIPPED + "\n```"
    with kt.Judge(device="cpu", workers=2) as judge:
        good, bad, none = script["rewards"](judge, [right, wrong, "I cannot."], ["relu"] * 3)
    assert good >= 0.9 > bad >= none == 0


def test_the_api_page_is_current():
    script = runpy.run_path(str(ROOT / "benchmarks" / "api_page.py"))
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert script["page"]() == page, "run benchmarks/api_page.py"
