# SPDX-License-Identifier: MIT
"""The kernel's file system as a program of this machine, against a model of it.

The same C files as in the kernel, under ASan and UBSan: random system calls, several
threads, power cuts at the events of a disk that may lose whatever it was not made
to keep, and broken images. A failure prints the command that repeats it.

Read next: fs_harness/main.c.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from kernel.fs_build import PARTS, build_harness

#: How many times as much as in CI; `./lab soak files` sets it.
ROUNDS = int(os.environ.get("SCHEDLAB_FILES_ROUNDS", "1"))
TIMEOUT_S = 240


def run(program, seed, *words):
    """Run one mode; its last line of output."""
    command = [program, str(seed), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()[-1]


def seeds(nr):
    return range(1, nr * ROUNDS + 1)


def test_agrees_with_the_model(harness):
    for seed in seeds(2):
        run(harness, seed, "random", 12000, 1000)


def test_a_full_disk_loses_nothing(harness):
    for seed in seeds(2):
        refused = run(harness, seed, "random", 12000, 260)
        assert int(refused.split()[3]) > 100, refused


def test_several_at_once(harness):
    for seed in seeds(2):
        run(harness, seed, "threads", 8, 250)


def test_an_inode_used_again_while_it_is_let_go_is_freed(harness):
    run(harness, 1, "reuse", 11111)


@pytest.mark.full
def test_several_at_once_without_data_races(tmp_path, need):
    """Under ThreadSanitizer, which fails the program for what it finds."""
    need("gcc")
    program = build_harness(tmp_path, sanitizers=("-fsanitize=thread", "-Wno-tsan"))
    for seed in seeds(1):
        run(program, seed, "threads", 4, 200)


def test_power_cut_at_every_event(harness):
    for seed in seeds(1):
        line = run(harness, seed, "crash", 400, 100000)
        events, cuts = int(line.split()[3]), int(line.split()[-3])
        assert events == cuts > 100, line


def test_power_cuts_in_a_long_history(harness):
    for seed in seeds(2):
        run(harness, seed + 100, "crash", 2500, 120)


def test_broken_images_are_refused_or_work(harness):
    for seed in seeds(1):
        line = run(harness, seed, "corrupt", 500)
        assert int(line.split()[3]) > 100, line


#: What each line about the log is for: without it the cuts must find something.
FAULTS = {
    "promised without a flush": ("log", "submit(0, DISK_FLUSH, 0, 0, NULL, promised);", "promised(r);"),
    "log used again without a flush": ("log", "submit(0, DISK_FLUSH, 0, 0, NULL, settled);", "settled(r);"),
    "a torn log is believed": (
        "fscheck",
        "log_sum(h, (h->nr + 1) * BSIZE, LOG_SUM_START) == sum",
        "sum + h->seq",
    ),
    "promised when logged": (
        "log",
        "	while (journal.promised_seq < seq) {",
        "	while (journal.promised_seq + 1 < seq) {",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_cuts_find_a_faulty_log(fault, tmp_path, need):
    need("gcc")
    part, right, wrong = FAULTS[fault]
    text = PARTS[part].read_text()
    assert text.count(right) == 1
    program = build_harness(tmp_path, changed={part: text.replace(right, wrong)}, sanitizers=())
    found = [
        subprocess.run(
            [program, str(seed), "crash", "400", "200"], capture_output=True, timeout=TIMEOUT_S, check=False
        ).returncode
        for seed in range(1, 4)
    ]
    assert any(found), f"no power cut notices: {fault}"
