# SPDX-License-Identifier: MIT
"""Pages: one environment of templates, in which every value is escaped.

Templates are in templates/; a value that a template uses and nobody gave is an error.

Invariant: what is marked as safe is made here, or is a chart that schedlab drew itself.
Read next: report/write.py and grade/pages.py, which give the values.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from .units import counted


def prose(text: str) -> Markup:
    """Escape a sentence, show `names` as code, keep numbers on one line with their units, and options whole."""
    kept = str(escape(re.sub(r"(?<=\d) (?=(?:ns|us|ms|s|%)(?![\w]))", "\u00a0", text)))
    kept = re.sub(r"(?<![\w`-])--[a-z][\w-]*(?: \d+\b)?", r'<span class="option">\g<0></span>', kept)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", kept))


class Cell(NamedTuple):
    """A mean, its interval, and what scripts and tests find it by."""

    mean: str
    between: str = ""
    data: Mapping[str, str] = MappingProxyType({})


class Table(NamedTuple):
    """A table of the page; a head is its text and its title, a cell is a text or a `Cell`."""

    label: str
    caption: str
    heads: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, Sequence[str | Cell]]]


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=PackageLoader("schedlab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"prose": prose, "counted": counted}
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def render(template: str, **values: Any) -> str:
    """Write a page."""
    return environment().get_template(template).render(**values)


def embedded(scripts: Iterable[str], styles: Iterable[str]) -> dict[str, Any]:
    """What `page.html` needs of the files of report/page: one script with its digest, and one style."""
    folder = files("schedlab") / "report" / "page"
    script, style = (
        "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
        for names in (scripts, styles)
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": Markup(style), "script": Markup(script), "digest": digest}


def figure(
    svg: str, *, key: str, title: str, text: str = "", label: str = "", is_wide: bool = False
) -> Markup:
    """Put a chart into a figure with its caption; `key` is unique in the page, `label` says what is drawn."""
    # Charts are drawn one by one and all begin to count their clips at 0; in one page, each needs names of its own.
    svg = re.sub(r'(\bid="|url\(#)', rf"\g<1>{key}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label or title)}" ', 1)
    return Markup(render("figure.html", svg=Markup(svg), title=title, text=text, is_wide=is_wide))
