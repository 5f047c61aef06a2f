# SPDX-License-Identifier: MIT
"""Fills the folder from which Sphinx makes the site.

A page of the site is a Markdown file of the checkout, as it is, but for its links.
`docs/README.md` is the first page; each of its sections becomes a part of the
navigation, in its order. A link to a file of the checkout that is no Markdown leads
to a page that shows the file; in `docs/README.md` and `docs/gallery.md`, one to a file
of `GENERATED` leads to the page that is generated from it. A page that says where has the playground.

Invariant: each file below docs/ is staged, so Sphinx names one that stands in no part.
Read next: reference.py, which generates pages; build.py, which calls both.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

INDEX = PurePosixPath("docs/README.md")
#: Pages whose lists of links are a part of the navigation.
LISTS = (INDEX, PurePosixPath("docs/design/README.md"))
#: Code, and the page that is generated from it.
GENERATED = {
    "python/schedlab/cli/app.py": "reference/command-line.md",
    "python/schedlab/api.py": "reference/python.md",
    "python/schedlab/metrics/dictionary.py": "reference/metrics.md",
    "policies": "reference/policies.md",
    "workloads": "reference/workloads.md",
    "include/schedlab": "reference/binary-formats.md",
    "tests/conformance": "reference/rules.md",
    "python/schedlab/errors.py": "reference/errors.md",
}
LANGUAGES = {
    ".c": "c", ".h": "c", ".py": "python", ".toml": "toml", ".json": "json",
    ".build": "meson", ".cff": "yaml", ".js": "javascript", ".css": "css",
}  # fmt: skip
PICTURES = {".png", ".svg"}
#: Where a page has the playground, on the site; in the repository a page cannot run anything.
PLAYGROUND = "<!-- on the site: the playground -->"
_FRAME = """<iframe class="playground" src="{address}#workload=mixed&amp;a=rr&amp;b=rr" title="The playground" loading="lazy"></iframe>

<p><a href="{address}">The playground in a page of its own</a></p>"""

_FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)#\s]+)?(#[^)\s]*)?(\))")
_NOT_A_PAGE = ("---\norphan: true\nnosearch: true\n---\n", "---\norphan: true\n---\n")


def staged_name(name: PurePosixPath) -> PurePosixPath:
    """Where a file of the checkout is a page of the site; both are relative."""
    if name == INDEX:
        return PurePosixPath("index.md")
    if name.parts[0] == "docs":
        inside = PurePosixPath(*name.parts[1:])
        return inside.with_suffix(".md") if name.suffix == ".ipynb" else inside
    if name.name == "README.md" and len(name.parts) > 1:
        return PurePosixPath("folders", *name.parts[:-1]).with_suffix(".md")
    if name.suffix == ".md":
        return PurePosixPath("project") / name
    return PurePosixPath("source", f"{name}.md")


class Stage:
    """One filling of a folder."""

    def __init__(self, root: Path, folder: Path, *, has_playground: bool = False) -> None:
        self.root = root
        self.has_playground = has_playground
        self.folder = folder
        self._waiting = [
            PurePosixPath(path.relative_to(root).as_posix())
            for pattern in ("docs/*.md", "docs/*/*.md", "docs/notebooks/*.ipynb")
            for path in sorted(root.glob(pattern))
        ]
        self._seen = set(self._waiting)

    def fill(self, generated: Mapping[str, str]) -> None:
        """Write all pages; `generated` has the text of those in `GENERATED`, by name."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, text in generated.items():
            self._write(PurePosixPath(name), text)
        while self._waiting:
            name = self._waiting.pop()
            self._write(staged_name(name), self._page(name))
        static = self.folder / "_static"
        static.mkdir()
        shutil.copy(self.root / "docs/site/site.css", static)
        shutil.copy(self.root / "docs/site/conf.py", self.folder)

    def _write(self, name: PurePosixPath, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _page(self, name: PurePosixPath) -> str:
        path = self.root / name
        if path.is_dir():
            return self._listing(name)
        if name.suffix == ".ipynb":
            return self._rewrite(name, _notebook(path))
        if name.suffix != ".md":
            language = LANGUAGES.get(name.suffix, "text")
            depth = "../" * (len(staged_name(name).parts) - 1)
            self._copy(name)
            shown = f"```{{literalinclude}} {depth}_files/{name}\n:language: {language}\n:linenos:\n```\n"
            return f"{_NOT_A_PAGE[0]}\n# {name.name}\n\nThe file `{name}` of the source.\n\n{shown}"
        text = self._rewrite(name, path.read_text(encoding="utf-8"))
        if self.has_playground:
            up = "../" * (len(staged_name(name).parts) - 1)
            text = text.replace(PLAYGROUND, _FRAME.format(address=f"{up}playground/index.html"))
        return self._with_parts(name, text) if name in LISTS else self._hidden(name) + text

    def _hidden(self, name: PurePosixPath) -> str:
        """Front matter of a page that no list has: one from outside of docs/."""
        return "" if name.parts[0] == "docs" else _NOT_A_PAGE[1]

    def _listing(self, name: PurePosixPath) -> str:
        below = sorted(path.relative_to(self.root).as_posix() for path in (self.root / name).rglob("*.*"))
        names = [PurePosixPath(each) for each in below if PurePosixPath(each).suffix in LANGUAGES]
        lines = [f"- [{each.relative_to(name)}]({self._target(name / 'x', each)})" for each in names]
        return f"{_NOT_A_PAGE[0]}\n# {name}/\n\n" + "\n".join(lines) + "\n"

    def _copy(self, name: PurePosixPath) -> None:
        copy = self.folder / "_files" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.root / name, copy)

    def _rewrite(self, page: PurePosixPath, text: str) -> str:
        """The text, with each link to a file of the checkout leading to a page of the site."""

        def of_site(match: re.Match[str]) -> str:
            target = match[2]
            if not target or "://" in target or target.startswith("mailto:"):
                return match[0]
            name = PurePosixPath(os.path.normpath(page.parent / target))
            return f"{match[1]}{self._target(page, name)}{match[3] or ''}{match[4]}"

        parts, end = [], 0
        for fence in _FENCE.finditer(text):
            parts += [_LINK.sub(of_site, text[end : fence.start()]), fence[0]]
            end = fence.end()
        return "".join(parts) + _LINK.sub(of_site, text[end:])

    def _target(self, page: PurePosixPath, name: PurePosixPath) -> str:
        """Link from a page to a file or folder of the checkout, which becomes a page, too."""
        start = staged_name(page).parent
        if page.suffix == "":  # of a listing
            start = staged_name(page.parent).parent
        if name.suffix in PICTURES:
            picture = self.folder / staged_name(page).parent / os.path.relpath(name, page.parent)
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / name, picture)
            return os.path.relpath(name, page.parent)
        if page in LISTS[:1] and str(name) in GENERATED:
            return os.path.relpath(GENERATED[str(name)], start)
        if (self.root / name / "README.md").is_file():
            name /= "README.md"
        if not (self.root / name).exists():
            raise FileNotFoundError(f"{page}: a link to {name}, which does not exist")
        if name not in self._seen:
            self._seen.add(name)
            self._waiting.append(name)
        return os.path.relpath(staged_name(name), start)

    def _with_parts(self, name: PurePosixPath, text: str) -> str:
        """A list's text, with what it links to as parts of the navigation."""
        sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
        for i, section in enumerate(sections):
            title = re.match(r"## (.+)", section)
            items = re.findall(r"^[-|] .*$", section, re.MULTILINE)
            links = re.findall(r"\]\(([^)#\s]+\.md)\)", "\n".join(items))
            if links and (title or name != INDEX):
                caption = f":caption: {title[1]}\n" if title else ""
                rows = "\n".join(dict.fromkeys(links))
                sections[i] += f"\n```{{toctree}}\n:hidden:\n{caption}\n{rows}\n```\n\n"
        return "".join(sections)


def _notebook(path: Path) -> str:
    """A notebook's cells as a page."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"
