"""Define `generate`, which obtains candidates from a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.errors import UserError
from kerneltruth.report import exit_codes

if TYPE_CHECKING:
    from kerneltruth.documents.model import Json
    from kerneltruth.generate.account import Prices

MethodName = Annotated[
    str, typer.Option("--method", help="one_shot, best_of_n, refine, geak or import.")
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="The endpoint's name for it, or replay:FILE; import: a label."),
]
Tasks = Annotated[list[str] | None, typer.Option("--task", help="Only these tasks (repeatable).")]
Categories = Annotated[
    list[str] | None, typer.Option("--category", help="Only these categories (repeatable).")
]
From = Annotated[
    Path | None, typer.Option("--from", help="import: a file or folder of submissions.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples", "-n", min=1, help="Answers per task: best_of_n 10, refine and geak 1."
    ),
]
Rounds = Annotated[
    int | None, typer.Option("--rounds", help="refine, geak: most answers in a chain; default 4.")
]
Kernels = Annotated[
    bool,
    typer.Option(
        "--kernels",
        help="refine, geak: profile right kernels for their shares of the device's time.",
    ),
]
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases",
        min=1,
        help="refine, geak: cases judged per round (16, or what the task promises).",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        min=0,
        help="0 is greedy decoding. Default: best_of_n 0.8, else the endpoint's.",
    ),
]
ReplyTokens = Annotated[
    int, typer.Option("--reply-tokens", min=1, help="Most tokens of one answer.")
]
Body = Annotated[
    list[str] | None,
    typer.Option("--body", metavar="KEY=JSON", help="An extra field of each request (repeatable)."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", help="The endpoint; default: OPENAI_BASE_URL, else OpenAI's."),
]
KeyVariable = Annotated[
    str,
    typer.Option("--key-variable", help="Environment variable that holds the key."),
]
Stream = Annotated[bool, typer.Option("--stream", help="Stream the answers.")]
Rate = Annotated[float | None, typer.Option("--rate", min=0.01, help="Most requests per minute.")]
Concurrency = Annotated[
    int, typer.Option("--concurrency", min=1, max=256, help="Most requests at once.")
]
Retries = Annotated[
    int, typer.Option("--retries", min=0, help="Retries of a call that got no answer.")
]
ReplyTimeout = Annotated[
    float, typer.Option("--reply-timeout", min=0.1, help="Seconds allowed for one answer.")
]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache", help="A folder: the same request is answered from it, and new answers kept."
    ),
]
MostCalls = Annotated[
    int | None, typer.Option("--budget-calls", min=1, help="Most calls, retries included.")
]
MostTokens = Annotated[
    int | None, typer.Option("--budget-tokens", min=1, help="Most tokens, of prompts and answers.")
]
MostSeconds = Annotated[
    float | None,
    typer.Option("--budget-seconds", min=0, help="Seconds after which no call is sent."),
]
MostJudgeSeconds = Annotated[
    float | None,
    typer.Option(
        "--budget-judge-seconds",
        min=0,
        help="refine, geak: seconds of judging and timing after which none is begun.",
    ),
]
PromptPrice = Annotated[
    float | None, typer.Option("--price-prompt", min=0, help="Per million prompt tokens.")
]
CompletionPrice = Annotated[
    float | None, typer.Option("--price-completion", min=0, help="Per million answer tokens.")
]
Templates = Annotated[
    Path | None, typer.Option("--templates", help="A folder with prompts of your own.")
]
ShowReference = Annotated[
    bool, typer.Option("--show-reference", help="Show the model a reference in PyTorch.")
]
ShowExample = Annotated[
    bool, typer.Option("--example/--no-example", help="Show a small worked example.")
]

Shots = Annotated[
    int,
    typer.Option("--shots", min=0, help="Show N kernels of other operators: few-shot."),
]

GpuName = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        help="Tell the facts of this GPU: here (that of --device), or a name, such as h100.",
    ),
]

Language = Annotated[
    str, typer.Option("--language", help="Ask for kernels in it: triton, cuda (CUDA C++) or gluon.")
]


@app.command()
def generate(
    method: MethodName,
    suite: options.Suite = options.DEFAULT_SUITE,
    model: ModelName = None,
    tasks: Tasks = None,
    categories: Categories = None,
    source: From = None,
    samples: Samples = None,
    rounds: Rounds = None,
    contract: options.ContractName = "core",
    require_kernel: options.RequireKernel = False,
    kernels: Kernels = False,
    cases: Cases = None,
    temperature: Temperature = None,
    reply_tokens: ReplyTokens = 8192,
    body: Body = None,
    url: BaseUrl = None,
    key_variable: KeyVariable = "OPENAI_API_KEY",
    stream: Stream = False,
    per_minute: Rate = None,
    concurrency: Concurrency = 8,
    retries: Retries = 6,
    timeout_s: ReplyTimeout = 600.0,
    cache: Cache = None,
    calls: MostCalls = None,
    tokens: MostTokens = None,
    seconds: MostSeconds = None,
    judge_seconds: MostJudgeSeconds = None,
    price_prompt: PromptPrice = None,
    price_completion: CompletionPrice = None,
    templates: Templates = None,
    show_reference: ShowReference = False,
    show_example: ShowExample = True,
    language: Language = "triton",
    shots: Shots = 0,
    gpu: GpuName = None,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.DrawnSeed = None,
    out: options.Out = None,
    workers: options.Workers = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Obtain candidates from a model; `run --candidates` judges them. Resumes where it stopped."""
    given = locals()
    from kerneltruth.generate.account import SpendingLimits
    from kerneltruth.generate.chat import Sampling
    from kerneltruth.generate.requests import Calling, GenerateRequest, TaskSelection
    from kerneltruth.generate.start import run_generate
    from kerneltruth.report.generate_view import generate_view

    request = options.request(
        GenerateRequest,
        given,
        sampling=options.request(Sampling, given, body=_body(body or ())),
        calling=options.request(Calling, given),
        asking=options.request(TaskSelection, given),
        limits=options.request(SpendingLimits, given),
        prices=_prices(price_prompt, price_completion),
        seed=options.settled_seed(seed, out),
    )
    document = options.follow(run_generate(request), quiet=as_json)
    options.show_document(document, generate_view, as_json)
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
