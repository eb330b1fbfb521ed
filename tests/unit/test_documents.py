"""What the documents name exists, what they show works, and their numbers are the code's."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import torch
import typer

import kerneltruth
from kerneltruth.cases import drafts
from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.shapes import PUBLISHED
from kerneltruth.cases.strategies import STRATEGIES
from kerneltruth.cli import app
from kerneltruth.clock.integrity import spot_checks
from kerneltruth.clock.schedule.timed_cases import MOST_ELEMENTS
from kerneltruth.corpus import entry as corpus_entry
from kerneltruth.corpus.published import ENTRIES as PUBLISHED_KERNELS
from kerneltruth.documents.verdict import Failed, FailKind, Passed, Verdict
from kerneltruth.engine.requests import CASES_OF_FILE, AuditRequest
from kerneltruth.oracle import bounds, decoys, probes
from kerneltruth.oracle.admissible import TF32_MANTISSA_BITS
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.peers import CHECKS
from kerneltruth.report import exit_codes
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runs.store import SNAPSHOT_LIMIT
from kerneltruth.suites.catalog import open_suite
from kerneltruth.suites.suite import Opening

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"]
)
PACKAGE = Path(kerneltruth.__file__).parent
RESULTS = ROOT / "benchmarks" / "results"
# Written on a machine with a GPU, by benchmarks/interpreter_fidelity.py.
MADE_ELSEWHERE = ("docs/results/interpreter.md",)
# docs/guides/tasks.md walks through adding these, so they are not there.
ADDED_BY_THE_READER = ("src/kerneltruth/corpus/controls/row_rms.py",)

TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in DOCUMENTS
    if str(path.relative_to(ROOT)) not in MADE_ELSEWHERE
}
FIGURES = TEXTS["docs/results/figures.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EACH = pytest.mark.parametrize("name", TEXTS)


def code_blocks(name, language):
    return [body for kind, body in FENCE.findall(TEXTS[name]) if kind == language]


def is_defined(path):
    """Whether `folder/file.name` or `folder/file.Class.method` is in the package."""
    module, _, name = path.partition(".")
    file = PACKAGE / f"{module}.py"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = name.split(".")
    return all(re.search(rf"^\s*(?:def |class )?{p}\b", text, re.MULTILINE) for p in parts)


def spans(text):
    """Inline code of the prose."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def table(name, *, head):
    """The rows of the table whose header line starts so, as lists of cells without backticks."""
    lines = TEXTS[name].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


def commands():
    """(document, words after `kerneltruth`) for every command that is shown."""
    for name, text in TEXTS.items():
        blocks = [line for _, body in FENCE.findall(text) for line in body.splitlines()]
        indented = [line for line in text.splitlines() if line.startswith("    ")]
        for line in (*spans(text), *blocks, *indented):
            shown = re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?kerneltruth +([^-].*)", line)
            if shown:
                words = re.split(r"#| {2,}", shown[1])[0]
                yield name, tuple(words.replace("[", "").replace("]", "").split())


COMMANDS = typer.main.get_command(app).commands


def options_of(command):
    return {o for p in COMMANDS[command].params for o in (*p.opts, *p.secondary_opts)}


def test_every_link_leads_to_a_file_and_a_heading():
    script = runpy.run_path(str(ROOT / "benchmarks" / "check_links.py"))
    assert script["main"]() == 0


@pytest.mark.parametrize("link", ["[a](gone.md)", "[a](bounds.md#no-such-part)", "[a](../../src)"])
def test_a_broken_link_is_found(link, tmp_path):
    root = tmp_path / "docs" / "explanation"
    root.mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (root / "bounds.md").write_text("# Bounds\n\n## The spread bound\n", encoding="utf-8")
    page = root / "page.md"
    page.write_text(f"{link} and [right](bounds.md#the-spread-bound)\n", encoding="utf-8")
    script = runpy.run_path(str(ROOT / "benchmarks" / "check_links.py"))
    assert len(list(script["faults"](page, tmp_path / "docs"))) == 1


@EACH
def test_a_file_that_is_named_exists(name):
    folders = ("src", "tests", "docs", "benchmarks", *(p.name for p in PACKAGE.iterdir()))
    words = [s.split()[0] for s in spans(TEXTS[name]) if s.strip()]
    named = [s for s in words if "/" in s and s.partition("/")[0] in folders]
    missing = [
        s
        for s in named
        if s not in (*ADDED_BY_THE_READER, *MADE_ELSEWHERE)
        and not any((base / s).exists() for base in (ROOT, PACKAGE))
        and not is_defined(s)
    ]
    assert missing == []


def test_a_function_that_is_gone_is_found():
    assert is_defined("clock/comparison.comparisons")
    assert not is_defined("clock/comparison.no_such_function")
    assert not is_defined("clock/no_such_file.comparisons")


@EACH
def test_a_script_that_is_named_exists(name):
    scripts = re.findall(r"benchmarks/\w+\.(?:py|sh)", TEXTS[name])
    assert [s for s in scripts if not (ROOT / s).exists()] == []


def test_the_papers_page_names_results_that_exist():
    named = set(re.findall(r"`([\w.-]+\.(?:md|txt))`", TEXTS["docs/results/papers.md"]))
    assert len(named) > 8
    assert [name for name in named if not (RESULTS / name).exists()] == []


@pytest.mark.parametrize(
    ("page", "file", "there"),
    [
        ("5.4% (0 to 8.6)", "published_factors", "5.4% (0.0% to 8.6%)"),
        ("9.4% (3.6 to 13.6)", "published_factors", "9.4% (3.6% to 13.6%)"),
        ("40 of 66 (61%)", "published_factors", "40 of 66"),
        ("435 return from a call", "published_factors", "435 return from a call"),
        ("9 of 57 (16%)", "small_study", "9/57 16%"),
        ("69 of 176 (39%)", "published_speeds", "69 (39%)"),
        ("0.82x (0.73 to 0.92)", "published_speeds", "0.82 (0.73 to 0.92)"),
        ("1.24x (1.01 to 1.53)", "small_study", "1.24x (1.01-1.53)"),
        ("13 at 1.31x (1.08 to 1.59)", "small_study", "13, at 1.31x (1.08-1.59)"),
        ("the kernels of 701 compile", "published_factors", "701"),
        ("0 of 10,880 cases", "control_cases", "10,880"),
        ("output bytes 93 of 94", "replay-here", "93 of 94"),
    ],
)
def test_the_papers_page_shows_what_its_results_hold(page, file, there):
    assert page in TEXTS["docs/results/papers.md"]
    assert there in (RESULTS / f"{file}-nvidia-h100-80gb-hbm3.md").read_text("utf-8")


@pytest.mark.parametrize("share", ["91.6%", "6.7%", "7.7%", "2.3%"])
def test_the_statistics_page_shows_the_coverage_that_was_measured(share):
    assert share in (RESULTS / "coverage-cpu.md").read_text("utf-8")
    assert share.removesuffix("%") in TEXTS["docs/reference/analysis.md"]


def test_the_papers_page_counts_the_bugs_that_a_check_on_one_shape_passes():
    lines = (RESULTS / "audit-cpu.txt").read_text("utf-8").splitlines()
    bugs = [entry.name for entry in PUBLISHED_KERNELS if entry.role == "bug"]
    marks = {
        n: re.split(r"\s{2,}", line.strip()) for line in lines for n in bugs if f" {n} " in line
    }
    head = re.split(r"\s{2,}", lines[1].strip())
    passed = sum(marks[name][head.index("1shape")] == "ok" for name in bugs)
    assert len(bugs) == 10
    assert f"| 10 of 10 | {passed} of 10: " in TEXTS["docs/results/papers.md"]


def test_every_script_of_the_figures_is_named_and_exists():
    scripts = {row[0] for row in table("benchmarks/README.md", head="| script |")}
    assert [s for s in scripts if not (ROOT / "benchmarks" / s).exists()] == []
    of_figures = re.findall(r"`benchmarks/(\w+\.py)` \|$", FIGURES, re.MULTILINE)
    assert len(of_figures) > 30
    assert set(of_figures) <= scripts


def test_the_architecture_names_files_where_they_are():
    for folder, holds in table("ARCHITECTURE.md", head="| folder | holds |"):
        base = folder.split("`")[0].rstrip("/")
        for file in re.findall(r"`?(\w+\.py)`?", holds):
            assert list(PACKAGE.glob(f"{base}/**/{file}")), f"{file} is not in {base}"


def test_the_architecture_names_every_folder():
    known = {"clock/"}  # a row for each of its folders
    for folder, holds in table("ARCHITECTURE.md", head="| folder | holds |"):
        base = folder.split("`")[0]
        known |= {base, *(f"{base}{inner}" for inner in re.findall(r"`(\w+/)`", holds))}
        for outer, within in re.findall(r"`(\w+/)` with ((?:`\w+/`(?:, | and )?)+)", holds):
            known |= {f"{base}{outer}{inner}" for inner in re.findall(r"`(\w+/)`", within)}
    folders = {p.parent.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("__init__.py")}
    assert {f"{f}/" for f in folders - {"."}} - known == set()


def test_the_layers_of_the_architecture_are_those_that_lint_checks():
    rule = (
        TEXTS["ARCHITECTURE.md"].partition("Imports go down only:")[2].partition(", and never")[0]
    )
    shown = [set(re.findall(r"`(\w+)`", layer)) for layer in rule.split(">")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in project["tool"]["importlinter"]["contracts"] if "layers" in c)
    assert shown == [set(layer.split(" | ")) for layer in layers]


def test_the_architecture_names_functions_where_they_are():
    for _, folder, begins in table("ARCHITECTURE.md", head="| step | folder | begins in |"):
        for path in begins.replace("`", "").split(", "):
            module, _, rest = path.partition(".")
            base = "" if folder.endswith(".py") else folder.rstrip("/")
            if not rest:
                module, rest = "cli", path
            found = PACKAGE / base / module
            file = found / "__init__.py" if found.is_dir() else found.with_suffix(".py")
            text = file.read_text(encoding="utf-8")
            for part in rest.split("."):
                assert re.search(rf"^\s*(?:def|class) {part}\b", text, re.MULTILINE), path


def test_every_command_is_shown():
    assert {words[0] for _, words in commands()} == set(COMMANDS)


@pytest.mark.parametrize(("name", "words"), sorted(commands()))
def test_a_command_that_is_shown_exists_with_its_options(name, words):
    assert words[0] in COMMANDS, f"{name}: kerneltruth {' '.join(words)}"
    options = {w.partition("=")[0] for w in words[1:] if w.startswith("--")}
    assert options <= options_of(words[0]), f"{name}: kerneltruth {' '.join(words)}"


@EACH
def test_an_option_that_is_named_exists(name):
    known = set().union(*(options_of(c) for c in COMMANDS))
    of_scripts = set()
    plugin = PACKAGE / "library" / "pytest_plugin.py"
    for script in (plugin, *(ROOT / "benchmarks").glob("*.py")):
        of_scripts |= set(re.findall(r'"(--[a-z-]+)"', script.read_text(encoding="utf-8")))
    named = {s.split()[0] for s in spans(TEXTS[name]) if s.startswith("--")}
    assert named <= known | of_scripts


@EACH
def test_a_make_target_that_is_named_exists(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = re.findall(r"(?:^|`)make ([a-z-]+)", TEXTS[name], re.MULTILINE)
    assert [t for t in shown if not re.search(rf"^{t}:", makefile, re.MULTILINE)] == []


@EACH
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(name):
    cells = 0
    for line in FENCE.sub("", TEXTS[name]).splitlines():
        if not line.startswith("|"):
            cells = 0
            continue
        count = re.sub(r"`[^`]*`", "", line).count("|")
        cells = cells or count
        assert count == cells, line


def test_the_numbers_of_the_spread_bound_are_the_codes():
    text = TEXTS["docs/explanation/bounds.md"]
    assert f"bound = {bounds.FACTOR} * spread  +  {bounds.RMS_FACTOR} * growth" in text
    for terms in (bounds.FULL_TERMS, bounds.FINER_TERMS, bounds.FLOOR_TERMS):
        assert f"sqrt(terms / {terms})" in text
    assert f"an ulp of 2^-{TF32_MANTISSA_BITS}" in text
    rows = table("docs/explanation/bounds.md", head="| dtype | a:")
    assert {d: (float(a), float(b)) for d, a, b in rows} == bounds.FLOOR_ULPS


def test_the_fixed_bounds_and_the_gains_are_the_codes():
    floats = " | ".join(bounds.FIXED_DEFAULT)
    tables = [
        i
        for i, s in enumerate(TEXTS["docs/explanation/bounds.md"].splitlines())
        if s == f"| {floats} |"
    ]
    shown = [TEXTS["docs/explanation/bounds.md"].splitlines()[i + 2] for i in tables]
    numbers = [[float(cell) for cell in row.strip("|").split("|")] for row in shown]
    assert numbers == [list(bounds.FIXED_DEFAULT.values()), list(decoys.GAIN.values())]
    assert f"last {decoys.LAST_TILE} elements" in TEXTS["docs/explanation/bounds.md"]
    assert f"within {decoys.RIGHT_WITHIN_ULPS} ulps" in TEXTS["docs/explanation/bounds.md"]
    assert [m for m, *_ in table("docs/explanation/bounds.md", head="| method |")] == [
        "spread` (default)",
        *bounds.METHODS[1:],
    ]


def test_every_strategy_is_documented_and_no_other():
    assert [s for s, _ in table("docs/reference/cases.md", head="| strategy |")] == list(STRATEGIES)
    assert set(STRATEGIES) == set(drafts.TURNS)
    says = dict(table("docs/reference/cases.md", head="| strategy |"))
    assert set(PUBLISHED) == {int(n) for n in re.findall(r"\d+", says["boundary"])}


def test_every_verdict_is_documented_with_its_exit_code():
    known = [kind.__struct_config__.tag for kind in get_args(Verdict)]
    rows = table("docs/reference/verdicts.md", head="| verdict |")
    assert sorted(word for word, *_ in rows) == sorted(known)
    for word, _, code in rows:
        if code:
            assert exit_codes.of_check(word) == int(code), word


def test_every_kind_of_failure_is_documented():
    after = TEXTS["docs/reference/verdicts.md"].partition("Kinds of `fail`:")[2]
    paragraph = after.partition("No check")[0]
    assert tuple(re.findall(r"`(\w+)`", paragraph)) == get_args(FailKind)


def test_counts_in_the_prose_are_the_codes():
    assert f"judges {CASES_OF_FILE} cases" in TEXTS["docs/reference/cases.md"]
    assert f"`audit` {AuditRequest().cases} per kernel" in TEXTS["docs/reference/cases.md"]
    assert probes.REPEATS == 2
    assert "twice unchanged" in TEXTS["docs/reference/cases.md"]
    assert f"| {len(RECIPES)} recipes," in TEXTS["docs/explanation/peers.md"]
    assert f"| {len(LAYOUTS)}, as the kernel gets them |" in TEXTS["docs/explanation/peers.md"]
    assert len(CHECKS) == 10
    assert "run ten correctness checks" in TEXTS["docs/explanation/peers.md"]
    assert f"up to {SNAPSHOT_LIMIT // 2**20} MiB" in TEXTS["docs/guides/replay.md"]


def test_the_number_of_spot_checked_calls_is_documented():
    text = " ".join(TEXTS["docs/explanation/timing.md"].split())
    assert f"Up to {spot_checks.MOST_CALLS} of their calls" in text
    assert f"Up to {spot_checks.SPOTS:,} elements of each result are kept" in text
    assert "more than 2**25 elements" in text
    assert MOST_ELEMENTS == 2**25


def test_the_results_show_the_audits_last_output(monkeypatch):
    stored = RESULTS / "audit-cpu.txt"
    if not stored.exists():
        assert "Not measured yet" in TEXTS["docs/results/audit.md"]
        return
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr("sys.argv", ["refresh_audit.py", "--check"])
    script = runpy.run_path(str(ROOT / "benchmarks" / "refresh_audit.py"))
    assert script["main"]() == 0, "run benchmarks/refresh_audit.py"


@pytest.fixture(scope="module")
def example():
    """The task and the kernel that docs/guides/tasks.md shows."""
    declaration, _, _, kernel, _ = code_blocks("docs/guides/tasks.md", "python")
    scope = {}
    exec(compile(declaration, "docs/guides/tasks.md", "exec"), scope)
    return scope["ROW_RMS"], declaration, kernel


def judge(runner, task, source):
    candidate = read_candidate(source, f"{task.name}.py", task_names=(task.name,), task=task.name)
    cache = ExpectationCache(Policy())
    with CandidateSession(task, candidate, runner, cache, deadline_s=20.0) as session:
        *_, ended = judge_cases(session, Plan(cases=12, compile=False))
    return ended.attempt


def test_the_example_task_takes_ten_lines(example):
    _, declaration, _ = example
    assert len(declaration.partition("\n\n")[2].strip().splitlines()) <= 10


def test_the_example_takes_the_function_that_draws_its_inputs(example, tmp_path):
    _, declaration, _ = example
    drawn = code_blocks("docs/guides/tasks.md", "python")[1]
    path = tmp_path / "my_tasks.py"
    own = declaration.replace("    flops=", "    inputs=drawn,\n    flops=")
    path.write_text(own.replace("ROW_RMS", f"{drawn}\n\nROW_RMS"))
    given = Opening(option=f"tasks:{path}", runner=Runner(device="cpu"))
    task = open_suite(given)["my_tasks/row_rms"]
    assert task.benchmark.distribution == "own"


def test_the_example_of_plain_pytorch_does_not_overflow_in_half_precision():
    _, _, eager, _, _ = code_blocks("docs/guides/tasks.md", "python")
    scope = {"torch": torch}
    exec(eager, scope)
    assert scope["row_rms"](torch.full((1, 4), 1000.0, dtype=torch.float16)).tolist() == [1000.0]


@pytest.mark.processes
def test_the_example_control_is_clean(runner, example):
    task, _, kernel = example
    attempt = judge(runner, task, kernel)
    assert attempt.verdict == Passed(), attempt.failure
    assert attempt.cases == 12


@pytest.mark.processes
def test_the_example_bug_is_caught_as_documented(runner, example):
    task, _, kernel = example
    wrong = kernel.replace("axis=0) / n", "axis=0) / BLOCK")
    assert wrong != kernel
    attempt = judge(runner, task, wrong)
    assert isinstance(attempt.verdict, Failed)
    size = attempt.failure.case.sizes["N"]
    assert size & (size - 1)


def test_the_example_entries_are_declarations():
    _, _, _, _, entries = code_blocks("docs/guides/tasks.md", "python")
    scope = {"control": corpus_entry.control, "bug": corpus_entry.bug}
    right, wrong = eval(f"[{entries}]", scope)
    assert (right.role, wrong.role, wrong.control) == ("control", "bug", right.name)
