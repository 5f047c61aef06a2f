# SPDX-License-Identifier: MIT
"""`schedlab verify`: does Linux take a policy? The kernel of the guest is asked.

Read next: hosts/guest/verify.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import EXIT_CHECK_FAILED
from .answer import print_json
from .options import JsonOption, complete_policy


def verify(
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY", help="Names, C files or objects of BPF.", autocompletion=complete_policy
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Ask the verifier of a real kernel about policies; a refusal comes with its line."""
    from ..hosts.guest.verify import verify_policies

    answers = verify_policies(policies)
    if as_json:
        print_json({"policies": answers})
    else:
        for answer in answers:
            if answer["is_accepted"]:
                count = sum(answer["instructions"].values())
                print(f"{answer['policy']}: accepted by {answer['kernel']} ({count:,} instructions verified)")
            else:
                print(f"{answer['policy']}: refused by {answer['kernel']}\n{answer['reason']}")
    if not all(answer["is_accepted"] for answer in answers):
        raise typer.Exit(EXIT_CHECK_FAILED)
