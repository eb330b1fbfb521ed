"""The sentences on the page's first screen: only what is measured, and told apart."""

from page_material import material_of, result

from kerneltruth.analysis.results import Obliged
from kerneltruth.report.page.document import page_document

TASKS = tuple(f"kernelbenchx/t{i}" for i in range(8))


def sentences_of(*results):
    return page_document(material_of(*results)).sentences


def answers(method, outcomes, **changes):
    pairs = zip(TASKS, outcomes, strict=True)
    return [result(t, o, method=method, sha256=method * 8, **changes) for t, o in pairs]


def test_a_better_method_is_named_if_the_difference_is_significant():
    first, _ = sentences_of(*answers("a", ["pass"] * 8), *answers("b", ["fail"] * 8))
    assert first.endswith("; a \u00b7 m (100%) is significantly better than every other method.")
    assert first.startswith("8 of 16 answers are right: 50.0% (")


def test_methods_that_may_be_equal_are_not_ranked():
    one = ["pass"] * 4 + ["fail"] * 4
    first, _ = sentences_of(*answers("a", one), *answers("b", ["fail", *one[:-1]]))
    assert first.endswith("; between no two methods is the difference significant.")


def test_a_single_method_is_compared_with_none():
    first, _ = sentences_of(*answers("a", ["pass"] * 7 + ["fail"]))
    assert "method" not in first


def test_failures_are_counted_to_the_last():
    words = ["fail"] * 3 + ["runtime_error"] * 2 + ["compile_error", "crash", "timeout"]
    _, failures = sentences_of(*(result(t, w) for t, w in zip(TASKS, words, strict=True)))
    assert failures == (
        "3 of the other 8 answers give a wrong result, 2 raise an error, 1 do not load or "
        "compile, 2 end otherwise."
    )


def test_what_was_not_timed_has_no_sentence_and_no_tile():
    document = page_document(material_of(*answers("a", ["pass"] * 8)))
    assert not any("eager" in sentence for sentence in document.sentences)
    labels = {tile.label for tile in document.tiles}
    assert not labels & {"Is timed", "Slower than eager", "Speedup over eager", "Illusions"}


def test_right_kernels_are_called_faster_only_if_their_interval_is():
    fast = sentences_of(*(result(t, speedup=2 + i / 10) for i, t in enumerate(TASKS)))
    assert "On average, the 8 right kernels with a time are faster than eager PyTorch" in fast[-1]
    speeds = (0.5, 2.0) * 4
    mixed = [result(t, speedup=s) for t, s in zip(TASKS, speeds, strict=True)]
    assert "are not told apart from eager PyTorch" in sentences_of(*mixed)[-1]
    assert sentences_of(*mixed)[-1].endswith("; 4 are faster, 4 slower, 0 tied.")


def certified(check, outcomes):
    held = {"shapes": Obliged("held")}
    broken = {"shapes": Obliged("broken")}
    return [
        result(
            f"kernelbenchx/{check}{i}",
            outcome,
            checks={check: "pass"},
            profile=held if outcome == "pass" else broken,
            contract="core",
            sha256=f"{check}{i}",
        )
        for i, outcome in enumerate(outcomes)
    ]


def test_two_checks_are_set_apart_only_if_their_intervals_are():
    strict, lax = certified("strict", ["pass"] * 12), certified("lax", ["fail"] * 12)
    (found,) = [s for s in sentences_of(*strict, *lax) if "certifies" in s]
    assert " of the 12 kernels that strict certifies are tried and break nothing, and " in found
    assert found.endswith("of the 12 that lax certifies.")
    near = certified("near", ["pass"] * 11 + ["fail"])
    (found,) = [s for s in sentences_of(*strict, *near) if "certifies" in s]
    assert "near" not in found
    assert found.endswith("the largest share of any peer check here.")


def test_an_audit_has_no_such_sentences():
    assert sentences_of() == []
