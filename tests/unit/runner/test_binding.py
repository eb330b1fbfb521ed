import pytest

from kerneltruth.runner.binding import Offered, SignatureMismatch, bind

X = Offered(name="x", value="X", tensor=True)
W = Offered(name="weight", value="W", tensor=True)
EPS = Offered(name="eps", value=1e-6, default=1e-6, optional=True)
OTHER_EPS = Offered(name="eps", value=1e-3, default=1e-6)


def called(entry, *offered):
    positional, named = bind(entry, offered)
    return entry(*positional, **named)


def test_known_names_are_passed_by_name_in_any_order():
    assert called(lambda eps, weight, x: (x, weight, eps), X, W, EPS) == ("X", "W", 1e-6)


def test_unknown_names_are_passed_in_order():
    assert called(lambda a, b, c: (a, b, c), X, W, EPS) == ("X", "W", 1e-6)


def test_an_unknown_tensor_fills_the_place_that_known_names_leave():
    assert called(lambda x, gain, eps: (x, gain, eps), X, W, EPS) == ("X", "W", 1e-6)


def test_a_default_attribute_that_is_not_known_is_left_out():
    assert called(lambda x, weight: (x, weight), X, W, EPS) == ("X", "W")


def test_an_attribute_does_not_fill_a_parameter_of_another_meaning():
    assert called(lambda x, BLOCK=128: BLOCK, X, EPS) == 128


def test_an_attribute_fills_a_parameter_with_the_same_default():
    assert called(lambda x, BLOCK=128, epsilon=1e-6: (BLOCK, epsilon), X, OTHER_EPS) == (128, 1e-3)


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
    assert called(lambda *args: args, X, W, EPS) == ("X", "W", 1e-6)
    assert called(lambda x, **rest: rest, X, W, EPS) == {"weight": "W", "eps": 1e-6}


def test_positional_only_parameters_are_filled_by_place():
    def entry(x, weight, /, eps):
        return x, weight, eps

    assert called(entry, X, W, EPS) == ("X", "W", 1e-6)


def test_an_absent_optional_tensor_fills_a_parameter_that_defaults_to_none():
    absent = Offered(name="bias", value=None, default=None, optional=True)
    assert called(lambda x, b=None, k=3: (x, b, k), X, absent) == ("X", None, 3)
