"""Write a page's document as one self-contained HTML file: no network, no other file.

Candidates choose much of the text. Templates escape it, or it travels as data that the script
inserts as text; the policy in the page's head allows only our own style and script.
"""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kerneltruth import __version__
from kerneltruth.report.page.document import Page
from kerneltruth.report.page.embed import as_json, policy
from kerneltruth.report.page.wording import count, label

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("tokens", "page", "tables", "charts", "details")
# In this order: each uses the ones before it.
SCRIPTS = (
    *("text", "data", "counts", "sorting", "filters", "tables", "heat", "diff", "source"),
    *("picture", "details", "saving", "start"),
)


def page(document: Page) -> str:
    """Return the file's text."""
    style, script = stylesheet(), program()
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"label": label, "thousands": count, "breakable": breakable}
    template = environment.get_template("report.html")
    return template.render(
        doc=document,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        data=Markup(as_json(document.data)),
        policy=policy(styles=(style,), scripts=(script,)),
    )


def breakable(text: str) -> Markup:
    """Let a name break after its signs; no browser does so within `a_b`, or breaks it anywhere."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.:])(?=\w)", text))


def stylesheet() -> str:
    """Return the page's one stylesheet."""
    return "\n".join(_read(f"style/{name}.css") for name in STYLES)


def program() -> str:
    """Return the page's one script; its parts share one scope, which nothing else can reach."""
    body = "\n".join(_read(f"script/{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();\n'


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
