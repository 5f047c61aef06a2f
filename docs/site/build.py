# SPDX-License-Identifier: MIT
"""Builds the documentation as a site: `./lab docs`, `meson compile docs`.

    python docs/site/build.py [--out FOLDER] [--no-pictures | --write-pictures]

The pages are those of docs/ and what they link to, and a reference that is generated
from the code. Any warning of Sphinx's is an error. Pictures are made anew
but with `--no-pictures`; `--write-pictures` puts them into docs/pictures/, too, where
the repository page finds them.

Read next: stage.py, then reference.py and pictures.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

import pictures  # noqa: E402
from reference import pages  # noqa: E402
from stage import Stage  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"


def make_pictures(folder: Path) -> None:
    """Fill a folder with pictures; says which cannot be made here."""
    with tempfile.TemporaryDirectory() as work:
        missing = pictures.make(folder, Path(work))
    if missing:
        print(f"without chromium, playwright and viztracer not made: {', '.join(missing)}", file=sys.stderr)


def make_playground(folder: Path) -> bool:
    """Make the page that runs policies; returns whether there is what makes it."""
    command = [sys.executable, "-m", "schedlab", "playground", "--out", folder]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        print("the site has no playground", file=sys.stderr)
    return done.returncode == 0


def build(out: Path, *, has_pictures: bool) -> int:
    """Make the site in a folder; returns the exit code of Sphinx."""
    staged = out.with_name(out.name + "-source")
    with tempfile.TemporaryDirectory() as folder:
        has_playground = make_playground(Path(folder) / "playground")
        Stage(ROOT, staged, has_playground=has_playground).fill(pages(ROOT))
        shutil.copytree(folder, staged / "_extra")
    if has_pictures:
        make_pictures(staged / "pictures")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [*command, "-d", staged / ".doctrees", staged, out], env=env, check=False
    ).returncode


def main() -> int:
    """Read the words of the command line, and build."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", help="default: out/site")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-pictures", action="store_true", help="use those of docs/pictures")
    which.add_argument("--write-pictures", action="store_true", help="make those of docs/pictures anew")
    words = parser.parse_args()
    if words.write_pictures:
        make_pictures(PICTURES)
    has_pictures = not (words.no_pictures or words.write_pictures)
    status = build(words.out.resolve(), has_pictures=has_pictures)
    if status == 0:
        print(f"{words.out / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
