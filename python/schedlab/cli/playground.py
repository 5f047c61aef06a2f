# SPDX-License-Identifier: MIT
"""`schedlab playground`: policies in a page that runs them itself.

Read next: report/playground.py.
"""

from __future__ import annotations

import functools
import http.server
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from .answer import print_json
from .options import JsonOption, complete_policy, complete_workload, split_names


def playground(
    workloads: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD", help="Names or TOML files; default: all.", autocompletion=complete_workload
        ),
    ] = [],  # noqa: B006, Typer copies it
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            help="Names or C files, with commas between; default: all.",
            autocompletion=complete_policy,
        ),
    ] = [],  # noqa: B006, Typer copies it
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/playground"),
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Of each workload, from 1 on.")] = 5,
    has_compiler: Annotated[
        bool, typer.Option("--with-compiler", help="Put clang beside the page, from npm: 36 MB.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the folder to this machine until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of --serve; 0: any that is free.")] = 8000,
    as_json: JsonOption = False,
) -> None:
    """Write a page that runs policies in the browser, without a server."""
    from ..policy.find import list_policies
    from ..report.playground import write_playground
    from ..workload.find import workload_names

    made = write_playground(
        out,
        workloads=workloads or workload_names(),
        policies=split_names(policy) or list_policies(),
        n_seeds=seeds,
        has_compiler=has_compiler,
    )
    if as_json:
        print_json({"path": str(made.path), "bytes": made.n_bytes})
    else:
        print(f"wrote {made.path}, {made.n_bytes:,} bytes; open it in any browser")
    if serve:
        with folder_server(out, port) as server:
            print(f"http://127.0.0.1:{server.server_address[1]}/, until Ctrl-C", flush=True)
            server.serve_forever()


def folder_server(folder: Path, port: int) -> http.server.HTTPServer:
    """A server of a folder's files, for this machine alone."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; --port 0 takes one that is free") from error
