import pytest

from kerneltruth.runner.child.binding import Offered, SignatureMismatch, bind

X = Offered(name="x", value="X", tensor=True)
W = Offered(name="weight", value="W", tensor=True)
EPS = Offered(name="eps", value=1e-6, default=1e-6, optional=True)
OTHER_EPS = Offered(name="eps", value=1e-3, default=1e-6)


def call_bound(entry, *offered):
    positional, named = bind(entry, offered)
    return entry(*positional, **named)


def test_known_names_are_passed_by_name_in_any_order():
    assert call_bound(lambda eps, weight, x: (x, weight, eps), X, W, EPS) == ("X", "W", 1e-6)


def test_unknown_names_are_passed_in_order():
    assert call_bound(lambda a, b, c: (a, b, c), X, W, EPS) == ("X", "W", 1e-6)


def test_an_unknown_tensor_fills_the_place_that_known_names_leave():
    assert call_bound(lambda x, gain, eps: (x, gain, eps), X, W, EPS) == ("X", "W", 1e-6)


def test_a_default_attribute_that_is_not_known_is_left_out():
    assert call_bound(lambda x, weight: (x, weight), X, W, EPS) == ("X", "W")


def test_an_attribute_does_not_fill_a_parameter_of_another_meaning():
    assert call_bound(lambda x, BLOCK=128: BLOCK, X, EPS) == 128


def test_an_attribute_fills_a_parameter_with_the_same_default():
    assert call_bound(lambda x, BLOCK=128, epsilon=1e-6: (BLOCK, epsilon), X, OTHER_EPS) == (
        128,
        1e-3,
    )


def test_an_attribute_with_another_value_must_be_accepted():
    with pytest.raises(SignatureMismatch, match="cannot take 'eps'"):
        bind(lambda x: x, (X, OTHER_EPS))


def test_a_required_parameter_without_an_argument_is_a_mismatch():
    with pytest.raises(SignatureMismatch, match="missing a required argument: 'y'"):
        bind(lambda x, weight, y: x, (X, W))


def test_a_tensor_without_a_parameter_is_a_mismatch():
    with pytest.raises(SignatureMismatch, match="cannot take 'weight'"):
        bind(lambda x: x, (X, W))


def test_variable_arguments_take_what_is_left():
    assert call_bound(lambda *args: args, X, W, EPS) == ("X", "W", 1e-6)
    assert call_bound(lambda x, **rest: rest, X, W, EPS) == {"weight": "W", "eps": 1e-6}


def test_positional_only_parameters_are_filled_by_place():
    def entry(x, weight, /, eps):
        return x, weight, eps

    assert call_bound(entry, X, W, EPS) == ("X", "W", 1e-6)


def test_an_absent_optional_tensor_fills_a_parameter_that_defaults_to_none():
    absent = Offered(name="bias", value=None, default=None, optional=True)
    assert call_bound(lambda x, b=None, k=3: (x, b, k), X, absent) == ("X", None, 3)


A = Offered(name="a", value="A", tensor=True, member_of="tensors")
B = Offered(name="b", value="B", tensor=True, member_of="tensors")
DIM = Offered(name="dim", value=1, default=None)


def test_members_of_a_list_are_passed_as_one():
    assert call_bound(lambda tensors, x: (tensors, x), A, B, X) == (["A", "B"], "X")


def test_a_renamed_list_is_passed_by_place():
    assert call_bound(lambda inputs, /, weight: (inputs, weight), A, B, W) == (["A", "B"], "W")


def test_a_tensor_never_goes_where_a_result_is_offered():
    bias = Offered(name="bias", value="B", tensor=True)
    assert call_bound(lambda x, out=None, b=None: (x, out, b), X, bias) == ("X", None, "B")
    with pytest.raises(SignatureMismatch, match="cannot take 'bias'"):
        call_bound(lambda x, out=None: x, X, bias)


def test_a_renamed_first_argument_leaves_the_known_names_alone():
    def mean(input_tensor, dim, keepdim=False, dtype=None, out=None):
        return input_tensor, dim, keepdim, dtype, out

    keepdim = Offered(name="keepdim", value=True, default=False)
    given = Offered(name="input", value="X", tensor=True)
    assert call_bound(mean, given, DIM, keepdim) == ("X", 1, True, None, None)


def test_another_order_of_known_names_is_followed():
    fill = lambda dim, x, index, value: (dim, x, index, value)
    index = Offered(name="index", value="I", tensor=True)
    value = Offered(name="value", value=2.0, default=0.0)
    assert call_bound(fill, X, DIM, index, value) == (1, "X", "I", 2.0)


def test_names_of_arguments_that_are_positional_only_are_known_too():
    assert call_bound(lambda weight, x, /: (weight, x), X, W) == ("W", "X")


def test_other_names_in_the_tasks_order_are_enough():
    def tanh(t, /, out_tensor=None):
        return t, out_tensor

    assert call_bound(tanh, X) == ("X", None)


def test_a_renamed_attribute_without_a_default_takes_its_place():
    assert call_bound(lambda x, axis: (x, axis), X, DIM) == ("X", 1)


def test_the_sizes_of_a_tuple_are_the_positional_arguments_of_a_variadic_entry():
    size = Offered(name="size", value=(2, 3))
    assert call_bound(lambda *shape, dtype=None: shape, size) == (2, 3)
    assert call_bound(lambda *size, **options: (size, options), size) == ((2, 3), {})
    assert call_bound(lambda size, dtype=None: size, size) == (2, 3)
    assert call_bound(lambda *arguments: arguments, X, size) == ("X", (2, 3))
