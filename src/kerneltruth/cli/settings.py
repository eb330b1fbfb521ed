"""Defaults of options, as `[tool.kerneltruth]` of a project's pyproject.toml gives them.

A key is an option without its dashes. `[tool.kerneltruth]` holds for each command that has the
option, `[tool.kerneltruth.COMMAND]` for one command; the command line goes before both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from kerneltruth.errors import UserError

FILE = "pyproject.toml"
TABLE = "tool.kerneltruth"


def settings_of(folder: Path) -> tuple[Path, dict[str, object]] | None:
    """Return the nearest pyproject.toml at or above a folder, and its table; None without one.

    Raises:
        UserError: the nearest one is no TOML, or what it holds there is no table.
    """
    for place in (folder, *folder.parents):
        path = place / FILE
        if path.is_file():
            tools = _parsed(path).get("tool", {})
            table = tools.get("kerneltruth") if isinstance(tools, dict) else None
            if not isinstance(table, dict | None):
                raise UserError(f"{path}: tool.kerneltruth = {table!r}: begin [{TABLE}] instead")
            return None if table is None else (path, table)
    return None


def _parsed(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}; correct the file") from error


def defaults(
    path: Path, table: Mapping[str, object], options: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, object]]:
    """Return the defaults of each command's parameters.

    Args:
        path: of the file, for messages.
        table: what `[tool.kerneltruth]` holds.
        options: for each command, the parameter of each option, without dashes.

    Raises:
        UserError: a key is no option, or no command.
    """
    shared = {k: v for k, v in table.items() if not isinstance(v, dict)}
    known = {option for of in options.values() for option in of}
    for key in shared:
        if key in options and key not in known:
            raise UserError(f"{path}: [{TABLE}] {key}: it is a command; begin [{TABLE}.{key}]")
        if key not in known:
            _unknown(path, TABLE, key, [*known, *options])
    found = {name: {of[k]: v for k, v in shared.items() if k in of} for name, of in options.items()}
    for name, own in table.items():
        if isinstance(own, dict):
            if name not in options:
                _unknown(path, TABLE, name, list(options))
            for key, value in own.items():
                if key not in options[name]:
                    _unknown(path, f"{TABLE}.{name}", key, list(options[name]))
                found[name][options[name][key]] = value
    return found


def _unknown(path: Path, table: str, key: str, known: list[str]) -> NoReturn:
    near = get_close_matches(key, known, n=3, cutoff=0.5)
    advice = f"; nearest: {', '.join(near)}" if near else "; see `kerneltruth COMMAND --help`"
    raise UserError(f"{path}: [{table}] {key}: there is no such option{advice}")
