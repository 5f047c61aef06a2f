# SPDX-License-Identifier: MIT
"""The reader of foreign traces, with sanitizers: any bytes are read or refused, never worse."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schedlab.plots.perfetto import message

ROOT = Path(__file__).parents[2]
TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))
TEXT = b"".join(path.read_bytes()[:3000].rpartition(b"\n")[0] + b"\n" for path in TRACES)


def packed(*values):
    return b"".join(message({0: value})[1:] for value in values)


def perfetto_seed():
    """A trace with each kind of event that is read, and compact ones."""
    switch = message({1: "a", 2: 7, 3: 120, 4: 1, 5: "b", 6: 8, 7: 120})
    wake = message({1: "a", 2: 7, 3: 120, 5: 1})
    kinds = {4: switch, 17: wake, 20: wake, 114: wake, 491: message({2: 7, 4: 0, 5: 1})}
    kinds |= {237: message({2: 7, 3: 8}), 238: message({2: 7}), 239: message({1: "a", 2: 7, 4: 9})}
    events = b"".join(message({2: message({1: 1000 + k, 2: 7, 5: 8, k: v})}) for k, v in kinds.items())
    columns = {1: packed(2000, 5), 2: packed(1, 0), 3: packed(7, 8), 4: packed(120, 99), 6: packed(0, 1)}
    columns |= {7: packed(2002), 8: packed(9), 9: packed(1), 10: packed(120), 11: packed(1), 12: packed(8)}
    compact = message({5: "a"}) + message({5: "bb"}) + message(columns)
    first = message({1: message({1: message({1: 1}) + events})})
    return first + message({1: message({42: 1, 1: message({1: 1, 3: 1, 4: compact})})})


PERFETTO = perfetto_seed()
DAMAGE = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = tmp_path_factory.mktemp("import")
    linux = ROOT / "hosts" / "linux"
    binary = folder / "reader"
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all", f"-I{ROOT / 'include'}", f"-I{linux / 'record'}", f"-I{linux / 'import'}",
         "-o", binary, *sorted(linux.glob("import/*.c")), *sorted(linux.glob("record/*.c"))],
        check=True,
    )  # fmt: skip

    def read(form, data):
        """The answer, once it has become events, and those records."""
        (folder / "in").write_bytes(data)
        words = [binary, "import", form, folder / "in", folder / "x.slev", "in", "--anonymise"]
        said = []
        for command in (words, [binary, "convert", folder / "x.slev", folder / "x.slr", folder / "tasks"]):
            done = subprocess.run(command, capture_output=True, check=False, timeout=60)
            assert not done.stderr, done.stderr.decode(errors="replace")
            said.append(json.loads(done.stdout))
            assert ("wrong" in said[-1]) == bool(done.returncode)
            if "wrong" in said[-1]:
                assert len(said) == 1, "what was read must be converted"
                break
        return said

    return read


@settings(max_examples=80, deadline=None)
@example("text", TEXT, [], 10**6)
@example("perfetto", PERFETTO, [], 10**6)
@given(st.sampled_from(["text", "perfetto"]), st.just(b""), DAMAGE, st.integers(0, 10_000))
def test_any_damage_is_read_or_refused(reader, form, data, damage, cut):
    is_whole = bool(data)
    data = bytearray(TEXT if form == "text" else PERFETTO)
    for at, value in damage:
        data[at % len(data)] = value
    said = reader(form, bytes(data[:cut]) if cut % 3 else bytes(data))
    if is_whole:
        assert said[-1]["records"] > 0 and said[0]["events"]["sched_switch"] > 2


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["text", "perfetto"]), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(reader, form, data):
    reader(form, data)
