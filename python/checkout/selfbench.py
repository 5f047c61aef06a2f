# SPDX-License-Identifier: MIT
"""`schedlab selfbench`: how fast is schedlab itself?

Read next: bench/selfbench.py, which measures.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Annotated

import typer

from schedlab.cli.answer import print_json
from schedlab.cli.options import JsonOption
from schedlab.errors import UnavailableError
from schedlab.paths import resource_root


def selfbench(
    host: Annotated[str, typer.Argument(help="What to measure: sim, uthreads, kernel or linux.")] = "sim",
    quick: Annotated[bool, typer.Option(help="Shorter and less exact.")] = False,
    beside: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Measure this commit of schedlab, too, as a peer.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure schedlab's own speed, and that of comparable programs."""
    script = resource_root() / "bench" / "selfbench.py"
    if not script.is_file():
        raise UnavailableError("selfbench needs a checkout of schedlab: SCHEDLAB_ROOT names none")
    spec = importlib.util.spec_from_file_location("schedlab_selfbench", script)
    assert spec is not None and spec.loader is not None, "a file that is there has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    result = module.measure(host, is_quick=quick, beside=beside)
    if as_json:
        print_json(result)
    else:
        from schedlab.show.tables import show_benchmarks

        show_benchmarks(result)
