"""Find a candidate's language and entry by parsing its source, never by running it.

An entry is, in this order: a function with the task's name, `kernel_function`, `run`, a class
`ModelNew`, a class `Model`. Imported names and Triton kernels are not entries: neither takes
tensors and returns tensors.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from kerneltruth.documents.records import CandidateRef
from kerneltruth.errors import CandidateError, UserError
from kerneltruth.runner.bundle import Bundle, TooManyWords, bundle_in, parsed
from kerneltruth.runner.languages import Language
from kerneltruth.runner.regular_file import read_regular

# How a command line names the standard input, and how documents do.
STDIN, STDIN_NAME = "-", "<stdin>"
# TritonBench and KernelBenchX separate a candidate from the tests below it by a line of this many
# #.
TESTS_BELOW = "#" * 146
# A file with a ModelNew may also contain the Model that it replaces; that Model is not its entry.
_MODELS = ("ModelNew", "Model")
GENERIC_ENTRIES = ("kernel_function", "run", *_MODELS)
_KERNEL_DECORATORS = {"jit", "autotune", "heuristics"}
_CUDA_NAMES = {"load_inline", "cpp_extension", "CUDAExtension", "RawKernel", "RawModule"}
_HOLD_KERNELS = (".so", ".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp", ".ptx", ".cubin")
# What every library calls that nvcc has built with kernels in it.
_CUDA_REGISTERS = b"__cudaRegisterFunction"
# Packages without kernels besides PyTorch's own; Triton's kernels are its decorated functions.
_NO_KERNELS = ("torch", "numpy", "triton", "typing_extensions", "einops", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A kernel under judgement.

    Attributes:
        entry: the task's name if the task was inferred from it.
        reads: the files that it may read beside its source, which holds them, if it has several.
        trusted: whether it is the judge's own: PyTorch's function for a task, or a reference. It
            may read any file that the user may.
        pretrained: whether its task is a pretrained model, for which its child offers a small one.
    """

    source: str
    path: str
    sha256: str
    language: Language
    entry: str
    reads: tuple[str, ...] = ()
    trusted: bool = False
    pretrained: bool = False

    @property
    def ref(self) -> CandidateRef:
        """The candidate as results name it."""
        return CandidateRef(
            sha256=self.sha256,
            path=self.path,
            language=self.language,
            entry=self.entry,
            reads=self.reads or UNSET,
        )


def read_source(path: str | Path) -> str:
    """Return the text of a candidate's file.

    Raises:
        UserError: it cannot be read, or is not text.
    """
    try:
        data = read_regular(Path(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot read {str(path)!r}: {reason}; name a Python file") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{str(path)!r} is not text: byte {error.start} is not UTF-8; name a Python file"
        ) from error


def standard_input() -> str:
    """Return the text on the standard input.

    Raises:
        UserError: it is empty, or not text.
    """
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    if not data.strip():
        raise UserError("-: standard input is empty; pipe the source of a kernel into the command")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"-: standard input is not text: byte {error.start} is not UTF-8; pipe a Python file"
        ) from error


def above_tests(text: str) -> str:
    """Return a file's text without the tests that some benchmarks put below a candidate."""
    if bundle_in(text) is not None:
        return text
    return re.split(rf"(?:\A|\n){TESTS_BELOW}\r?(?:\n|\Z)", text, maxsplit=1)[0]


def read_candidate(
    source: str,
    path: str,
    *,
    task_names: Collection[str],
    task: str | None = None,
    entry: str | None = None,
) -> Candidate:
    """Recognize a candidate from its source text.

    Without a task, functions with names of `task_names` may be entries; `entry` is the function
    that the task requires, if different from its name. `path` stands in messages.

    Raises:
        CandidateError: not Python, no entry, or more than one.
        UserError: an unknown task.
    """
    if task is not None and task not in task_names:
        nearest = difflib.get_close_matches(task, task_names, n=3) or sorted(task_names)[:3]
        raise UserError(
            f"unknown task {task!r}; nearest: {', '.join(nearest)}; see `kerneltruth tasks`"
        )
    tree = _parse(source, path)
    bundle = bundle_in(source)
    definitions = _definitions(tree, {*_MODELS, entry or task or ""})
    if bundle is not None:
        definitions = {bundle.function: [1]}
    found = _named_entry(definitions, path, task_names) if task is None else None
    if task is not None:
        names = (entry or task, task, *GENERIC_ENTRIES)
        own = None if bundle is None else bundle.function
        found = next((n for n in names if n in definitions), own)
    if found is None:
        raise CandidateError(_no_entry(definitions, path, entry or task))
    lines = definitions[found]
    if len(lines) > 1:
        where = " and ".join(str(n) for n in lines)
        raise CandidateError(
            f"{path}: {found!r} is defined at lines {where}; a candidate has one entry: remove one"
        )
    return Candidate(
        source=source,
        path=path,
        sha256=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        language=_language(tree) if bundle is None else _language_of(tree, bundle),
        entry=found,
        reads=() if bundle is None else tuple(sorted(bundle.files)),
    )


def only_function(source: str) -> tuple[str, ...]:
    """Return the one public function that a source defines, kernels aside; empty if there are more.

    If a prompt does not name the function, this is the entry.
    """
    try:
        public = public_functions(source, "<candidate>")
    except CandidateError:
        return ()
    return public if len(public) == 1 else ()


def public_functions(source: str, path: str) -> tuple[str, ...]:
    """Return the functions that a source defines, without kernels, helpers (`_name`) and tests.

    Raises:
        CandidateError: it is not Python.
    """
    bundle = bundle_in(source)
    if bundle is not None:
        return (bundle.function,)
    functions = [s for s in _parse(source, path).body if isinstance(s, ast.FunctionDef)]
    found = (n for s in functions for n in _bound(s, ()) if not n.startswith(("_", "test_")))
    return tuple(dict.fromkeys(found))


def returns_value(source: str, entry: str) -> bool:
    """Return whether the entry has a `return` with a value, or its result cannot be parsed.

    It is False for an answer that was cut off before its last lines.
    """
    try:
        tree = _parse(source, "<candidate>")
    except UserError:
        return True
    functions = [
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == entry
        for inner in _called_functions(node)
    ]
    return not functions or any(_returns(function) for function in functions)


def _called_functions(node: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Return the function itself, or what calling an instance of the class runs."""
    if isinstance(node, ast.FunctionDef):
        yield node
        return
    called = ("forward", "__call__", "step")
    yield from (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in called)


def _returns(function: ast.FunctionDef) -> bool:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def is_torch_only(candidate: Candidate) -> bool:
    """Return whether the source is plain PyTorch: no kernel of its own, and no kernel library."""
    if candidate.language != "torch":
        return False
    imported = _imported(_parse(candidate.source, candidate.path))
    if any(Path(name).suffix in _HOLD_KERNELS for name in candidate.reads):
        return False
    own = {name.partition("/")[0].removesuffix(".py") for name in candidate.reads}
    own |= {"."} if candidate.reads else set()
    return imported - own <= {*sys.stdlib_module_names, *_NO_KERNELS}


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level or not node.module else node.module.split(".")[0])
    return found


def _parse(source: str, path: str) -> ast.Module:
    try:
        return parsed(source)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        file = path if bundle_in(source) is None else f"{path}: {error.filename}"
        message = f"{file} is not Python: {line}{error.msg}; correct the file"
        raise CandidateError(message) from error
    except TooManyWords as error:
        raise CandidateError(f"{path} is too long: {error}") from error
    except (RecursionError, MemoryError) as error:
        message = f"{path} nests too deeply for Python to parse it; make its expressions shorter"
        raise CandidateError(message) from error
    except ValueError as error:
        raise CandidateError(f"{path} is not Python: {error}; correct the file") from error


def _named_entry(
    definitions: dict[str, list[int]], path: str, task_names: Collection[str]
) -> str | None:
    """Return the function named after a task, when no task was given."""
    named = [n for n in definitions if n in task_names]
    if len(named) > 1:
        raise UserError(
            f"{path} has entries for {len(named)} tasks: {', '.join(named)}; "
            f"pass --task with one of them"
        )
    return named[0] if named else None


def _no_entry(definitions: dict[str, list[int]], path: str, task: str | None) -> str:
    generic = [n for n in GENERIC_ENTRIES if n in definitions]
    if generic:
        return f"{path}: the entry {generic[0]!r} does not say which task it is for; pass --task"
    if task is None:
        return (
            f"{path} has no entry: no function is named after a task; name one after its task "
            "(see `kerneltruth tasks`), or define kernel_function and pass --task"
        )
    found = ", ".join(list(definitions)[:5]) or "nothing"
    return (
        f"{path} has no entry for {task!r}: it defines {found}; "
        f"define a function {task}, kernel_function or run, or a class ModelNew"
    )


def _definitions(tree: ast.Module, classes: Collection[str]) -> dict[str, list[int]]:
    """Return names that may be entries, with the lines of their unconditional definitions.

    A class counts only if it may be an entry: a model, or an optimizer. A name defined in the
    branches of an `if` or `try` counts once.
    """
    found: dict[str, list[int]] = {}
    for statement in tree.body:
        for name in _bound(statement, classes):
            lines = found.setdefault(name, [])
            # An assignment after a function (`f = torch.compile(f)`) wraps it: no second entry.
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) or not lines:
                lines.append(statement.lineno)
    return found


def _bound(statement: ast.stmt, classes: Collection[str]) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name, decorator_list=decorators):
            words = {_last_name(d.func if isinstance(d, ast.Call) else d) for d in decorators}
            if not words & {*_KERNEL_DECORATORS, "overload"}:
                yield name
        case ast.ClassDef(name=name) if name in classes:
            yield name
        case ast.Assign(targets=targets):
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        case ast.If() | ast.Try() | ast.With():
            yield from dict.fromkeys(n for s in _plain(statement) for n in _bound(s, classes))


def _plain(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements of all branches; a chain of `elif` is deeper than calls may be."""
    waiting = [statement]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, ast.If | ast.Try | ast.With):
            yield each
            continue
        inner = [*each.body, *getattr(each, "orelse", [])]
        for handler in getattr(each, "handlers", []):
            inner += handler.body
        waiting += reversed(inner)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _language_of(tree: ast.Module, bundle: Bundle) -> Language:
    built = (data for name, data in bundle.files.items() if name.endswith(".so"))
    return "cuda" if any(_CUDA_REGISTERS in data for data in built) else _language(tree)


def _language(tree: ast.Module) -> Language:
    imported: set[str] = set()
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
            used |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
            used |= {*node.module.split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Attribute | ast.Name):
            used.add(_last_name(node))
    if used & _CUDA_NAMES:
        return "cuda"
    if "triton" in imported and used & _KERNEL_DECORATORS:
        return "gluon" if _is_gluon(tree) else "triton"
    return "numpy" if "numpy" in imported and "torch" not in imported else "torch"


def _is_gluon(tree: ast.Module) -> bool:
    """Return whether there are kernels, and Gluon brings a decorator of each."""
    nodes = list(ast.walk(tree))
    brought = {"gluon"}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            brought |= {
                alias.asname or alias.name
                for alias in node.names
                if "gluon" in f"{module}.{alias.name}".split(".")
            }
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
    names = [[_dotted(d) for d in f.decorator_list] for f in functions]
    by_gluon = [any(n[0] in brought or "gluon" in n for n in own) for own in names]
    kernels = [any(n[-1] in _KERNEL_DECORATORS for n in own) for own in names]
    return any(by_gluon) and all(b for b, k in zip(by_gluon, kernels, strict=True) if k)


def _dotted(decorator: ast.expr) -> list[str]:
    """Return the words of a dotted name, such as `triton` and `jit`."""
    maker = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(maker).split(".")
