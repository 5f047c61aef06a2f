# SPDX-License-Identifier: MIT
"""A server of two worker processes and four clients, over loopback; each checks what the other sent.

Read next: replay_validation.py, which records it.
"""

from __future__ import annotations

import os
import signal
import socket
import zlib

REQUEST_BYTES, N_REQUESTS = 200, 120


def work(data: bytes, rounds: int) -> int:
    """Use the CPU."""
    check = 0
    for _ in range(rounds):
        check = zlib.crc32(data, check)
    return check


def serve(listener: socket.socket) -> None:
    """Answer the requests of one connection after the other."""
    while True:
        connection, _ = listener.accept()
        while data := connection.recv(REQUEST_BYTES):
            work(data * 10, 300)
            connection.sendall(data)
        connection.close()


def ask(port: int) -> None:
    """Send requests, each after the answer to the last."""
    connection = socket.create_connection(("127.0.0.1", port))
    for _ in range(N_REQUESTS):
        work(b"x" * 2000, 80)
        connection.sendall(b"q" * REQUEST_BYTES)
        connection.recv(REQUEST_BYTES)


def start(function, *arguments) -> int:
    """Run a function in a process of its own."""
    pid = os.fork()
    if pid == 0:
        function(*arguments)
        os._exit(0)
    return pid


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    workers = [start(serve, listener) for _ in range(2)]
    clients = [start(ask, listener.getsockname()[1]) for _ in range(4)]
    for pid in clients:
        os.waitpid(pid, 0)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


main()
