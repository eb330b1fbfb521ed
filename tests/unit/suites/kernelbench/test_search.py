"""Sets of constants are found by trying: what is refused teaches the constraints."""

from dataclasses import replace

import pytest

from kerneltruth.suites.kernelbench.derive import can_be_timed
from kerneltruth.suites.kernelbench.schema import Input
from kerneltruth.suites.kernelbench.search import ANY, PREFERRED, WANTED, Search, cost

from .problems import outline


def search(constants, attempt):
    return Search(constants, attempt, seed=7).run()


def test_huge_constants_come_down_to_what_a_cpu_affords():
    found = search({"rows": 4096, "columns": 393216}, lambda c: outline(c.values()))
    assert len(found) == WANTED
    assert all(PREFERRED.holds(f.outline) for f in found)


def test_all_sets_have_shapes_of_their_own():
    found = search({"rows": 4096, "columns": 4096}, lambda c: outline(c.values()))
    assert len({f.outline.shapes for f in found}) == len(found)


def test_a_divisibility_is_learned():
    def attempt(constants):
        fits = constants["channels"] % constants["groups"] == 0
        return outline((constants["channels"], constants["size"])) if fits else None

    found = search({"channels": 256, "groups": 8, "size": 100}, attempt)
    assert len({f.constants["channels"] for f in found}) >= 3
    assert all(f.constants["channels"] % f.constants["groups"] == 0 for f in found)


def test_constants_that_must_be_equal_move_together():
    def attempt(constants):
        equal = constants["rows"] == constants["columns"]
        return outline(constants.values()) if equal else None

    found = search({"rows": 1024, "columns": 1024}, attempt)
    assert len({f.constants["rows"] for f in found}) >= 5


def test_a_change_of_what_the_model_is_is_beyond_the_core():
    def attempt(constants):
        return outline((constants["size"],), weights=(constants["kernel"],))

    found = search({"size": 4096, "kernel": 3}, attempt)
    assert {f.constants["kernel"] for f in found if f.core} == {3}
    assert any(f.constants["kernel"] != 3 for f in found if not f.core)


def test_a_small_batch_is_a_size_and_not_structure():
    found = search({"batch": 8, "width": 512}, lambda c: outline(c.values()))
    assert len({f.constants["batch"] for f in found if f.core}) >= 3


def test_only_the_entries_of_a_tuple_that_are_accepted_move():
    def attempt(constants):
        return outline(constants["shape"]) if constants["shape"][0] == 3 else None

    found = search({"shape": (3, 240, 256)}, attempt)
    assert len(found) >= 3
    assert {f.constants["shape"][0] for f in found} == {3}


def test_a_problem_that_rejects_everything_has_no_sets():
    assert search({"rows": 64}, lambda c: None) == []


def test_a_problem_with_fixed_size_is_judged_at_it():
    found = search({}, lambda c: outline((4, 4)))
    assert len(found) == 1


def test_a_network_that_cannot_be_small_is_judged_at_its_smallest():
    found = search(
        {"batch": 64},
        lambda c: outline((c["batch"], 3), flops=c["batch"] * 10**8, weights=(10**6,)),
    )
    assert found
    assert found[0].outline.flops <= 16 * 10**8


def test_the_same_seed_finds_the_same_sets():
    def once():
        return search({"rows": 4096, "columns": 512}, lambda c: outline(c.values()))

    assert [f.constants for f in once()] == [f.constants for f in once()]


def test_a_constant_that_counts_layers_is_not_tried_to_the_end():
    tried = []

    def attempt(constants):
        tried.append(constants["layers"])
        made = outline((constants["rows"], 4))
        return replace(made, state={f"w{i}": (4,) for i in range(constants["layers"])})

    found = search({"rows": 512, "layers": 6}, attempt)
    assert len({f.constants["rows"] for f in found}) >= 5
    assert max(tried) <= 33


def test_what_is_never_small_is_found_where_any_cost_is_allowed():
    def attempt(constants):
        return outline((constants["rows"], 4), weights=(2**30,))

    assert search({"rows": 512}, attempt) == []
    found = Search({"rows": 512}, attempt, seed=7, most=ANY).run()
    assert len({f.constants["rows"] for f in found}) >= 3


def to_time(constants, attempt, most=2**25):
    own = attempt(constants)
    return Search(constants, attempt, seed=7).to_time(own, lambda o: o.inputs[0].elements <= most)


def test_timing_keeps_a_problems_own_constants_if_they_are_small_enough():
    constants = {"rows": 4096, "columns": 8192}
    assert to_time(constants, lambda c: outline(c.values())).constants == constants


def test_timing_halves_the_largest_constant_until_a_call_is_small_enough():
    found = to_time({"rows": 4096, "columns": 393216}, lambda c: outline(c.values()))
    assert found.constants == {"rows": 4096, "columns": 6144}
    assert found.outline.shapes[0] == ((4096, 6144),)


def test_timing_halves_equal_constants_together():
    def attempt(constants):
        equal = constants["rows"] == constants["columns"]
        return outline(constants.values()) if equal else None

    found = to_time({"rows": 16384, "columns": 16384}, attempt)
    assert found.constants == {"rows": 4096, "columns": 4096}


def test_timing_keeps_a_constant_that_a_problem_needs_and_halves_others():
    def attempt(constants):
        return outline(constants.values()) if constants["columns"] == 65536 else None

    found = to_time({"rows": 4096, "columns": 65536}, attempt)
    assert found.constants == {"rows": 512, "columns": 65536}


def test_timing_keeps_a_constant_that_makes_nothing_smaller():
    def attempt(constants):
        return outline((constants["rows"], 4096))

    found = to_time({"rows": 16384, "seed": 99999}, attempt)
    assert found.constants == {"rows": 8192, "seed": 99999}


def test_a_problem_that_nothing_makes_small_enough_is_not_timed_at_such_a_size():
    assert to_time({"groups": 8}, lambda c: outline((4096, 16384))) is None
    assert to_time({"rows": 4096}, lambda c: outline((4096, 16384))) is None


def test_timing_keeps_the_constants_that_define_a_model():
    """A number of groups, a kernel, a rank: small numbers."""
    assert to_time({"groups": 12}, lambda c: outline((c["groups"], 2**23))) is None


def test_timing_keeps_the_form_of_a_problem():
    def attempt(constants):
        found = outline(constants.values())
        if constants["columns"] < 65536:
            return replace(found, outputs=(Input(shape=(1,), dtype="int64"),))
        return found

    found = to_time({"rows": 4096, "columns": 65536}, attempt)
    assert found.constants == {"rows": 512, "columns": 65536}


FITS = replace(outline((4096, 8192), flops=2**37), state={})


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (FITS, True),
        (replace(FITS, flops=2**37 + 1), False),
        (replace(FITS, state={"w": (1,)}), False),
        (replace(FITS, inputs=(), state={"w": (2**25,)}), True),
        (replace(FITS, outputs=(Input(shape=(2**25 + 1,), dtype="float32"),)), False),
        (replace(FITS, outputs=2 * FITS.outputs), False),
        (replace(FITS, inputs=2 * FITS.inputs), False),
    ],
)
def test_a_call_is_timed_up_to_a_limit_of_elements_and_operations(made, expected):
    assert can_be_timed(made) is expected


def test_the_first_set_is_of_the_files_own_model_though_another_costs_less():
    def attempt(constants):
        return outline((constants["size"],), weights=(2**12 * constants["kernel"],))

    found = search({"size": 4096, "kernel": 3}, attempt)
    assert found[0].core
    assert any(not f.core and cost(f.outline) < cost(found[0].outline) for f in found)
    assert [cost(f.outline) for f in found[1:]] == sorted(cost(f.outline) for f in found[1:])


def test_a_large_constant_is_halved_as_far_as_it_takes():
    found = to_time({"rows": 64}, lambda c: outline((c["rows"], 2**22)), most=2**24)
    assert found.constants == {"rows": 4}
