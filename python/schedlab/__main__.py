# SPDX-License-Identifier: MIT
"""The command `schedlab`, and `python -m schedlab`.

Ctrl-C must not show a traceback, whenever it comes: until the command line has
been imported, which knows better, it ends the process at once. SIGTERM, which a
job that is cancelled or takes too long gets, is answered as Ctrl-C is: what was
found is said, settings are restored, and temporary files are removed.
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


def _terminate(number: int, frame: object) -> NoReturn:
    """As Ctrl-C, but once: `timeout` sends the signal to a process, and then to its group.

    It is not ignored from then on, since what is started to tidy up would ignore it, too.
    """
    signal.signal(number, lambda number, frame: None)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line and leave with its exit code."""
    answers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate}
    # A job in the background ignores Ctrl-C, and goes on doing so.
    answers = {
        number: answer for number, answer in answers.items() if signal.getsignal(number) is not signal.SIG_IGN
    }
    for number in answers:
        signal.signal(number, _end)
    from .cli.app import main as run_command

    for number, answer in answers.items():
        signal.signal(number, answer)
    run_command()


if __name__ == "__main__":
    main()
