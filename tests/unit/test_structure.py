"""The sizes, and the names of types, that `make lint` accepts, by `benchmarks/structure.py`."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = runpy.run_path(str(ROOT / "benchmarks" / "structure.py"))
MOST, MOST_OF_ONE = RULES["FILE_LINES"], RULES["FUNCTION_LINES"]
SOURCE = RULES["OWN"]


def function(lines, signature="def f():", docstring=""):
    return "\n".join([signature, docstring, *["    x = 1"] * lines]) + "\n"


@pytest.fixture
def faults(tmp_path):
    def faults_of(text):
        (tmp_path / "some.py").write_text(text)
        return [
            f.removeprefix(f"{tmp_path}/some.py") for f in RULES["too_long"](tmp_path / "some.py")
        ]

    return faults_of


def test_a_file_over_the_limit_is_named_with_its_lines(faults):
    assert faults("x = 1\n" * MOST) == []
    (fault,) = faults("x = 1\n" * (MOST + 1))
    assert fault.startswith(f": {MOST + 1} lines; ")


def test_a_function_over_the_limit_is_named_with_its_line(faults):
    assert faults(function(MOST_OF_ONE)) == []
    (fault,) = faults("x = 1\n" + function(MOST_OF_ONE + 1))
    assert fault.startswith(f":2: f has {MOST_OF_ONE + 1} lines ")


def test_a_method_within_a_class_is_measured_too(faults):
    body = "        x = 1\n" * (MOST_OF_ONE + 1)
    (fault,) = faults(f"class A:\n    async def g(self):\n{body}")
    assert fault.startswith(":2: g has ")


def test_signature_and_docstring_do_not_count(faults):
    signature = "def f(\n" + "".join(f"    a{i}: int,\n" for i in range(20)) + "):"
    docstring = '    """Say.\n\n' + "    More.\n" * 20 + '    """'
    assert faults(function(MOST_OF_ONE, signature, docstring)) == []


def test_a_file_that_may_be_long_and_is_not_is_to_be_taken_out():
    known = {"errors": SOURCE / "errors.py"}
    assert list(RULES["sizes"](known, set())) == []
    (fault,) = RULES["sizes"](known, {"errors.py"})
    assert fault.startswith("errors.py: nothing in it is too long any more")


@pytest.fixture
def ambiguous(tmp_path):
    def names_of(*texts):
        rules = runpy.run_path(str(ROOT / "benchmarks" / "structure.py"))
        rules["types"].__globals__["SOURCE"] = tmp_path
        paths = [tmp_path / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return rules["ambiguous"](rules["types"](paths))

    return names_of


@pytest.mark.parametrize(
    "other", ["class Kind: ...\n", "Kind = str | int\n", "Kind: TypeAlias = list[int]\n"]
)
def test_a_name_of_a_class_that_is_another_type_elsewhere_is_named(ambiguous, other):
    assert ambiguous("class Kind: ...\n", other) == {"Kind": ["0.py", "1.py"]}


def test_the_same_alias_may_stand_in_several_files(ambiguous):
    assert ambiguous("Array = NDArray[Any]\n", "Array = NDArray[Any]\n") == {}


def test_options_and_constants_are_no_types(ambiguous):
    option = 'Kind = Annotated[str, typer.Option("--kind")]\n'
    assert ambiguous("class Kind: ...\nKIND = 1\n", option, "KIND = 2\n") == {}
