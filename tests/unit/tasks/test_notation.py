"""The parts of the notation that let a rank vary and arguments depend on each other."""

import pytest

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.spec import Dim, Output, TensorSpec, Variants, parse_signature, task


def declare(signature, dims=("M", "N"), **more):
    return task(
        signature,
        category="Test",
        dims=dict.fromkeys(dims, "batch"),
        reference=more.pop("reference", lambda **given: given),
        description="",
        flops="1",
        **more,
    )


SHAPES = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})
RANKED = declare("f(x[*shape], eps=1e-6)", where={"shape": SHAPES})
X = RANKED.tensors[0]


@pytest.mark.parametrize(("rank", "shape"), [(2, (3, 5)), (1, (15,)), (3, (3, 2, 5))])
def test_a_starred_name_stands_for_the_dims_of_the_chosen_variant(rank, shape):
    assert RANKED.shape(X, {"M": 3, "N": 5}, {"_rank": rank}) == shape


def test_a_tensor_may_have_no_dims():
    shape = Variants("_kind", {"scalar": "", "vector": "M"})
    scalar = declare("f(x[*shape])", ("M",), where={"shape": shape})
    assert scalar.shape(scalar.tensors[0], {"M": 3}, {"_kind": "scalar"}) == ()


def test_starred_dims_are_symbols_if_they_can_be_inferred():
    assert X.usual == ("M", "N")
    assert RANKED.axes(X, {"_rank": 1}) == ("(M * N)",)
    assert RANKED.axes(X, {"_rank": 3}) == ("M", "2", "N")


def test_a_starred_dim_that_looks_at_a_size_has_no_symbols():
    odd = declare("f(x[*shape])", where={"shape": lambda M, N: (M, N) if M > 1 else (N, M)})
    assert odd.tensors[0].usual == ("?", "?")
    assert odd.shape(odd.tensors[0], {"M": 1, "N": 4}, {}) == (4, 1)


def test_a_hidden_attribute_is_varied_and_not_passed():
    assert [a.name for a in RANKED.attributes] == ["eps", "_rank"]
    assert RANKED.call_order() == ("x", "eps")


def test_a_hidden_attribute_goes_to_a_formula_with_that_parameter():
    scalars = {"eps": 1.0, "_rank": 2}
    asks = RANKED.keywords({"x": "X"}, scalars, lambda x, eps, _rank: None)
    does_not = RANKED.keywords({"x": "X"}, scalars, lambda x, eps: None)
    assert asks == {"x": "X", "eps": 1.0, "_rank": 2}
    assert does_not == {"x": "X", "eps": 1.0}


def test_a_derived_argument_follows_dims_and_attributes():
    declared = declare("norm(x[M, N], shape:=(N,), steps:=M * k, k=2)", attributes={"k": (3,)})
    scalars = declared.scalars({"M": 4, "N": 7}, {"k": 3})
    assert scalars == {"shape": (7,), "steps": 12, "k": 3}
    assert declared.call_order() == ("x", "shape", "steps", "k")


def test_a_list_is_one_argument_of_several_tensors():
    declared = declare("hstack(tensors=[a[M, N], b[M, 2 * N]?, c[M, N]], divisor[M])")
    assert declared.lists() == {"tensors": ("a", "b", "c")}
    assert declared.call_order() == ("tensors", "divisor")
    assert [t.name for t in declared.tensors] == ["a", "b", "c", "divisor"]


def test_an_absent_member_is_left_out_of_its_list():
    declared = declare("hstack(tensors=[a[M, N], b[M, N]?])")
    tensors = {"a": "A", "b": None}
    assert declared.keywords(tensors, {}, lambda tensors: None) == {"tensors": ["A"]}


def test_an_index_or_has_an_extent_and_a_value_that_means_none():
    (spec,) = parse_signature("f(target[M]: index_or(N + 1, ignore_index))").arguments
    assert (spec.extent, spec.other) == ("N + 1", "ignore_index")
    assert spec.dtype("float16") == "int64"
    with pytest.raises(DeclarationError, match="other"):
        TensorSpec(name="t", dims=("M",), kind="index_or", extent="N")


def test_an_integer_tensor_has_the_working_dtype():
    assert TensorSpec(name="x", dims=("M",), kind="integer").dtype("int8") == "int8"


def test_an_output_is_expected_when_its_condition_holds():
    declared = declare(
        "min(x[M, N], dim=None)",
        outputs=(Output(name="values"), Output(name="indices", dtype="int64", when="dim != None")),
        attributes={"dim": (1,)},
    )
    assert [o.name for o in declared.promised_outputs({"dim": None})] == ["values"]
    assert [o.name for o in declared.promised_outputs({"dim": 1})] == ["values", "indices"]


def test_a_condition_may_ask_which_tensors_are_present():
    declared = declare(
        "norm(x[M], mean[M]?)", outputs=(Output(), Output(name="mean", when="'mean' in present"))
    )
    assert len(declared.promised_outputs({}, {"x": "X", "mean": None})) == 1
    assert len(declared.promised_outputs({}, {"x": "X", "mean": "M"})) == 2


def test_complex_outputs_follow_the_working_precision():
    output = Output(dtype="complex")
    assert (output.dtype_at("float32"), output.parts_at("float32")) == ("complex64", "float32")
    assert (output.dtype_at("float64"), output.parts_at("float64")) == ("complex128", "float64")


def test_inputs_are_written_when_the_condition_holds_and_they_are_there():
    declared = declare(
        "f(x[M], mean[M]?, training=False, inplace=False)",
        outputs=(Output(), Output(name="mean", when="training")),
        mutates={"mean": "training"},
        may_overwrite={"x": "inplace"},
    )
    there = {"x": "X", "mean": "M"}
    usual = {"training": False, "inplace": False}
    assert declared.writable(usual, there) == ()
    assert declared.written({**usual, "training": True}, there) == ("mean",)
    assert declared.written({**usual, "training": True}, {"x": "X", "mean": None}) == ()
    assert declared.writable({"training": True, "inplace": True}, there) == ("mean", "x")


def test_the_old_form_of_mutates_holds_always():
    assert declare("f(x[M])", mutates=("x",)).written({}) == ("x",)


def test_attribute_values_are_core_unless_they_are_said_to_be_extended():
    declared = declare(
        "f(x[M], dim=-1, keepdim=False)",
        attributes={"dim": (0, None), "keepdim": (True,)},
        extended={"dim": (None,), "keepdim": (True,)},
    )
    assert declared.is_core({"dim": 0, "keepdim": False})
    assert not declared.is_core({"dim": None, "keepdim": False})
    assert not declared.is_core({"dim": -1, "keepdim": True})
    assert declared.is_core({"keepdim": False})


def test_values_for_an_attribute_that_the_signature_lacks_are_refused():
    with pytest.raises(DeclarationError, match="no attributes epsilon"):
        declare("f(x[M], eps=1e-6)", attributes={"epsilon": (1e-3,)})


def test_the_entry_is_the_name_by_default():
    assert declare("f(x[M])").entry == "f"
    assert declare("AdamW(x[M])", entry="adamw_step").entry == "adamw_step"


def test_constraints_and_extents_see_hidden_attributes():
    declared = declare(
        "f(x[M], _wide=False)",
        constraints=("M >= 4 or not _wide",),
        attributes={"_wide": (True,)},
    )
    assert not declared.allows({"M": 2, "N": 1}, {"_wide": True})
    assert declared.allows({"M": 2, "N": 1}, {"_wide": False})


def test_a_name_stands_for_what_a_function_of_dims_attributes_and_names_gives():
    declared = declare(
        "f(x[*padded], pad=1)",
        where={"shape": SHAPES, "padded": lambda shape, pad: tuple(n + pad for n in shape)},
        constraints=("padded[0] < 9",),
    )
    assert declared.shape(declared.tensors[0], {"M": 2, "N": 3}, {"pad": 1, "_rank": 2}) == (3, 4)
    assert not declared.allows({"M": 8, "N": 3}, {"pad": 1, "_rank": 2})


def test_a_function_that_lacks_a_key_is_no_unknown_name():
    declared = declare("f(x[*shape], k=1)", where={"shape": lambda M, k: ({1: M}[k],)})
    with pytest.raises(ValueError, match="no 2"):
        declared.shape(declared.tensors[0], {"M": 2, "N": 3}, {"k": 2})


def test_a_name_is_no_dim_or_argument_too():
    with pytest.raises(DeclarationError, match="where 'N': a dim or an argument has that name"):
        declare("f(x[M, N])", where={"N": lambda M: M})


def test_variants_are_values_of_a_hidden_attribute():
    with pytest.raises(DeclarationError, match="begin its name with `_`"):
        Variants("rank", {2: "M, N"})
    with pytest.raises(DeclarationError, match="give each the same ones"):
        declare("f(x[*a])", where={"a": SHAPES, "b": Variants("_rank", {2: "M"})})


def test_dims_may_be_given_in_full():
    full = task(
        "f(x[M])",
        category="Test",
        dims={"M": Dim(symbol="M", role="batch", low=2)},
        reference=lambda x: x,
        description="",
        flops="M",
        benchmark={"M": 2},
        perf=({"M": 1024},),
    )
    assert not full.allows({"M": 1}, {})
    assert full.perf == ({"M": 1024},)


def test_a_builtin_may_be_the_reference():
    import torch

    declared = declare("sqrt(input[M], _form=1)", reference=torch.sqrt)
    assert declared.keywords({"input": "X"}, {"_form": 1}, torch.sqrt) == {"input": "X"}


def test_a_matrix_may_have_a_form_that_attributes_choose():
    given = parse_signature("f(A[N, N]: spd(_matrix), _matrix='spread')")
    assert given.arguments[0].form == "_matrix"
    assert given.arguments[0].extent is None


def test_only_a_matrix_has_a_form():
    with pytest.raises(DeclarationError, match="only a matrix has a form"):
        TensorSpec(name="x", dims=("N",), form="'spread'")
