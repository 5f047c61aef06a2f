# SPDX-License-Identifier: MIT
"""The command `schedlab`, and `python -m schedlab`.

Ctrl-C must not show a traceback, whenever it comes: until the command line has
been imported, which knows better, it ends the process at once.
"""

import os
import signal
import sys
from typing import NoReturn

EXIT_INTERRUPTED = 130


def _end(number: int, frame: object) -> NoReturn:
    """End the process; nothing has been begun."""
    os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def main() -> None:
    """Run the command line and leave with its exit code."""
    before = signal.getsignal(signal.SIGINT)
    # A job in the background ignores it, and goes on doing so.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from .cli.app import main as run_command

    signal.signal(signal.SIGINT, before)
    run_command()


if __name__ == "__main__":
    main()
