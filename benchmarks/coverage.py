"""How often the intervals of `analyze` cover, and its tests reject what is not there.

    python benchmarks/coverage.py [--draws 1000] [--studies 200] [--part usual|further]

Studies are simulated, so that what is true is known: tasks differ in how hard they are, and answers
to one task are alike. Aims: each interval covers in at least 93% in the median and 90% anywhere;
each test rejects a true null in at most 7%, and in at least 3% where counts allow.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from statistics import median
from typing import NamedTuple

import machine
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import chi2

from kerneltruth.analysis.contingency import null_deviance
from kerneltruth.analysis.intervals import geometric_mean, mean_share, rate, rate_of_counts
from kerneltruth.analysis.leaderboard import ranked_methods
from kerneltruth.analysis.metrics import pass_at_k
from kerneltruth.analysis.ranks import rank_correlation
from kerneltruth.analysis.resampling import (
    Counts,
    balanced,
    bootstrap_shares,
    debiased,
    interaction_p,
    p_value,
    shares,
    shuffled_categories,
    shuffled_methods,
)
from kerneltruth.analysis.results import Against, Ratio, Result, TimedShape, timing
from kerneltruth.analysis.trajectories import gain_of

Floats = NDArray[np.float64]
Ends = tuple[float | None, float | None]
RESAMPLES = 199
MORE = 5
LEAST_MEDIAN, LEAST, MOST_REJECTED, LEAST_REJECTED = 0.93, 0.90, 0.07, 0.03


class Found(NamedTuple):
    """How often one interval covered, or one test rejected, in one setting."""

    what: str
    setting: str
    share: float
    draws: int


def hits(ends: Ends, truth: float) -> bool:
    """Whether an interval covers; one that does not exist claims nothing."""
    low, high = ends
    return low is None or high is None or low - 1e-12 <= truth <= high + 1e-12


def repeated(what: str, setting: str, draw: Callable[[], tuple[Ends, float]], draws: int) -> Found:
    return Found(what, setting, sum(hits(*draw()) for _ in range(draws)) / draws, draws)


def beta_of(p: float, alike: float) -> tuple[float, float]:
    """The parameters of tasks' chances with this mean, and this correlation of answers."""
    size = 1 / alike - 1
    return p * size, (1 - p) * size


def rates(rng: Generator, draws: int) -> Iterator[Found]:
    for tasks, p in product((10, 28, 164), (0.05, 0.2, 0.5)):
        yield repeated(
            "rate, an answer a task",
            f"{tasks} tasks, p {p}",
            lambda tasks=tasks, p=p: (_ends(rate(int(rng.binomial(tasks, p)), tasks)), p),  # type: ignore[misc]
            draws,
        )
    for tasks, answers, p, alike in product((10, 28, 164), (3, 10), (0.1, 0.4), (0.1, 0.5)):
        a, b = beta_of(p, alike)

        def draw(
            t: int = tasks, n: int = answers, a: float = a, b: float = b
        ) -> tuple[Ends, float]:
            right = rng.binomial(n, rng.beta(a, b, t))
            return _ends(rate_of_counts([(int(r), n) for r in right])), a / (a + b)

        setting = f"{tasks} tasks of {answers}, p {p}, alike {alike}"
        yield repeated("rate, several answers a task", setting, draw, draws)


def _ends(found: object) -> Ends:
    return found.low, found.high  # type: ignore[attr-defined]


def survival_steps(rng: Generator, draws: int) -> Iterator[Found]:
    """Certified kernels fall at one of six obligations; chances differ by task."""
    for tasks, kernels, step in product((28, 164), (2, 5), (0, 2, 5)):

        def draw(t: int = tasks, n: int = kernels, j: int = step) -> tuple[Ends, float]:
            stay = rng.beta(8, 1.5, (t, 6))[:, : j + 1].prod(1)
            sizes = rng.integers(1, 2 * n, t)
            left = rng.binomial(sizes, stay)
            table = list(zip(left.tolist(), sizes.tolist(), strict=True))
            return _ends(rate_of_counts(table)), (8 / 9.5) ** (j + 1)

        setting = f"{tasks} tasks of {kernels}, obligation {step + 1}"
        yield repeated("survival step", setting, draw, draws)


def pass_at(rng: Generator, draws: int) -> Iterator[Found]:
    for tasks, k, p in product((10, 28, 164), (1, 5), (0.1, 0.4)):
        a, b = beta_of(p, 0.4)
        truth = 1 - math.prod((b + i) / (a + b + i) for i in range(k))
        table = [pass_at_k(n=10, c=c, k=k) for c in range(11)]

        def draw(
            t: int = tasks, a: float = a, b: float = b, tab: list[float] = table, v: float = truth
        ) -> tuple[Ends, float]:
            right = rng.binomial(10, rng.beta(a, b, t))
            return _ends(mean_share([tab[c] for c in right])), v

        yield repeated("pass@k", f"{tasks} tasks of 10, k {k}, p {p}", draw, draws)


def speedups(rng: Generator, draws: int) -> Iterator[Found]:
    for tasks, answers, tail in product((5, 28, 100), (1, 3), ("normal", "t with 3 df")):
        names = np.repeat(np.arange(tasks), answers).tolist()

        def draw(
            t: int = tasks, n: int = answers, tail: str = tail, names: list[int] = names
        ) -> tuple[Ends, float]:
            task = rng.normal(size=t) if tail == "normal" else rng.standard_t(3, t)
            logs = np.repeat(0.2 + 0.5 * task, n) + 0.2 * rng.normal(size=t * n)
            return _ends(geometric_mean(np.exp(logs).tolist(), names)), math.exp(0.2)

        setting = f"{tasks} tasks of {answers}, {tail}"
        yield repeated("geometric mean of speedups", setting, draw, draws)


def ratios(rng: Generator, draws: int) -> Iterator[Found]:
    """Measured ratios have errors of known size, and the intervals that these give."""

    def measured(log: float, width: float) -> Ratio:
        at = log + width * rng.normal()
        ends = (math.exp(at - 1.96 * width), math.exp(at + 1.96 * width))
        return Ratio(1.0, math.exp(at), *ends, None)

    def against(log: float, shapes: int, width: float) -> Against:
        timed = [
            TimedShape(str(n), None, 1.0, None, None, {"eager": measured(log, width)})
            for n in range(shapes)
        ]
        return timing(timed).against["eager"]

    for shapes, width in product((1, 3), (0.005, 0.05)):

        def one(s: int = shapes, w: float = width) -> tuple[Ends, float]:
            return _ends(against(0.3, s, w)), math.exp(0.3)

        def gain(s: int = shapes, w: float = width) -> tuple[Ends, float]:
            return _ends(gain_of(against(0.1, s, w), against(0.4, s, 2 * w))), math.exp(0.3)

        setting = f"{shapes} shapes, errors {width:.1%}"
        yield repeated("speedup of an answer over shapes", setting, one, draws)
        yield repeated("ratio of two rounds' speedups", setting, gain, draws)


def ranks(rng: Generator, draws: int) -> Iterator[Found]:
    for pairs, r in product((10, 28, 165), (0.0, 0.3, 0.8)):
        truth = 6 / math.pi * math.asin(r / 2)

        def draw(n: int = pairs, r: float = r, v: float = truth) -> tuple[Ends, float]:
            x = rng.normal(size=n)
            y = r * x + math.sqrt(1 - r * r) * rng.normal(size=n)
            return _ends(rank_correlation(x.tolist(), y.tolist())), v

        yield repeated("rank correlation", f"{pairs} tasks, Pearson's {r}", draw, draws)


class World(NamedTuple):
    """How answers come about: log-odds by category, by method, and of a task's own."""

    tasks: int
    samples: int
    category: float
    method: float
    task: float
    categories: int = 8
    methods: int = 4
    uneven: bool = False

    def study(self, rng: Generator, tasks: int | None = None) -> Counts:
        """Draw the answers of a study, with its own number of tasks or another one."""
        count = tasks or self.tasks
        belongs = np.arange(count) % self.categories
        odds = -0.4 + self.category * np.linspace(-1, 1, self.categories)[belongs, None]
        odds = odds + self.method * np.linspace(-1, 1, self.methods)[None, :]
        odds = odds + self.task * rng.normal(size=(count, 1))
        # Every other method has three times as many answers.
        of_method = self.samples * np.where(np.arange(self.methods) % 2, 3 if self.uneven else 1, 1)
        total = np.broadcast_to(of_method.astype(float), odds.shape).copy()
        right = rng.binomial(total.astype(int), 1 / (1 + np.exp(-odds))).astype(float)
        return Counts(right=right, total=total, category=belongs, categories=self.categories)

    def __str__(self) -> str:
        each = f"{self.samples} or {3 * self.samples}" if self.uneven else f"{self.samples}"
        return f"{self.tasks} tasks, {each} answers each, tasks vary by {self.task:g}"


# It takes answers as independent; `analyze` shows it beside and warns of it.
LIKELIHOOD = "likelihood-ratio test, category"
TERMS = ("category", "method", "both")


def worlds() -> Iterator[World]:
    """Studies whose factors have effects, and as many answers of each method."""
    for size, samples in product((40, 160), (1, 3)):
        yield World(size, samples, 0.7, 0.7, 1.0)


def further_worlds() -> Iterator[World]:
    """Studies without an effect of category, of method or of both; or with uneven methods."""
    for size, (category, method) in product((40, 160), ((0.0, 0.7), (0.7, 0.0), (0.0, 0.0))):
        yield World(size, 1, category, method, 1.0)
    for size in (40, 160):
        yield World(size, 1, 0.7, 0.7, 1.0, uneven=True)


def deviance_shares(rng: Generator, studies: int, made: Iterable[World]) -> Iterator[Found]:
    for world in made:
        truth = shares(*world.study(rng, 40_000).table())
        found = {term: 0 for term in TERMS}
        for number in range(studies):
            counts = world.study(rng)
            seen = shares(*counts.table())
            spread = bootstrap_shares(counts, seed=number, resamples=RESAMPLES)
            for term in TERMS:
                ends = debiased(float(getattr(seen, term)), getattr(spread, term))
                found[term] += hits(ends or (None, None), float(getattr(truth, term)))
        absent = {"category": not world.category, "method": not world.method, "both": False}
        absent["both"] = absent["category"] and absent["method"]
        for term in TERMS:
            what = f"deviance share, {term}{', without an effect' if absent[term] else ''}"
            yield Found(what, str(world), found[term] / studies, studies)


def ties(rng: Generator, draws: int) -> Iterator[Found]:
    """The leaderboard's test of two methods that are equally good; what a task has is shared."""
    for tasks, samples, alike in product((10, 28, 100), (1, 3), (0.1, 0.5)):
        a, b = beta_of(0.4, alike)
        apart = 0
        for _ in range(draws):
            chances = rng.beta(a, b, tasks)
            answers = [
                answer(f"core/t{task}", method, right)
                for method in ("a", "b")
                for task in range(tasks)
                for right in rng.random(samples) < chances[task]
            ]
            apart += any(not found.tied for found in ranked_methods(answers, "right"))
        setting = f"{tasks} tasks of {samples}, alike {alike}"
        yield Found("leaderboard's test of two methods", setting, apart / draws, draws)


def answer(task: str, method: str, right: bool) -> Result:
    """An answer of which nothing counts but whether it is right."""
    word = "pass" if right else "fail"
    return Result(
        run=0,
        key=method,
        task=task,
        category=None,
        origin="",
        sha256="",
        language="triton",
        method=method,
        model=None,
        sample=None,
        round=None,
        call="pass",
        exe=word,
        perf="not_run",
        verdict=word,
    )


def even() -> Iterator[tuple[int, int, float, bool]]:
    """Sizes, answers, how much tasks vary, and whether methods differ in their answers."""
    for size, samples, task in product((40, 160), (1, 3), (0.0, 1.5)):
        yield size, samples, task, False


def uneven() -> Iterator[tuple[int, int, float, bool]]:
    for size, task in product((40, 160), (0.0, 1.5)):
        yield size, 1, task, True


def nulls(
    rng: Generator, studies: int, made: Iterable[tuple[int, int, float, bool]]
) -> Iterator[Found]:
    """Tests of factors without an effect, where the other factor and the tasks have one."""
    for size, samples, task, differ in made:
        rejected = {"category": 0, "category added to method": 0, "method": 0}
        rejected |= {"method added to category": 0, LIKELIHOOD: 0}
        without = World(size, samples, 0.0, 0.7, task, uneven=differ)
        alike = World(size, samples, 0.7, 0.0, task, uneven=differ)
        both = World(size, samples, 0.7, 0.7, task, uneven=differ)
        for number in range(studies):
            counts = without.study(rng)
            seen = shares(*counts.table())
            chance = shuffled_categories(counts, seed=number, permutations=RESAMPLES)
            drop = float(seen.category * null_deviance(*counts.table()))
            rejected[LIKELIHOOD] += chi2.sf(drop, counts.categories - 1) <= 0.05
            rejected["category"] += p_value(float(seen.category), chance.category) <= 0.05
            gain = p_value(float(seen.both - seen.method), chance.both - chance.method)
            rejected["category added to method"] += gain <= 0.05
            counts = alike.study(rng)
            seen = shares(*balanced(counts).table())
            chance = shuffled_methods(counts, seed=number, permutations=RESAMPLES)
            rejected["method"] += p_value(float(seen.method), chance.method) <= 0.05
            gain = p_value(float(seen.both - seen.category), chance.both - chance.category)
            rejected["method added to category"] += gain <= 0.05
        for name, count in rejected.items():
            kind = "" if name == LIKELIHOOD else "permutation test, "
            yield Found(f"{kind}{name}", str(without), count / studies, studies)
        # It is quick, and near the aim: more studies tell.
        many = MORE * studies
        crossed = sum(
            interaction_p(both.study(rng), seed=number, permutations=RESAMPLES) <= 0.05
            for number in range(many)
        )
        yield Found("sign-flip test, interaction", str(both), crossed / many, many)


def summed(found: list[Found], tests: bool) -> Iterator[tuple[object, ...]]:
    for what in dict.fromkeys(f.what for f in found):
        own = [f for f in found if f.what == what]
        least, most = min(own, key=lambda f: f.share), max(own, key=lambda f: f.share)
        middle = median(f.share for f in own)
        if tests:
            good = most.share <= MOST_REJECTED and middle >= LEAST_REJECTED
            worst = most
        else:
            good = middle >= LEAST_MEDIAN and least.share >= LEAST
            worst = least
        yield (
            what,
            len(own),
            own[0].draws,
            f"{least.share:.1%}",
            f"{middle:.1%}",
            f"{most.share:.1%}",
            "yes" if good else "no",
            worst.setting,
        )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="of each simple interval")
    parser.add_argument("--studies", type=int, default=200, help="of the deviance, by setting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--part",
        choices=("usual", "further"),
        default="usual",
        help="further: ties of a leaderboard, methods with more answers, factors without an effect",
    )
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    if options.part == "usual":
        simple = (rates, survival_steps, pass_at, speedups, ratios, ranks)
        intervals = [f for part in simple for f in part(rng, options.draws)]
        intervals += deviance_shares(rng, options.studies, worlds())
        tests = list(nulls(rng, options.studies, even()))
    else:
        intervals = list(deviance_shares(rng, options.studies, further_worlds()))
        tests = [*ties(rng, options.draws), *nulls(rng, options.studies, uneven())]
    head = ("settings", "draws each", "least", "median", "most", "aim met")
    sure = 1.96 * math.sqrt(0.05 * 0.95 / options.studies)
    lines = [
        f"Simulated studies with known truth, seed {options.seed}; {RESAMPLES} resamples or "
        "shuffles in each study, where `analyze` takes 1,000. Shares of stages, fast_p, illusions, "
        "kernels below 1x and refinement have the interval of a rate. Aims: 93% in the median and "
        "90% anywhere.",
        "",
        *machine.table(("95% interval", *head, "setting of the least"), summed(intervals, False)),
        "",
        "True nulls that a test rejects at 5%. Aims: 7% anywhere, and 3% in the median. With "
        f"{options.studies} studies a test that rejects 5% shows {0.05 - sure:.1%} to "
        f"{0.05 + sure:.1%} by chance.",
        "",
        *machine.table(("test", *head, "setting of the most"), summed(tests, True)),
    ]
    title = "Coverage of the intervals and size of the tests of `analyze`"
    about = machine.facts("cpu")
    name = "coverage" if options.part == "usual" else "coverage_further"
    machine.publish(name, title, about, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
