"""Open the model of a generation: an endpoint, or a recording of one."""

from __future__ import annotations

import json
import os
from pathlib import Path

from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.generate.cache import AnswerCache
from kerneltruth.generate.chat import ChatModel, Sampling
from kerneltruth.generate.key import checked_url, key_from, shield_process
from kerneltruth.generate.recording import PREFIX, read_recording
from kerneltruth.generate.requests import GenerateRequest

DEFAULT_URL = "https://api.openai.com/v1"


def open_model(options: GenerateRequest, sampling: Sampling) -> ChatModel:
    """Open the model that the options name; nothing is sent yet.

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
        from kerneltruth.generate.endpoint import Endpoint
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


def open_cache(options: GenerateRequest, sampling: Sampling) -> AnswerCache | None:
    """Return the cache that the options name, if any; nothing is read yet.

    Raises:
        UserError: answers are recorded already.
    """
    folder = options.calling.cache
    if folder is None:
        return None
    name = options.model or ""
    if name.startswith(PREFIX):
        raise UserError(f"--cache {folder}: {name} is a recording, and costs nothing; drop one")
    return AnswerCache(folder=folder, url=address_of(options), model=name, sampling=sampling)


def address_of(options: GenerateRequest) -> str:
    """Return the endpoint's base URL.

    Raises:
        UserError: it is not a URL, or holds a secret.
    """
    return checked_url(options.calling.url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL)
