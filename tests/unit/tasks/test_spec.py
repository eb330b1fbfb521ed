"""The signature notation, and what a declaration refuses."""

import pytest

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.signature import Given
from kerneltruth.tasks.spec import (
    Attribute,
    Dim,
    Output,
    Promises,
    TensorSpec,
    evaluate,
    parse_signature,
    task,
)


def declare(signature, **more):
    given = {"dims": {"M": "batch", "N": "reduced"}, "flops": "M*N", "benchmark": {"M": 2, "N": 4}}
    return task(
        signature,
        category="Math",
        reference=lambda **given: given,
        description="d",
        **(given | more),
    )


def test_a_signature_gives_tensors_and_attributes_in_call_order():
    parsed = parse_signature('f(x[M, N], i[M]: index(N), w[N]?, eps=1e-6, mode="none")')
    assert parsed.name == "f"
    assert parsed.arguments == (
        TensorSpec(name="x", dims=("M", "N")),
        TensorSpec(name="i", dims=("M",), kind="index", extent="N"),
        TensorSpec(name="w", dims=("N",), optional=True),
        Given("eps", 1e-6),
        Given("mode", "none"),
    )


def test_commas_inside_brackets_do_not_split_arguments():
    assert parse_signature("f(size=(4, 4))").arguments == (Given("size", (4, 4)),)


@pytest.mark.parametrize("text", ["f", "f(x", "f(x[N], y)", "1f(x[N])"])
def test_a_signature_that_is_no_call_is_refused(text):
    with pytest.raises(DeclarationError):
        parse_signature(text)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Dim(symbol="N", role="batch", low=3, high=2), "'N': low is 3 and high is 2; give"),
        (
            lambda: TensorSpec(name="i", dims=("M",), kind="index"),
            "^i: an index, .* `index\\(N\\)`",
        ),
        (lambda: TensorSpec(name="i", dims=(), extent="N"), "^i: an index, and only an index"),
        (
            lambda: TensorSpec(name="i", dims=(), kind="index_or", extent="N"),
            r"^i: `index_or\(extent, other\)` alone has an other",
        ),
        (lambda: TensorSpec(name="x", dims=("M",), form="lower"), "^x: only a matrix has a form"),
        (lambda: Output(compare="accept"), "'out': `accept` goes with compare='accept'"),
        (lambda: Promises(layouts=("diagonal",)), r"\['diagonal'\]: a prompt promises one of"),
        (lambda: parse_signature("f(x[N]!)"), r"'x\[N\]!' is no tensor; write `name\[dims\]`"),
        (
            lambda: declare("f(x[M, N])", attributes={"eps": (1.0,)}),
            "has no attributes eps; write `name=default` for each",
        ),
        (
            lambda: declare("f(x[M])", dims={"M": Dim(symbol="N", role="batch")}),
            "dims: 'M' is given as 'N'; use one name",
        ),
        (lambda: declare("f(x[M + ])"), "'M \\+' is no expression: "),
        (lambda: declare("f(x[M, N])", outputs=()), r"^no output: give outputs=\(Output\(\), "),
        (
            lambda: declare("f(x[M, N])", mutates=("y",)),
            "mutates 'y': it is no tensor of the signature; name one of x",
        ),
        (lambda: task("f(x[N])", size=1), r"'size'; docs/reference/api.md lists the arguments"),
    ],
)
def test_a_declaration_that_breaks_a_rule_is_refused_with_the_rule(wrong, says):
    with pytest.raises(DeclarationError, match=says):
        wrong()


def test_a_dim_may_be_an_expression_of_dims_and_attributes():
    declared = declare("f(x[M, N // groups], groups=2)")
    assert declared.shape(declared.tensors[0], {"M": 3, "N": 8}, {"groups": 4}) == (3, 2)


def test_constraints_and_ranges_decide_what_is_allowed():
    declared = declare(
        "f(x[M, N])",
        dims={"M": Dim(symbol="M", role="batch", low=1, high=8), "N": "reduced"},
        constraints=("N % 2 == 0",),
    )
    assert declared.allows({"M": 8, "N": 2}, {})
    assert not declared.allows({"M": 0, "N": 2}, {})
    assert not declared.allows({"M": 9, "N": 2}, {})
    assert not declared.allows({"M": 1, "N": 3}, {})


def test_a_negative_size_is_not_allowed():
    assert not declare("f(x[M, N - 2])").allows({"M": 1, "N": 1}, {})


def test_attribute_values_start_with_the_default():
    declared = declare("f(x[M, N], alpha=1.0)", attributes={"alpha": (0.5, 1.0)})
    assert declared.attributes == (Attribute(name="alpha", default=1.0, values=(1.0, 0.5)),)


def test_a_contracted_dim_makes_the_task_a_product():
    assert declare("f(x[M, N])", dims={"M": "batch", "N": "contracted"}).contracted()
    assert not declare("f(x[M, N])").contracted()


def test_a_tensor_of_a_fixed_kind_ignores_the_working_dtype():
    assert TensorSpec(name="x", dims=("N",)).dtype("float16") == "float16"
    assert TensorSpec(name="m", dims=("N",), kind="mask").dtype("float16") == "bool"
    assert TensorSpec(name="q", dims=("N",), kind="int8").dtype("float16") == "int8"


def test_an_expression_is_arithmetic_and_comparison():
    scope = {"N": 2, "dim": (4, 5), "mode": None}
    assert evaluate("max(N, 3)*dim[1] - 1", scope) == 14
    assert evaluate("N % 2 == 0 and mode is None", scope)


@pytest.mark.parametrize(
    "text",
    ["open('/etc/passwd')", "N if N else 1", "[n for n in N]", "N.bit_length()", "(lambda: N)()"],
)
def test_an_expression_that_holds_logic_is_refused(text):
    with pytest.raises(DeclarationError, match="write a function"):
        evaluate(text, {"N": 2})


def test_an_unknown_role_kind_or_lonely_extent_is_refused():
    with pytest.raises(DeclarationError, match="role"):
        Dim(symbol="N", role="wide")
    with pytest.raises(DeclarationError, match="kind"):
        TensorSpec(name="x", dims=("N",), kind="imaginary")
    with pytest.raises(DeclarationError, match="extent"):
        TensorSpec(name="x", dims=("N",), extent="N")


def test_accept_goes_with_its_way_of_comparing():
    with pytest.raises(DeclarationError, match="accept"):
        Output(compare="accept")
