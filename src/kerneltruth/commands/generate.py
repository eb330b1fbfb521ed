"""`generate`: candidates from a model. Light to import; what needs torch is in `generating`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerneltruth.commands.devices import choose_device, choose_targets
from kerneltruth.commands.head_start import begin, new_runner
from kerneltruth.commands.step import Step
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.methods.account import Limits, Prices
from kerneltruth.methods.chat import Model, Sampling
from kerneltruth.methods.key import checked_url, key_from, shield_process
from kerneltruth.methods.recorded import PREFIX, read_recording
from kerneltruth.methods.trajectory import BEST_OF_N_TEMPERATURE, Method, method_of

IMPORT = "import"
DEFAULT_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How the endpoint is called.

    Attributes:
        url: None means OPENAI_BASE_URL, else OpenAI's own.
        key_variable: the environment variable that holds the key.
        per_minute: requests that may leave in a minute.
        concurrency: requests on their way at once.
    """

    url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    stream: bool = False
    per_minute: float | None = None
    concurrency: int = 8
    retries: int = 6
    timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked.

    Attributes:
        tasks: names; empty means all of the suite (of a recording: all that it has).
        categories: restrict them further.
        templates: a folder of the user's own prompts.
    """

    tasks: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    templates: Path | None = None
    show_reference: bool = False
    show_example: bool = True

    @property
    def restricts(self) -> bool:
        """Whether not all tasks are meant."""
        return bool(self.tasks or self.categories)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """What the command line says.

    Attributes:
        model: a name that the endpoint knows, or `replay:FILE`.
        source: what `--method import` reads.
        cases: judged per round of `refine`; None as for `run`.
    """

    suite: str
    method: str
    model: str | None = None
    samples: int | None = None
    rounds: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    calling: Calling = field(default_factory=Calling)
    asking: Asking = field(default_factory=Asking)
    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    source: Path | None = None
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    cases: int | None = None
    targets: tuple[str, ...] = ("sm_90",)


def run_generate(options: GenerateOptions) -> Generator[Step, None, dict[str, Any]]:
    """Obtain candidates; yields steps and returns the document of `generate --json`."""
    start = time.monotonic()
    if options.method == IMPORT:
        if options.source is None:
            raise UserError("--method import: say what to read with --from PATH")
        from kerneltruth.commands.generate_import import import_submissions

        return (yield from import_submissions(options, start))
    if options.source is not None:
        raise UserError(f"--from {options.source}: only --method import reads submissions")
    method = method_of(options.method, samples=options.samples, rounds=options.rounds)
    sampling = _sampling(method, options.sampling)
    model = open_model(options, sampling)
    try:
        if not method.asks_the_judge:
            from kerneltruth.commands.generating import generate

            return (yield from generate(options, method, sampling, model, None, start))
        device, targets = choose_device(options.device), choose_targets(options.targets)
        with new_runner(device, targets) as runner:
            begin(runner)
            from kerneltruth.commands.generating import generate

            return (yield from generate(options, method, sampling, model, runner, start))
    finally:
        model.close()


def _sampling(method: Method, given: Sampling) -> Sampling:
    if method.name != "best_of_n" or given.temperature is not None:
        return given
    return Sampling(
        temperature=BEST_OF_N_TEMPERATURE, reply_tokens=given.reply_tokens, body=given.body
    )


def open_model(options: GenerateOptions, sampling: Sampling) -> Model:
    """The model that options name; nothing is sent yet.

    Raises:
        UserError: there is no key, no such recording, or no URL.
        EnvironmentFault: the `openai` client is not installed.
    """
    name = options.model
    if not name:
        raise UserError("--model: name one that the endpoint has, or replay:FILE")
    if name.startswith(PREFIX):
        return read_recording(Path(name.removeprefix(PREFIX)))
    calling = options.calling
    url = address_of(options)
    key = key_from(os.environ, calling.key_variable)
    shown = json.dumps([url, name, dict(sampling.body)])
    if key.hide(shown) != shown:
        raise UserError(
            f"an option holds the key of {calling.key_variable}: the key comes from the "
            "environment alone; take it out of the options"
        )
    try:
        from kerneltruth.methods.endpoint import Endpoint
    except ImportError as error:
        raise EnvironmentFault(
            "the client `openai` is not installed: pip install 'kerneltruth[study]' "
            "(--model replay:FILE works without)"
        ) from error
    if key.is_secret:
        shield_process()
    return Endpoint(
        name=name,
        url=url,
        key=key,
        sampling=sampling,
        timeout_s=calling.timeout_s,
        stream=calling.stream,
    )


def address_of(options: GenerateOptions) -> str:
    """The endpoint's base URL.

    Raises:
        UserError: it is no URL, or holds a secret.
    """
    return checked_url(options.calling.url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL)


def prices_of(prompt: float | None, completion: float | None) -> Prices | None:
    """The prices that options give.

    Raises:
        UserError: one without the other.
    """
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        missing = "--price-prompt" if prompt is None else "--price-completion"
        raise UserError(f"{missing} is missing: a cost needs both prices, per million tokens")
    return Prices(prompt=prompt, completion=completion)


def body_of(fields: Iterable[str]) -> dict[str, Any]:
    """Further fields of requests, given as KEY=JSON.

    Raises:
        UserError: not of that form.
    """
    found: dict[str, Any] = {}
    for item in fields:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UserError(f"--body {item!r}: must be KEY=JSON, such as seed=7")
        try:
            found[name] = json.loads(value)
        except ValueError as error:
            raise UserError(
                f"--body {item!r}: {value!r} is not JSON; a text needs its quotes: "
                f"{name}='\"{value}\"'"
            ) from error
    return found
