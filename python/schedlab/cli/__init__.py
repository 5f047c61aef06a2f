# SPDX-License-Identifier: MIT
"""The command `schedlab`: a module per subcommand, and what only a subcommand uses.

In: the words of a command line.
Out: text or one JSON document, and an exit code that says whose fault it was.
Read next: app.py.
"""
