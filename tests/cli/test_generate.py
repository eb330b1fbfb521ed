"""`generate` against a real endpoint on loopback: answers are kept, and paid once."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from chat_server import ChatServer, ServedResponse, completion, error, streamed
from interrupts import heed_interrupts
from kerneltruth.corpus import ENTRIES, source

KEY = "sk-live-Zm9vYmFyYmF6cXV4-0123456789"
PATIENCE_S = 60

KERNELS = {entry.name: source(entry) for entry in ENTRIES}
RIGHT, WRONG = KERNELS["gelu"], KERNELS["gelu_no_half"]

TORCH_ONLY = """
import torch
def gelu(input, approximate='none'):
    return torch.nn.functional.gelu(input, approximate=approximate)
"""


def fenced(source):
    return f"Here is the kernel:\n\n```python\n{source}\n```\n"


def asked_for(body):
    """The task that a request is about."""
    return body["messages"][1]["content"].split("# ", 1)[1].split("\n", 1)[0]


@pytest.fixture
def serve(monkeypatch):
    servers = []

    def start(script):
        servers.append(ChatServer(script if callable(script) else lambda *_: script))
        monkeypatch.setenv("OPENAI_BASE_URL", servers[-1].url)
        return servers[-1]

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield start
    for server in servers:
        server.close()


@pytest.fixture
def generate(kt, tmp_path):
    """Run the command in this process; by default one_shot for two tasks, to `tmp_path/out`."""

    def run(*more, method="one_shot", tasks=("relu", "gelu"), out="out"):
        chosen = [word for name in tasks for word in ("--task", name)]
        return kt(
            *("generate", "--suite", "kernelbenchx", "--method", method, "--model", "some-model"),
            *(*chosen, "--out", tmp_path / out, "--json", "--device", "cpu", "--retries", 1),
            *more,
        )

    return run


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def said_by(ran):
    """A user's mistake: one line, no traceback."""
    assert ran.code == 2, ran
    assert ran.out == ""
    assert len(ran.err.strip().splitlines()) == 1
    return ran.err


def test_answers_become_submissions_with_labels(serve, generate, tmp_path):
    server = serve(lambda _, body: fenced(f"# {asked_for(body)}"))
    ran = generate("--price-prompt", 2, "--price-completion", 10)
    document = json.loads(ran.out)
    assert ran.code == 0
    assert (document["answers"], document["unanswered"], document["stopped"]) == (2, [], None)
    assert document["account"] == {
        "calls": 2,
        "answers": 2,
        "prompt_tokens": 200,
        "completion_tokens": 40,
        "tokens": 240,
        "answers_without_tokens": 0,
        "cost": pytest.approx(0.0008),
        "cached": 0,
        "judge_seconds": 0.0,
    }
    answers = lines(tmp_path / "out" / "answers.jsonl")
    assert all(answer["spent"].pop("seconds") > 0 for answer in answers)
    spent = {"prompt_tokens": 100, "completion_tokens": 20, "cost": pytest.approx(0.0004)}
    spent["judge_seconds"] = 0.0
    assert answers == [
        {
            "task": name,
            "suite": "kernelbenchx",
            "method": "one_shot",
            "model": "some-model",
            "sample": 0,
            "round": 0,
            "finish": "stop",
            "predict": fenced(f"# {name}"),
            "spent": spent,
        }
        for name in ("gelu", "relu")
    ]
    assert len(server.bodies) == 2


def test_run_reads_the_directory_and_not_the_transcript(serve, generate, kt, tmp_path):
    serve(lambda _, body: fenced(RIGHT if asked_for(body) == "gelu" else "import os"))
    generate()
    ran = kt(
        *("run", "--candidates", tmp_path / "out", "--cases", 4, "--device", "cpu", "--json"),
        *("--out", tmp_path / "run", "--stage", "exe"),
    )
    results = {line["task"]: line for line in lines(tmp_path / "run" / "results.jsonl")}
    assert ran.code == 0
    assert json.loads(ran.out)["broken"] == []
    assert results["kernelbenchx/gelu"]["stages"]["exe"]["outcome"] == "pass"
    assert results["kernelbenchx/relu"]["stages"]["call"]["outcome"] == "compile_error"
    labels = {"method": "one_shot", "model": "some-model", "sample": 0, "round": 0}
    assert results["kernelbenchx/gelu"]["labels"] == labels
    analysed = json.loads(kt("analyze", tmp_path / "run", "--json").out)
    (row,) = analysed["spending"]
    assert (row["attempts"], row["right"]) == (2, 1)
    assert row["tokens"] == {"total": 240, "unknown": 0, "per_success": 240}
    assert row["cost"] == {"total": None, "unknown": 2, "per_success": None}


def test_best_of_n_asks_n_times_at_a_temperature(serve, generate, tmp_path):
    server = serve(lambda number, _: fenced(f"# {number}"))
    ran = generate("--samples", 3, method="best_of_n")
    assert json.loads(ran.out)["answers"] == 6
    assert {body["temperature"] for body in server.bodies} == {0.8}
    samples = [(x["task"], x["sample"]) for x in lines(tmp_path / "out" / "answers.jsonl")]
    assert samples == [(name, n) for name in ("gelu", "relu") for n in range(3)]


def test_more_samples_later_cost_only_the_new_ones(serve, generate):
    server = serve("x")
    generate("--samples", 2, method="best_of_n")
    ran = generate("--samples", 3, method="best_of_n")
    assert json.loads(ran.out)["answers"] == 6
    assert len(server.bodies) == 6


def test_answers_by_content_are_paid_once_for_each_sample(serve, generate, tmp_path):
    server = serve(lambda number, _: fenced(f"# {number}"))
    more = ("--samples", 2, "--cache", tmp_path / "cache", "--price-prompt", 1)
    more = (*more, "--price-completion", 1)
    first = json.loads(generate(*more, method="best_of_n").out)
    again = json.loads(generate(*more, method="best_of_n", out="again").out)
    assert len(server.bodies) == 4
    said = [
        {x["predict"] for x in lines(tmp_path / out / "answers.jsonl")} for out in ("out", "again")
    ]
    assert said[0] == said[1]
    assert len(said[0]) == 4
    assert again["account"] == {**first["account"], "cached": 4}


@pytest.mark.slow
def test_refine_tells_what_is_wrong_and_ends_when_it_is_right(serve, generate, tmp_path):
    server = serve(lambda number, _: fenced(WRONG if number == 0 else RIGHT))
    ran = generate("--rounds", 4, method="refine", tasks=("gelu",))
    document = json.loads(ran.out)
    assert ran.code == 0, ran
    assert len(server.bodies) == 2
    feedback = server.bodies[1]["messages"][3]["content"]
    assert "constant factor 2" in feedback
    assert "The smallest input found that shows it:" in feedback
    assert document["refine"] == {
        "chains": 1,
        "right_at_first": 0,
        "right_at_best": 1,
        "right_at_last": 1,
        "rounds": 2,
    }
    rounds = [x["round"] for x in lines(tmp_path / "out" / "answers.jsonl")]
    assert rounds == [0, 1]
    assert [x["round"] for x in lines(tmp_path / "out" / "best.jsonl")] == [1]


def test_refine_asks_for_a_kernel_where_one_is_required(serve, generate, tmp_path):
    server = serve(lambda number, _: fenced(TORCH_ONLY if number == 0 else RIGHT))
    options = ("--rounds", 2, "--cases", 4, "--require-kernel")
    ran = generate(*options, method="refine", tasks=("gelu",))
    feedback = server.bodies[1]["messages"][3]["content"]
    assert "compute the result in a Triton or CUDA C++ kernel of the source's own" in feedback
    assert "--require-kernel" not in feedback
    refined = json.loads(ran.out)["refine"]
    assert (refined["right_at_first"], refined["right_at_last"]) == (0, 1)
    again = said_by(generate(*options[:-1], method="refine", tasks=("gelu",)))
    assert "holds a generation of another request" in again


def test_refine_takes_an_answer_without_a_kernel_where_none_is_required(serve, generate):
    serve(fenced(TORCH_ONLY))
    ran = generate("--rounds", 2, "--cases", 4, method="refine", tasks=("gelu",))
    assert json.loads(ran.out)["refine"]["right_at_first"] == 1


def test_refine_keeps_the_best_where_a_later_round_is_worse(serve, generate, tmp_path):
    serve(lambda number, _: fenced(WRONG) if number == 0 else "I am sorry.")
    generate("--rounds", 2, method="refine", tasks=("gelu",))
    assert [x["round"] for x in lines(tmp_path / "out" / "best.jsonl")] == [0]
    kinds = [x["kind"] for x in lines(tmp_path / "out" / "exchanges.jsonl")]
    assert kinds == ["answer", "review", "answer", "review"]


@pytest.mark.slow
def test_a_refinement_goes_on_from_its_transcript(serve, generate, tmp_path):
    server = serve(lambda number, _: fenced(WRONG if number == 0 else RIGHT))
    generate("--rounds", 3, "--budget-calls", 1, method="refine", tasks=("gelu",))
    assert len(server.bodies) == 1
    reviews = (tmp_path / "out" / "exchanges.jsonl").read_text().count('"kind":"review"')
    assert reviews == 1
    ran = generate("--rounds", 3, method="refine", tasks=("gelu",))
    assert json.loads(ran.out)["refine"]["right_at_last"] == 1
    assert len(server.bodies) == 2


def by_geak(_, body):
    """What a model says whose first kernel is wrong."""
    if "Do not write the kernel yet" in body["messages"][-1]["content"]:
        return "The constant is wrong."
    return fenced(WRONG if len(body["messages"]) == 2 else RIGHT)


@pytest.mark.slow
def test_geak_diagnoses_what_is_wrong_and_writes_by_the_diagnosis(serve, generate, kt, tmp_path):
    server = serve(by_geak)
    ran = generate("--rounds", 4, method="geak", tasks=("gelu",))
    document = json.loads(ran.out)
    assert ran.code == 0, ran
    _, diagnosed, corrected = (body["messages"] for body in server.bodies)
    assert "constant factor 2" in diagnosed[-1]["content"]
    assert corrected[-2] == {"role": "assistant", "content": "The constant is wrong."}
    assert (document["answers"], document["account"]["answers"]) == (2, 3)
    assert document["account"]["judge_seconds"] > 0
    assert document["refine"]["right_at_last"] == 1
    first, last = lines(tmp_path / "out" / "answers.jsonl")
    assert (first["spent"]["prompt_tokens"], last["spent"]["prompt_tokens"]) == (100, 200)
    assert first["spent"]["judge_seconds"] > 0
    assert [x["round"] for x in lines(tmp_path / "out" / "best.jsonl")] == [1]
    again = kt(
        *("generate", "--suite", "kernelbenchx", "--method", "geak", "--device", "cpu", "--json"),
        *("--model", f"replay:{tmp_path / 'out'}", "--out", tmp_path / "again"),
    )
    assert json.loads(again.out)["refine"] == document["refine"], again
    said = [x["reply"]["text"] for x in lines(tmp_path / "again/exchanges.jsonl") if "reply" in x]
    assert len(said) == 3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["best_of_n", "refine", "geak"])
def test_methods_are_held_to_the_same_tokens(serve, generate, method):
    serve(fenced(WRONG))
    # An answer takes 120 tokens, and may take its prompt and 100 before it is there.
    options = ("--budget-tokens", 6000, "--reply-tokens", 100, "--samples", 60, "--cases", 2)
    document = json.loads(generate(*options, method=method, tasks=("gelu",)).out)
    assert document["stopped"] == "tokens"
    assert 4000 < document["account"]["tokens"] <= 6000


@pytest.mark.slow
def test_geak_goes_on_from_a_diagnosis(serve, generate):
    server = serve(by_geak)
    generate("--budget-calls", 2, method="geak", tasks=("gelu",))
    assert len(server.bodies) == 2
    ran = generate("--budget-calls", 3, method="geak", tasks=("gelu",))
    assert json.loads(ran.out)["refine"]["right_at_last"] == 1
    assert len(server.bodies) == 3


@pytest.mark.slow
def test_the_judges_budget_ends_it_and_a_larger_one_goes_on(serve, generate):
    server = serve(lambda number, _: fenced(WRONG if number == 0 else RIGHT))
    ran = generate("--budget-judge-seconds", 0.001, method="refine", tasks=("gelu",))
    document = json.loads(ran.out)
    assert (ran.code, document["stopped"], document["not_asked"]) == (0, "judge-seconds", 1)
    assert document["account"]["judge_seconds"] > 0.001
    ran = generate("--budget-judge-seconds", 1000, method="refine", tasks=("gelu",))
    document = json.loads(ran.out)
    assert (document["stopped"], document["refine"]["right_at_last"]) == (None, 1)
    assert len(server.bodies) == 2


def test_without_seconds_for_the_judge_answers_are_kept_and_not_judged(serve, generate, tmp_path):
    serve(fenced(RIGHT))
    ran = generate("--budget-judge-seconds", 0, method="refine", tasks=("gelu",))
    document = json.loads(ran.out)
    assert (document["answers"], document["stopped"]) == (0, "judge-seconds")


def test_refinement_judges_by_other_cases_than_run_does(kt):
    from kerneltruth.cases.materialize import materialize
    from kerneltruth.cases.philox import derive
    from kerneltruth.cases.strategies import generate
    from kerneltruth.tasks.registry import find

    task = find("kernelbenchx/gelu")
    feedback, judged = (
        generate(task, strategies=(), seed=seed, count=16, dtypes=None, domain="extended")
        for seed in (derive(0, "feedback"), 0)
    )

    def drawn(cases):
        tensors = (materialize(task, case).tensors["input"] for case in cases)
        return {tuple(t.double().flatten().tolist()[:8]) for t in tensors if t.numel() > 8}

    feedback, judged = drawn(feedback), drawn(judged)
    assert len(feedback) > 4
    assert not feedback & judged


@pytest.mark.slow
def test_limits_and_failures_of_the_endpoint_are_waited_out(serve, generate):
    def script(number, _):
        return (error(429, retry_after="0.2"), error(500), "ok", "ok")[number]

    server = serve(script)
    began = time.monotonic()
    ran = generate("--concurrency", 1, "--retries", 2)
    assert (ran.code, len(server.bodies)) == (0, 4)
    assert json.loads(ran.out)["account"]["calls"] == 4
    assert time.monotonic() - began > 0.2


def test_a_request_without_an_answer_is_listed_and_sent_again_next_time(serve, generate):
    server = serve(
        lambda number, body: "ok" if asked_for(body) == "relu" else error(400, "too long")
    )
    ran = generate("--concurrency", 1)
    document = json.loads(ran.out)
    assert ran.code == 3
    assert document["unanswered"] == [
        {"task": "kernelbenchx/gelu", "sample": 0, "why": "400: too long"}
    ]
    server.script = lambda *_: "ok"
    ran = generate()
    assert (ran.code, len(server.bodies)) == (0, 3)
    assert json.loads(ran.out)["account"]["calls"] == 3


@pytest.mark.parametrize(
    ("sent", "finish"),
    [
        (ServedResponse(body=completion("def relu(", finish="length")), "length"),
        (ServedResponse(body=completion(None, refusal="No.")), "refusal"),
        (ServedResponse(body=completion("", finish="content_filter")), "content_filter"),
    ],
)
def test_answers_that_are_no_kernels_are_answers(serve, generate, sent, finish):
    serve(sent)
    document = json.loads(generate().out)
    assert document["finishes"] == {finish: 2}


def test_a_stream_is_an_answer(serve, generate, tmp_path):
    serve(streamed("```python\n", "x = 1\n", "```"))
    ran = generate("--stream", tasks=("relu",))
    assert json.loads(ran.out)["account"]["tokens"] == 120
    assert lines(tmp_path / "out" / "answers.jsonl")[0]["predict"] == "```python\nx = 1\n```"


def test_requests_leave_at_the_given_rate(serve, generate):
    server = serve("ok")
    generate("--rate", 240, "--samples", 3, method="best_of_n")
    gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert sum(gaps) > 1.1


def test_no_more_requests_than_allowed_are_in_flight(serve, generate):
    server = serve(ServedResponse(body=completion("ok"), after_s=0.05))
    generate("--concurrency", 3, "--samples", 6, method="best_of_n")
    assert server.most_at_once == 3


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--budget-calls", 3), "calls"),
        (("--budget-tokens", 1600, "--reply-tokens", 500), "tokens"),
    ],
)
def test_a_budget_ends_it_cleanly_and_a_larger_one_goes_on(serve, generate, option, reason):
    server = serve("ok")
    common = ("--samples", 10, "--concurrency", 4)
    ran = generate(*common, *option, method="best_of_n", tasks=("relu",))
    document = json.loads(ran.out)
    spent = len(server.bodies)
    assert ran.code == 0
    assert document["stopped"] == reason
    assert document["answers"] + document["not_asked"] == 10
    assert 0 < document["answers"] == spent < 10
    ran = generate(*common, *option[2:], method="best_of_n", tasks=("relu",))
    assert json.loads(ran.out)["answers"] == len(server.bodies) == 10


def test_the_budget_of_seconds_ends_it_cleanly(serve, generate):
    server = serve(ServedResponse(body=completion("ok"), after_s=0.1))
    options = ("--samples", 60, "--concurrency", 1, "--budget-seconds", 0.5)
    document = json.loads(generate(*options, method="best_of_n", tasks=("relu",)).out)
    assert document["stopped"] == "seconds"
    assert 0 < document["answers"] == len(server.bodies) < 10


@pytest.mark.slow
def test_the_key_is_in_no_file_and_no_output(serve, generate, tmp_path, process, environment):
    replies = [
        error(500, f"Bearer {KEY} was refused by the backend"),
        ServedResponse(body=f"not json {KEY}".encode()),
        ServedResponse(body=completion(f"I know {KEY}", reasoning=KEY)),
    ]
    server = serve(lambda number, _: replies[number % 3])
    ran = process(
        *("generate", "--suite", "kernelbenchx", "--method", "refine", "--model", "some-model"),
        *("--task", "relu", "--rounds", 2, "--cases", 2, "--device", "cpu"),
        *("--out", tmp_path / "out", "--retries", 8, "--concurrency", 1),
        cwd=tmp_path,
        env={
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": server.url,
            "OPENAI_LOG": "debug",
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "TMPDIR": str(tmp_path),
        },
    )
    assert ran.code == 0, ran
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "[key]" in (tmp_path / "out" / "exchanges.jsonl").read_text()
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) >= 4
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in ran.out + ran.err


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_a_users_mistake(serve, generate, status):
    server = serve(error(status, f"Incorrect API key: {KEY}"))
    said = said_by(generate("--concurrency", 1))
    assert "the endpoint refuses" in said
    assert KEY not in said
    assert len(server.bodies) == 1


def test_an_unknown_model_is_a_users_mistake(serve, generate):
    serve(error(404, "The model `some-model` does not exist"))
    assert "is 'some-model' a model there" in said_by(generate())


def test_an_endpoint_that_is_down_is_the_machines_fault(serve, generate):
    server = serve("ok")
    server.close()
    ran = generate("--retries", 0, "--samples", 5, method="best_of_n")
    assert ran.code == 3
    assert "the endpoint gives no answer: no connection" in ran.err
    assert "to go on" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--base-url", "example.com"), "must be http"),
        (("--base-url", "http://a:b@example.com/v1"), "no credentials"),
        (("--body", "seed"), "must be KEY=JSON"),
        (("--body", "effort=low"), "a text needs its quotes"),
        (("--price-prompt", "1"), "--price-completion is missing"),
        (("--task", "no_such_task"), "unknown task 'no_such_task'"),
        (("--category", "Magic"), "--category 'Magic': must be one of"),
        (("--suite", "nothing"), "--suite 'nothing': must be one of"),
        (("--rounds", "3"), "only refine and geak work in rounds"),
        (("--budget-judge-seconds", "9"), "only refine and geak judge, not one_shot; drop it"),
        (("--kernels",), "--kernels: only refine and geak judge, not one_shot; drop it"),
        (("--gpu", "here"), "--gpu here: no GPU is used here; name one of"),
        (("--language", "cuda", "--method", "refine"), "judges CUDA C++ on a GPU only"),
        (("--language", "gluon", "--method", "geak"), "judges Gluon on a GPU only"),
        (
            ("--temperature", "0", "--method", "best_of_n"),
            "--temperature 0 with 10 samples: greedy decoding repeats one answer",
        ),
        (("--temperature", "0", "--method", "refine", "--samples", "2"), "use --samples 1"),
        (("--require-kernel",), "only refine and geak judge answers, not one_shot"),
        (("--from", "x"), "--from x: only --method import reads it; drop one"),
        (("--templates", "/nowhere"), "cannot read system.txt"),
        (("--model", f"{KEY}"), "an option holds the key"),
        (("--model", "replay:/nowhere.jsonl"), "cannot read /nowhere.jsonl"),
        (("--contract", "strict"), "--contract 'strict': must be one of published, core, torch"),
        (("--method", "magic"), "--method 'magic': must be one of"),
        (("--method", "import"), "say what to read with --from"),
        (("--method", "import", "--from", "/nowhere"), "there is no such file"),
    ],
)
def test_mistakes_are_said_in_one_line(serve, generate, tmp_path, more, said):
    serve("ok")
    message = said_by(generate(*more))
    assert said in message
    assert not (tmp_path / "out").exists()


def test_without_a_key_the_variable_is_named(serve, generate, monkeypatch):
    serve("ok")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "the environment variable OPENAI_API_KEY is empty" in said_by(generate())
    assert "MINE is empty" in said_by(generate("--key-variable", "MINE"))


def test_no_model_is_said(serve, kt, tmp_path):
    serve("ok")
    ran = kt("generate", "--method", "one_shot", "--out", tmp_path / "out")
    assert "--model: name one" in said_by(ran)


def test_another_question_needs_another_directory(serve, generate, tmp_path):
    serve("ok")
    generate()
    assert "holds a generation of another request" in said_by(generate("--temperature", 0.3))
    assert "holds a generation of another request" in said_by(generate(method="best_of_n"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert "it is not empty" in said_by(generate(out="full"))


def test_a_recording_needs_no_key_and_no_endpoint(kt, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    recording = tmp_path / "replies.jsonl"
    recording.write_text(json.dumps({"task": "relu", "text": "x = 1", "model": "by hand"}) + "\n")
    ran = kt(
        *("generate", "--method", "one_shot", "--model", f"replay:{recording}", "--json"),
        *("--out", tmp_path / "out"),
    )
    document = json.loads(ran.out)
    assert (ran.code, document["tasks"], document["answers"]) == (0, 1, 1)
    assert lines(tmp_path / "out" / "answers.jsonl")[0]["model"] == "by hand"


def test_a_recording_needs_no_cache(kt, tmp_path):
    recording = tmp_path / "replies.jsonl"
    recording.write_text(json.dumps({"task": "relu", "text": "x = 1"}) + "\n")
    arguments = ("generate", "--method", "one_shot", "--model", f"replay:{recording}")
    ran = kt(*arguments, "--cache", tmp_path / "cache", "--out", tmp_path / "out")
    assert "is a recording, and costs nothing; drop one" in said_by(ran)


def test_a_generation_is_replayed_from_its_transcript(serve, generate, kt, tmp_path):
    serve(lambda _, body: fenced(f"# {asked_for(body)}"))
    generate()
    ran = kt(
        *("generate", "--method", "one_shot", "--model", f"replay:{tmp_path / 'out'}"),
        *("--out", tmp_path / "again", "--json"),
    )
    assert ran.code == 0
    first, second = (
        [line["predict"] for line in lines(tmp_path / name / "answers.jsonl")]
        for name in ("out", "again")
    )
    assert first == second


def test_import_brings_what_others_produced_with_labels_and_their_verdicts(kt, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "gelu.py").write_text(RIGHT)
    (theirs / "more.jsonl").write_text(
        json.dumps({"file": "relu.py", "predict": fenced("x = 1"), "model": "big"})
        + "\n"
        + json.dumps({"file": "unheard_of.py", "predict": "x"})
        + "\n"
    )
    ran = kt(
        *("generate", "--method", "import", "--from", theirs, "--model", "small", "--json"),
        *("--out", tmp_path / "out"),
    )
    document = json.loads(ran.out)
    assert (ran.code, document["answers"], len(document["broken"])) == (0, 2, 1)
    gelu, relu = lines(tmp_path / "out" / "answers.jsonl")
    assert (gelu["task"], gelu["method"], gelu["model"]) == ("gelu", "import", "small")
    assert gelu["code"] == RIGHT
    assert (relu["task"], relu["model"], relu["code"]) == ("relu", "big", "x = 1\n")


def test_files_without_a_submission_are_not_imported(kt, tmp_path):
    (tmp_path / "unheard_of.py").write_text("def unheard_of(x): return x")
    ran = kt("generate", "--method", "import", "--from", tmp_path / "unheard_of.py")
    assert "no submission for the suite kernelbenchx; unheard_of.py: " in said_by(ran)


def test_a_reference_is_in_the_prompt_only_on_request(serve, generate):
    server = serve("ok")
    generate(tasks=("relu",))
    generate("--show-reference", tasks=("relu",), out="other")
    hidden, shown = (body["messages"][1]["content"] for body in server.bodies)
    assert "## Reference" not in hidden
    assert "## Reference" in shown
    assert "def relu(" in shown.partition("## Reference")[2]


@pytest.fixture
def many(tmp_path):
    """A generation of one task and many samples."""
    options = ("--model", "some-model", "--task", "relu", "--samples", "12")
    out = ("--out", str(tmp_path / "out"), "--concurrency", "1", "--json")
    return ("generate", "--method", "best_of_n", *options, *out)


@pytest.fixture
def begin(environment, many):
    """Start it as a process of its own."""
    begun = []

    def start(server):
        begun.append(
            subprocess.Popen(
                [sys.executable, "-m", "kerneltruth", *many],
                env={**environment, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=heed_interrupts,
            )
        )
        return begun[-1]

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_S)


def wait_for(condition, process):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate(timeout=PATIENCE_S)
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
def test_after_kill_9_no_answer_is_paid_twice(serve, begin, many, kt, tmp_path):
    server = serve(
        lambda number, _: ServedResponse(body=completion(f"answer {number}"), after_s=0.05)
    )
    process = begin(server)
    wait_for(lambda: len(server.bodies) >= 5, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    kept = (tmp_path / "out" / "exchanges.jsonl").read_bytes().count(b'"kind":"answer"')
    sent = len(server.bodies)
    # One may have been on its way.
    assert kept >= sent - 1 >= 4
    again = kt(*many, fixed=False)
    assert again.code == 0, again.err
    assert json.loads(again.out)["answers"] == 12
    assert len(server.bodies) - sent == 12 - kept
    assert len(lines(tmp_path / "out" / "answers.jsonl")) == 12


@pytest.mark.slow
def test_ctrl_c_waits_for_what_is_on_its_way_and_says_how_to_go_on(
    serve, begin, many, kt, tmp_path
):
    server = serve(ServedResponse(body=completion("ok"), after_s=3.0))
    process = begin(server)
    wait_for(lambda: len(server.bodies) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in err
    sent = len(server.bodies)
    assert f"interrupted; {sent} answers kept" in err
    assert len(lines(tmp_path / "out" / "answers.jsonl")) == sent
    again = kt(*many, "--concurrency", "12", fixed=False)
    assert json.loads(again.out)["answers"] == 12, again.err
    assert len(server.bodies) == 12


@pytest.mark.slow
def test_a_problem_of_kernelbench_is_put_by_its_reference_if_that_may_be_shown(serve, kt, tmp_path):
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "3_Double.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * 2\n\n\ndef get_inputs():\n    return [torch.rand(64, 32)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    server = serve("no code")
    arguments = ("generate", "--suite", f"kernelbench:{tmp_path}", "--method", "one_shot")
    options = ("--model", "some-model", "--out", tmp_path / "out", "--device", "cpu", "--json")
    assert "pass --show-reference" in said_by(kt(*arguments, *options))
    assert not (tmp_path / "out").exists()
    ran = kt(*arguments, *options, "--show-reference")
    assert (ran.code, json.loads(ran.out)["answers"]) == (0, 1)
    prompt = server.bodies[0]["messages"][1]["content"]
    assert "return x * 2" in prompt
    assert "a class `ModelNew`" in prompt
    (line,) = lines(tmp_path / "out" / "answers.jsonl")
    assert line["task"] == "level1/3"
    ran = kt(
        *("run", "--suite", f"kernelbench:{tmp_path}", "--candidates", tmp_path / "out"),
        *("--stage", "exe", "--device", "cpu", "--out", tmp_path / "run", "--json"),
    )
    assert json.loads(ran.out)["attempts"] == 1
