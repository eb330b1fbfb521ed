"""A sample has every trait of a sweep, nothing slow, and everything else."""

from types import SimpleNamespace

from sampling import in_sample

WORDS = ("relu values", "relu shapes", "gelu values", "relu values", "gelu shapes", "tanh dtypes")


def item(nodeid, by=None, *, slow=False, **parameters):
    marks = {"sampled": SimpleNamespace(kwargs={"by": by})} if by else {}
    marks |= {"slow": SimpleNamespace()} if slow else {}
    return SimpleNamespace(
        nodeid=nodeid,
        callspec=SimpleNamespace(params=parameters),
        get_closest_marker=marks.get,
    )


def sweep(function):
    return [item(f"{function}[{w}]", by=lambda word: word.split(), word=w) for w in WORDS]


def words(items):
    return [each.callspec.params["word"] for each in items]


def test_an_item_is_taken_if_it_has_a_trait_that_none_before_it_has():
    taken = words(in_sample(sweep("f")))
    assert taken == ["relu values", "relu shapes", "gelu values", "tanh dtypes"]
    assert {t for w in taken for t in w.split()} == {t for w in WORDS for t in w.split()}


def test_each_sweep_has_a_sample_of_its_own():
    assert len([*in_sample([*sweep("f"), *sweep("g")])]) == 8


def test_nothing_slow_is_taken():
    plain, slow = item("f"), item("g", slow=True)
    assert [*in_sample([plain, slow])] == [plain]


def test_what_is_no_sweep_is_taken():
    plain = [item("f[1]"), item("f[2]")]
    assert [*in_sample(plain)] == plain
