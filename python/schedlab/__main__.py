# SPDX-License-Identifier: MIT
"""`python -m schedlab` is the command `schedlab`."""

from .cli import main

if __name__ == "__main__":
    main()
