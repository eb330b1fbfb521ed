"""Define `generate`, which obtains candidates from a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    AsJson,
    ContractOption,
    Device,
    DrawnSeed,
    Out,
    Timeout,
    Workers,
    follow,
    settled_seed,
    show_document,
)
from kerneltruth.errors import UserError
from kerneltruth.report import exit_codes

if TYPE_CHECKING:
    from kerneltruth.documents.model import Json
    from kerneltruth.generate.account import Prices


@app.command()
def generate(
    method: Annotated[str, typer.Option("--method", help="one_shot, best_of_n, refine or import.")],
    suite: Annotated[
        str, typer.Option("--suite", help="The suite; kernelbench:PATH or flashinfer:PATH too.")
    ] = "kernelbenchx",
    model: Annotated[
        str | None,
        typer.Option("--model", help="As the endpoint names it, or replay:FILE; import: a label."),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="Only these tasks (repeatable).")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option("--category", help="Only these categories (repeatable).")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="import: a file or folder of submissions.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", "-n", min=1, help="Answers per task: best_of_n 10, refine 1."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="refine: answers in a chain at most; default 4.")
    ] = None,
    contract: ContractOption = "core",
    cases: Annotated[
        int | None,
        typer.Option(
            "--cases", min=1, help="refine: cases judged per round (16, or what the task promises)."
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", min=0, help="Default: best_of_n 0.8, else the endpoint's."),
    ] = None,
    reply_tokens: Annotated[
        int, typer.Option("--reply-tokens", min=1, help="Most tokens of one answer.")
    ] = 8192,
    body: Annotated[
        list[str] | None,
        typer.Option("--body", metavar="KEY=JSON", help="Field of each request (repeatable)."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="The endpoint; default: OPENAI_BASE_URL, else OpenAI's."),
    ] = None,
    key_variable: Annotated[
        str,
        typer.Option("--key-variable", help="Environment variable that holds the key."),
    ] = "OPENAI_API_KEY",
    stream: Annotated[bool, typer.Option("--stream", help="Take answers in pieces.")] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.01, help="Requests per minute at most.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=256, help="Requests open at once.")
    ] = 8,
    retries: Annotated[
        int, typer.Option("--retries", min=0, help="Further calls after one without an answer.")
    ] = 6,
    reply_timeout: Annotated[
        float, typer.Option("--reply-timeout", min=0.1, help="Seconds allowed for one answer.")
    ] = 600.0,
    budget_calls: Annotated[
        int | None, typer.Option("--budget-calls", min=1, help="Calls in all, retries too.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=1, help="Tokens in all, both ways.")
    ] = None,
    budget_seconds: Annotated[
        float | None,
        typer.Option("--budget-seconds", min=0, help="Send no call after that."),
    ] = None,
    price_prompt: Annotated[
        float | None, typer.Option("--price-prompt", min=0, help="Per million tokens.")
    ] = None,
    price_completion: Annotated[
        float | None, typer.Option("--price-completion", min=0, help="Per million tokens.")
    ] = None,
    templates: Annotated[
        Path | None, typer.Option("--templates", help="A folder with prompts of your own.")
    ] = None,
    show_reference: Annotated[
        bool, typer.Option("--show-reference", help="Show the model a reference in PyTorch.")
    ] = False,
    example: Annotated[bool, typer.Option(help="Show a small worked example.")] = True,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: DrawnSeed = None,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
) -> None:
    """Obtain candidates from a model; `run --candidates` judges them. Resumes where it stopped."""
    from kerneltruth.generate.account import SpendingLimits
    from kerneltruth.generate.chat import Sampling
    from kerneltruth.generate.requests import Calling, GenerateRequest, TaskSelection
    from kerneltruth.generate.start import run_generate
    from kerneltruth.report.generate_view import generate_view

    options = GenerateRequest(
        suite=suite,
        method=method,
        model=model,
        samples=samples,
        rounds=rounds,
        sampling=Sampling(
            temperature=temperature, reply_tokens=reply_tokens, body=_body(body or ())
        ),
        calling=Calling(
            url=base_url,
            key_variable=key_variable,
            stream=stream,
            per_minute=rate,
            concurrency=concurrency,
            retries=retries,
            timeout_s=reply_timeout,
        ),
        asking=TaskSelection(
            tasks=tuple(task or ()),
            categories=tuple(category or ()),
            templates=templates,
            show_reference=show_reference,
            show_example=example,
        ),
        limits=SpendingLimits(
            calls=budget_calls,
            tokens=budget_tokens,
            seconds=budget_seconds,
            reply_tokens=reply_tokens,
        ),
        prices=_prices(price_prompt, price_completion),
        source=source,
        device=device,
        seed=settled_seed(seed, out),
        out=out,
        workers=workers,
        deadline_s=timeout,
        cases=cases,
        contract=contract,
    )
    document = follow(run_generate(options), quiet=as_json)
    show_document(document, generate_view, as_json)
    raise typer.Exit(exit_codes.of_generate(document))


def _prices(prompt: float | None, completion: float | None) -> Prices | None:
    """Return the prices that the options give.

    Raises:
        UserError: one price without the other.
    """
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        missing = "--price-prompt" if prompt is None else "--price-completion"
        raise UserError(f"{missing} is missing: a cost needs both prices, per million tokens")
    from kerneltruth.generate.account import Prices

    return Prices(prompt=prompt, completion=completion)


def _body(fields: Iterable[str]) -> dict[str, Json]:
    """Return the extra request fields that are given as KEY=JSON.

    Raises:
        UserError: an item has another form.
    """
    import json

    found: dict[str, Json] = {}
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
