#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the manual pages of the library from its headers and docs/uthreads.md.

    hosts/uthreads/man.py [FOLDER]

A header's first comment is a page, and so is each of its sections, `/* ---- ut_sync(3): title ---- */`.
A page lists its functions with their lines of the tables in docs/uthreads.md, and then has the header's own
comments, block by block. Each function has a page that refers to its section's. `meson install` calls this
without a folder: pages go to share/man/man3 of what is installed.

Read next: tests/uthreads/test_man.py.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = HERE / "include" / "schedlab"
#: The page of a header's first comment.
HEADERS = {"uthreads.h": "uthreads", "gt.h": "gtthreads"}

PIECE = re.compile(
    r"""/\*(?P<comment>[\s\S]*?)\*/
      | \#define[ ](?P<macro>(?:.*\\\n)*.*)
      | \#.*
      | extern\ "C"\ \{ | ^\}$
      | (?P<blank>\n[ \t]*\n)
      | (?P<code>\w(?:\{(?:[^{}]|\{[^{}]*\})*\}|[^;{}])*;)(?P<after>[ \t]*/\*.*?\*/)?
    """,
    re.VERBOSE | re.MULTILINE,
)
SECTION = re.compile(r" -+ (\w+)\(3\): (.*?) -+ ")
FUNCTION = re.compile(r"\b(\w+)\((?!\*)([^;]*)\)(?:\s*__attribute__.*)?;", re.DOTALL)


@dataclass
class Block:
    """A comment, and what it is about; either may be missing."""

    comment: str = ""
    code: list[str] = field(default_factory=list)

    def functions(self) -> dict[str, str]:
        """Declared functions and their declarations."""
        found = {}
        for code in self.code:
            match = FUNCTION.search(code)
            if match and not code.startswith(("typedef", "struct", "#")):
                found[match[1]] = code
        return found


@dataclass
class Page:
    """A section of a header."""

    name: str
    title: str
    header: str
    blocks: list[Block] = field(default_factory=list)

    def functions(self) -> dict[str, str]:
        return {name: code for block in self.blocks for name, code in block.functions().items()}


def public(code: str) -> str:
    """A declaration or macro without what only the library may touch."""
    if code.startswith("#define"):
        value = re.search(r'\s("[^"]*"|0x\w+|\d+|\(~?\w+\))\s*(/\*.*\*/)?\s*$', code)
        name = re.match(r"#define [\w]+(\([^)]*\))?", code)
        assert name
        return code.rstrip() if value else name[0]
    code = re.sub(r"\n[^\n]*_;[^\n]*", "", code.replace(" GT_ARGS_", ""))
    return re.sub(r"\{\s*\}", "{ /* private */ }", code)


def names_of(code: list[str]) -> str:
    """What types and macros are called, for a heading."""
    names = [
        re.match(r"#define (\w+)|(struct \w+)|typedef[\s\S]*?(\w+)\)?(?:\([^)]*\))?;(?:\s*/\*.*)?$", c)
        for c in code
    ]
    return ", ".join(next(filter(None, name.groups())) for name in names if name)


def pages_of(path: Path) -> list[Page]:
    """The pages of one header."""
    text = path.read_text()
    first = re.search(r"/\*\n \* \S+ - (.*)\n((?: \*.*\n)*?) \*/\n", text)
    assert first
    pages = [Page(HEADERS[path.name], first[1].rstrip("."), path.name, [Block(first[2])])]
    is_new = True
    for piece in PIECE.finditer(text, first.end()):
        blocks = pages[-1].blocks
        if section := SECTION.fullmatch(piece["comment"] or ""):
            pages.append(Page(section[1], section[2], path.name))
        elif piece["comment"]:
            blocks.append(Block(piece["comment"]))
            is_new = False
        elif piece["blank"]:
            is_new = True
        elif piece["macro"] or piece["code"]:
            code = f"#define {piece['macro']}" if piece["macro"] else piece["code"]
            if re.match(r"(#define|struct) \w+_\b", code) or "_H" in code.split()[-1]:
                continue
            if is_new:
                blocks.append(Block())
            is_new = False
            blocks[-1].code.append(public(code) + (piece["after"] or ""))
    for page in pages:
        page.blocks = [b for b in page.blocks if b.code or b is page.blocks[0]]
    return pages


def escape(text: str) -> str:
    """Text as roff takes it: no line of it is a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def prose(text: str) -> str:
    """Words of a comment or a table, with functions and parameters in their fonts."""
    # A table's cell may have links; roff has none.
    text = escape(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text.strip()))
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fP", text)
    text = re.sub(r"(?<!\w)@(\w+)", r"\\fI\1\\fP", text)
    text = re.sub(r"\b((?:ut|gt)_\w+\*?)\(\)", r"\\fB\1\\fP()", text)
    return re.sub(r"\b(Returns?):", r"\\fB\1:\\fP", text)


def verbatim(text: str) -> str:
    return f".PP\n.in +4n\n.EX\n{escape(text.expandtabs(8))}\n.EE\n.in"


def paragraphs(comment: str) -> list[str]:
    """A comment's paragraphs, without stars; code keeps its lines."""
    lines = [re.sub(r"^ ?\*? ?", "", line) for line in comment.strip("*\n ").split("\n")]
    text = "\n".join(line.rstrip() for line in lines).strip("\n")
    done = []
    for part in re.split(r"\n\n+", text):
        if part.startswith("\t"):
            done.append(verbatim("\n".join(line.removeprefix("\t") for line in part.split("\n"))))
            continue
        part = re.sub(r"\n\s+", " ", part)
        part = re.sub(r"^\w+ - (\w)(.*)", lambda found: f"{found[1].upper()}{found[2]}.", part)
        terms = re.findall(r"^@(\w+): (.*)$", part, re.MULTILINE)
        part = re.sub(r"^@\w+: .*\n?", "", part, flags=re.MULTILINE)
        if part.strip():
            done.append(f".PP\n{prose(part)}")
        done += [f".TP\n.I {name}\n{prose(text)}" for name, text in terms]
    return done


def synopsis(code: str) -> str:
    return "\n".join(f"\\fB{escape(line.expandtabs(8))}\\fP" for line in code.split("\n"))


def table(functions: dict[str, str], rows: dict[str, tuple[str, str]]) -> list[str]:
    """What each function does, from the manual."""
    lines = []
    for name in functions:
        if name in rows:
            arguments, about = rows[name]
            lines += [".TP", f"\\fB{name}\\fP({prose(arguments)})", prose(about)]
    return lines


def page_text(page: Page, rows: dict[str, tuple[str, str]], others: list[Page], version: str) -> str:
    """One page, as man(7) has it."""
    names = dict.fromkeys([page.name, *page.functions()])
    lines = [f'.TH {page.name.upper()} 3 "" "schedlab {version}" "User threads"', ".SH NAME"]
    lines += [f"{', '.join(names)} \\- {escape(page.title)}", ".SH SYNOPSIS", ".nf"]
    lines += [f".B #include <schedlab/{page.header}>"]
    for block in page.blocks:
        if block.functions():
            lines += [".PP", *map(synopsis, block.functions().values())]
    lines += [".fi", ".PP", "Compile and link with \\fBpkg\\-config \\-\\-cflags \\-\\-libs schedlab\\-uthreads\\fP.",
              ".SH DESCRIPTION", *table(page.functions(), rows)]  # fmt: skip
    for block in page.blocks:
        functions = block.functions()
        if functions and (block.comment or len(block.code) > len(functions)):
            lines.append(f'.SS "{", ".join(f"{name}()" for name in functions)}"')
        elif block.code and not functions:
            lines.append(f'.SS "{names_of(block.code)}"')
        lines += paragraphs(block.comment)
        rest = [code for code in block.code if code not in functions.values()]
        if rest:
            lines.append(verbatim("\n".join(rest)))
    if page.functions():
        lines += [".SH RETURN VALUE", "0 or more, or a negative errno, where nothing else is said above."]
    also = [f".BR {other.name} (3)" for other in others if other is not page]
    text = "\n".join([*lines, ".SH SEE ALSO", *(f"{line} ," for line in also[:-1]), also[-1], ""])
    return re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", text, flags=re.MULTILINE)


def write(folder: Path) -> list[Path]:
    """Write all pages into a folder; each function's, too."""
    manual = (ROOT / "docs" / "uthreads.md").read_text()
    found = re.findall(r"^\| `(\w+)\(([^`]*)\)` \| (.*?) \| (.*) \|$", manual, re.MULTILINE)
    rows = {name: (arguments, f"{about}. Switches: {when}.") for name, arguments, when, about in found}
    pages = [page for name in HEADERS for page in pages_of(INCLUDE / name)]
    version = (ROOT / "VERSION").read_text().strip()
    folder.mkdir(parents=True, exist_ok=True)
    texts = {page.name: page_text(page, rows, pages, version) for page in pages}
    for page in pages:
        texts.update({name: f".so man3/{page.name}.3\n" for name in page.functions() if name not in texts})
    for name, text in texts.items():
        (folder / f"{name}.3").write_text(text)
    return [folder / f"{name}.3" for name in texts]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
    else:
        write(Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"]) / "share" / "man" / "man3")
