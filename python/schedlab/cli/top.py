# SPDX-License-Identifier: MIT
"""`schedlab top`: what this machine's scheduler does now.

Invariant: nothing of the machine or the terminal stays changed, however the command ends.
Read next: measure/top.py; show/top.py.
"""

from __future__ import annotations

import shutil
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from ..errors import UsageError


def top(
    once: Annotated[
        bool, typer.Option("--once", help="Print one table and end; so it is in a pipe.")
    ] = False,
    every: Annotated[str, typer.Option(metavar="TIME", help="How often it is drawn; from 200ms.")] = "1s",
    export: Annotated[
        str,
        typer.Option(
            metavar="FILE|PORT", help="For Prometheus: a file that is replaced, or a port of 127.0.0.1."
        ),
    ] = "",
) -> None:
    """Show CPUs, run queues, wake-up latencies, what waits most and the loaded policy. p: Perfetto file, q: end."""
    from ..measure.top import Top
    from ..units import parse_duration

    every_ns = parse_duration(every, place="--every")
    if every_ns < 200_000_000:
        raise UsageError(f"--every {every}: the recorder tells five times a second; give 200ms or more")
    out = _Export(export)
    is_shown = sys.stdin.isatty() and sys.stdout.isatty() and not once
    try:
        with Top() as watched:
            if is_shown:
                _watch(watched, every_ns / 1e9, out)
            else:
                # The first look only says when the interval begins.
                time.sleep(0.3)
                watched.look()
                _follow(watched, every_ns / 1e9, out, is_endless=bool(export) and not once)
    except KeyboardInterrupt:
        pass
    finally:
        out.close()


def _follow(watched: Any, seconds: float, out: _Export, *, is_endless: bool) -> None:
    """Without a terminal: one table, or exports until the end."""
    from ..show.top import top_lines

    while True:
        time.sleep(seconds)
        picture = watched.look()
        out.give(watched, picture)
        if not is_endless:
            print("\n".join(top_lines(picture)))
            return


def _watch(watched: Any, seconds: float, out: _Export) -> None:
    """In a terminal, until q."""
    from ..errors import SchedlabError
    from ..show.top import Screen, top_lines

    said = "q: end   p: the last 10 s as a Perfetto file"
    with Screen() as screen:
        due = time.monotonic()
        while True:
            key = screen.key(due - time.monotonic())
            if key == "q":
                return
            if key == "p":
                path = Path(time.strftime("schedlab-top-%Y%m%d-%H%M%S.pftrace"))
                try:
                    said = f"wrote {path}, {watched.save_trace(path):,} bytes, for ui.perfetto.dev"
                except (SchedlabError, OSError) as error:
                    said = f"{path}: {error}"
            if time.monotonic() < due:
                continue
            due = time.monotonic() + seconds
            picture = watched.look()
            out.give(watched, picture)
            width, height = shutil.get_terminal_size()
            screen.draw([*top_lines(picture, width, height - 1), said[:width]])


class _Export:
    """Where the numbers go for Prometheus, if anywhere."""

    def __init__(self, target: str):
        self._path = Path(target) if target and not target.isdigit() else None
        self._server: ThreadingHTTPServer | None = None
        self._text = ""
        if self._path and (self._path.is_dir() or not self._path.absolute().parent.is_dir()):
            raise UsageError(f"--export {target}: name a file in a folder that exists, or a port")
        if target.isdigit():
            try:
                self._server = ThreadingHTTPServer(("127.0.0.1", int(target)), self._handler())
            except (OSError, OverflowError) as error:
                raise UsageError(
                    f"--export {target}: this port cannot be had ({error}); give another"
                ) from None
            Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        export = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = export._text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Scrapes are no news."""

        return Handler

    def give(self, watched: Any, picture: Any) -> None:
        """Take what was last seen."""
        if self._path or self._server:
            from ..files import write_text
            from ..measure.top import prometheus_text

            self._text = prometheus_text(watched, picture)
            if self._path:
                try:
                    write_text(self._path, self._text)
                except OSError as error:
                    raise UsageError(f"--export {self._path}: {error.strerror}; name another file") from None

    def close(self) -> None:
        """End the server."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
