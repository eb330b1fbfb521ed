"""A function is taken with what it needs of its file or of its notebook's cells."""

import functools
import itertools
import linecache
import math

import pytest

from kerneltruth.errors import UserError
from kerneltruth.library.functions import source_of

SCALE = 2.0
_numbers = itertools.count()


def cell(text, names):
    """Run a notebook's cell as IPython does: its lines are kept under a name of their own."""
    name = f"<ipython-input-{next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


def scaled(x):
    return math.sqrt(x) * SCALE


def ran(taken, *arguments):
    names = {}
    exec(taken.text, names)
    return names[taken.entry](*arguments)


def test_a_function_is_taken_with_what_it_needs_of_its_file():
    taken = source_of(scaled)

    assert ran(taken, 9.0) == 6.0
    assert "import math" in taken.text
    assert "pytest" not in taken.text
    assert "def cell" not in taken.text


def test_its_lines_keep_their_numbers():
    line = scaled.__code__.co_firstlineno

    assert source_of(scaled).text.splitlines()[line - 1] == "def scaled(x):"


def test_a_cell_is_taken_without_what_it_runs():
    names = {}
    cell(
        "import math\ncalls = []\ndef f(x):\n    return math.floor(x)\ncalls.append(f(1.5))\n",
        names,
    )

    taken = source_of(names["f"])

    assert ran(taken, 2.5) == 2
    assert "append" not in taken.text


def test_a_local_name_does_not_bring_a_global_one():
    names = {}
    cell("x = input\ndef f(x):\n    y = x\n    return y\ny = f(x)\n", names)

    assert source_of(names["f"]).text.strip().splitlines()[0] == "def f(x):"


def test_modules_numbers_and_functions_come_from_other_cells():
    names = {}
    cell("import math as m\nWIDTH = 4\n", names)
    cell("def helper(x):\n    return m.ceil(x)\n", names)
    cell("def f(x):\n    return helper(x) * WIDTH\n", names)

    assert ran(source_of(names["f"]), 1.5) == 8


def test_what_other_cells_import_is_imported():
    names = {}
    cell(
        "from math import ceil\nfrom fractions import Fraction as F\nfrom bisect import insort\n",
        names,
    )
    cell("from textwrap import dedent\n", names)
    cell("def f(x):\n    return dedent(str(F(ceil(x), 2))), insort\n", names)

    taken = source_of(names["f"])

    assert ran(taken, 2.5)[0] == "3/2"
    assert "from fractions import Fraction as F" in taken.text
    assert "def dedent" not in taken.text


def test_a_kernel_of_another_cell_comes_with_its_decorators():
    names = {}
    cell("class jit:\n    def __init__(self, fn):\n        self.fn = fn\n", names)
    cell("import math\n@jit\n@jit\ndef kernel(x):\n    return math.ceil(x)\n", names)
    names["jit"] = None
    cell("def f(x):\n    return kernel.fn.fn(x)\n", names)

    assert "@jit\n@jit\ndef kernel(x):" in source_of(names["f"]).text


def test_a_name_that_no_source_holds_is_refused():
    names = {"table": [1, 2]}
    cell("def f(x):\n    return table[x]\n", names)

    with pytest.raises(UserError, match=r"cannot judge f: it uses table \(list\)"):
        source_of(names["f"])


def test_imports_from_the_future_stay_first():
    names = {}
    cell("import math as m\n", names)
    cell("from __future__ import annotations\ndef f(x: Unknown):\n    return m.ceil(x)\n", names)

    assert ran(source_of(names["f"]), 1.5) == 2


def test_a_closure_is_refused_with_what_it_holds():
    weights = [1.0]

    def f(x):
        return x * weights[0]

    with pytest.raises(UserError, match=r"cannot judge f: it is a closure over weights \(list\)"):
        source_of(f)


def inner():
    def f(x):
        return x

    return f


@pytest.mark.parametrize("thing", [lambda x: x, inner(), str.upper.__get__("a"), len, object()])
def test_what_has_no_place_at_the_top_of_a_source_is_refused(thing):
    with pytest.raises(UserError, match="cannot judge"):
        source_of(thing)


def test_a_function_whose_source_is_not_kept_is_refused():
    names = {}
    exec("def f(x):\n    return x\n", names)

    with pytest.raises(UserError, match="the source of <string> is not kept"):
        source_of(names["f"])


@functools.wraps(scaled)
def wrapper(x):
    return scaled(x)


def test_a_wrapper_is_looked_through():
    assert source_of(wrapper).entry == "scaled"
