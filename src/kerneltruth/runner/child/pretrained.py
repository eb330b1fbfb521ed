"""Offer small models in place of pretrained ones: `from_pretrained` finds them by name, offline.

A model has the architecture that its name stands for, as `small_models.toml` describes it, and
weights that its constructor draws.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltruth.runner.unsupported import UnsupportedError

SMALL_MODELS = Path(__file__).with_name("small_models.toml")
EXTRA = "kernelbench4"
NEEDED = (
    f"it loads a model of transformers, which is not installed: pip install 'kerneltruth[{EXTRA}]'"
)
# How constructor inputs name a configuration, as Python text.
_CONFIG = "AutoConfig.from_pretrained"
# What `from_pretrained` also decides, beside which model it is.
_PASSED_ON = ("attn_implementation", "dtype", "torch_dtype")
# Where `transformers` would look for a file; any other setting replaces a field.
_OF_FILES = frozenset(
    {
        *("cache_dir", "force_download", "resume_download", "local_files_only", "proxies"),
        *("token", "use_auth_token", "revision", "trust_remote_code", "subfolder", "gguf_file"),
        *("_from_pipeline", "_from_auto", "_commit_hash"),
    }
)


# As a `config.json` has it: `transformers` knows which fields a family has.
ModelConfig = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A row of the file: the fields of a family's small model, and the names that it stands for."""

    names: tuple[str, ...]
    config: ModelConfig


def small_configs() -> dict[str, ModelConfig]:
    """Return the small configuration of each model, by its name."""
    rows = tomllib.loads(SMALL_MODELS.read_text("utf-8"))
    families = {family: _Family(**row) for family, row in rows.items()}
    return {
        name: {"model_type": family, **row.config}
        for family, row in families.items()
        for name in row.names
    }


def offer() -> None:
    """Make `transformers` find the small models, and nothing else, in this process.

    Raises:
        UnsupportedError: it is not installed.
    """
    # It is read on import: nothing is asked of a server.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ImportError as error:
        raise UnsupportedError(NEEDED) from error
    small = small_configs()
    # Modules that were imported while a GPU is emulated would see other names of torch.
    for family in {config["model_type"] for config in small.values()}:
        importlib.import_module(f"transformers.models.{family}.modeling_{family}")

    def config_dict(
        kind: type, name: str | os.PathLike[str], /, **settings: Any
    ) -> tuple[ModelConfig, dict[str, object]]:
        if str(name) not in small:
            known = ", ".join(sorted(small))
            raise OSError(f"no small model stands for {str(name)!r}; these have one: {known}")
        left = {n: value for n, value in settings.items() if n not in _OF_FILES}
        return copy.deepcopy(small[str(name)]), left

    def from_pretrained(
        kind: Any, name: str | os.PathLike[str], /, *args: Any, config: Any = None, **settings: Any
    ) -> Any:
        given = ((n, settings.pop(n, None)) for n in _PASSED_ON)
        passed_on = {n: value for n, value in given if value not in (None, "auto")}
        if config is None:
            config = kind.config_class.from_pretrained(name, **settings)
        # Building a model changes its configuration, and the caller's stays as it is.
        return kind._from_config(copy.deepcopy(config), *args, **passed_on).eval()

    transformers.PretrainedConfig.get_config_dict = classmethod(config_dict)
    transformers.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def as_text(values: Any) -> str:
    """Return constructor inputs as Python text, a configuration by the call that loads it."""
    return f"[{', '.join(map(_one_as_text, values))}]"


def _one_as_text(value: Any) -> str:
    name = getattr(value, "name_or_path", None)
    with contextlib.suppress(OSError):
        if isinstance(name, str) and _config(name).to_dict() == value.to_dict():
            return f"{_CONFIG}({name!r})"
    return repr(value)


def from_text(text: str) -> list[Any]:
    """Return the constructor inputs of a text that `as_text` has made.

    Raises:
        ValueError: it has other calls.
    """
    body = ast.parse(text, mode="eval").body
    items = body.elts if isinstance(body, ast.List | ast.Tuple) else []
    return [_item(item) for item in items]


def _item(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == _CONFIG and len(node.args) == 1:
        return _config(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)


def _config(name: str) -> Any:
    import transformers

    return transformers.AutoConfig.from_pretrained(name)
