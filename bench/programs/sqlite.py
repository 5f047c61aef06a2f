# SPDX-License-Identifier: MIT
"""Three processes write to one database, two of them read from it; SQLite makes them wait for each other.

Read next: replay_validation.py, which records it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from pathlib import Path

N_TRANSACTIONS, N_ROWS, N_READS = 60, 100, 40


def connect(path: Path) -> sqlite3.Connection:
    """Open the database; nothing waits for the disk."""
    database = sqlite3.connect(path, timeout=20, isolation_level=None)
    database.execute("pragma synchronous = off")
    return database


def write(path: Path, number: int) -> None:
    """Add rows, some with each transaction."""
    database = connect(path)
    for _ in range(N_TRANSACTIONS):
        database.execute("begin immediate")
        for row in range(N_ROWS):
            database.execute("insert into t values (?, hex(randomblob(40)))", (number * row,))
        database.execute("commit")


def read(path: Path) -> None:
    """Sort what is there."""
    database = connect(path)
    for _ in range(N_READS):
        database.execute("select a, b from t order by b limit 10").fetchall()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database"
        database = connect(path)
        database.execute("pragma journal_mode = wal")
        database.execute("create table t (a, b)")
        database.close()
        for function, arguments in [(write, (path, n)) for n in range(3)] + [(read, (path,))] * 2:
            if os.fork() == 0:
                function(*arguments)
                os._exit(0)
        codes = [os.wait()[1] for _ in range(5)]
    sys.exit(any(codes))


main()
