# SPDX-License-Identifier: MIT
"""Record files: what is refused, with the offset; what is read back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.errors import RecordError
from schedlab.records import file as records
from schedlab.records.file import (
    HEADER_DTYPE,
    RECORD_DTYPE,
    Kind,
    Overhead,
    Stop,
    hash_file,
    read_records,
    records_table,
    write_records,
)

EVENTS = [
    (10, 1, 0, Kind.ARRIVE, 0, 0),
    (10, 1, 0, Kind.RUN, 0, 0),
    (15, 0, 0, Kind.OVERHEAD, Overhead.TICK, 1),
    (20, 1, 0, Kind.STOP, Stop.BLOCKED, 9),
    (30, 1, 1, Kind.WAKE, 0, 0),
    (30, 1, 1, Kind.MIGRATE, 0, 0),
    (30, 1, 1, Kind.RUN, 0, 0),
    (40, 1, 1, Kind.STOP, Stop.EXITED, 10),
]


def offset_of(row: int) -> int:
    return HEADER_DTYPE.itemsize + row * RECORD_DTYPE.itemsize


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "records.slr"
    write_records(path, EVENTS, n_cpus=2, tick_ns=1000, end_ns=50)
    return path


def rewrite(path, row, **fields):
    """Change fields of one record of a file."""
    raw = bytearray(path.read_bytes())
    record = np.frombuffer(raw, RECORD_DTYPE, 1, offset_of(row))
    for name, value in fields.items():
        record[name] = value
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("row", "fields", "message"),
    [
        (2, {"kind": 77}, "unknown kind 77; known are 1 ARRIVE"),
        (2, {"kind": 0}, "unknown kind 0"),
        (3, {"t_ns": 9}, "time goes backward, to 9 ns"),
        (3, {"t_ns": 1 << 63}, "beyond 2"),
        (4, {"cpu": 2}, "CPU 2 of a run with 2"),
        (1, {"task": 0}, "RUN of task 0"),
        (3, {"flags": 5}, "STOP for unknown reason 5"),
        (2, {"flags": 6}, "OVERHEAD of unknown kind 6"),
        (4, {"kind": 255}, "END, but records follow it"),
        (8, {"kind": 2, "task": 1}, "not END: the file is truncated"),
        (8, {"arg": 7}, "END promises 7 records but 8 precede it"),
        (8, {"t_ns": 39}, "time goes backward"),
    ],
)
def test_damage_is_refused_with_its_offset(good, row, fields, message):
    rewrite(good, row, **fields)
    with pytest.raises(RecordError, match=message) as caught:
        read_records(good)
    assert caught.value.offset_bytes == offset_of(row)
    assert f"at byte {offset_of(row)}" in str(caught.value)
    assert str(good) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("magic", b"SLREC\0\0\2", "not a schedlab record file"),
        ("version", 2, "version is 2, but this schedlab reads 1"),
        ("header_bytes", 60, "header_bytes is 60"),
        ("record_bytes", 32, "record_bytes is 32"),
        ("nr_cpus", 0, "nr_cpus is 0"),
    ],
)
def test_other_headers_are_refused(good, field, value, message):
    raw = bytearray(good.read_bytes())
    np.frombuffer(raw, HEADER_DTYPE, 1)[field] = value
    good.write_bytes(raw)
    with pytest.raises(RecordError, match=message) as caught:
        read_records(good)
    assert caught.value.offset_bytes == HEADER_DTYPE.fields[field][1]


def test_what_is_no_record_file_is_refused(tmp_path):
    with pytest.raises(RecordError, match="cannot be read: No such file"):
        read_records(tmp_path / "absent.slr")
    empty = tmp_path / "empty.slr"
    empty.touch()
    with pytest.raises(RecordError, match="not a schedlab record file"):
        read_records(empty)


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, offset_of(9) - 1))
def test_every_truncation_is_refused(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "records.slr"
    write_records(path, EVENTS, n_cpus=2)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RecordError) as caught:
        read_records(path)
    assert caught.value.offset_bytes <= cut


@pytest.mark.parametrize("row", range(1, 9))
def test_chunks_are_checked_across_their_borders(good, row, monkeypatch):
    monkeypatch.setattr(records, "CHUNK", 4)
    read_records(good)
    rewrite(good, row, t_ns=0)
    with pytest.raises(RecordError, match="time goes backward") as caught:
        read_records(good)
    assert caught.value.offset_bytes == offset_of(row)


def test_the_first_of_several_damages_is_named(good):
    rewrite(good, 5, kind=200)
    rewrite(good, 2, cpu=9)
    with pytest.raises(RecordError, match="CPU 9"):
        read_records(good)


def test_what_was_written_is_read(good):
    read = read_records(good)
    assert (read.n_cpus, read.tick_ns, read.end_ns, read.n_lost) == (2, 1000, 50, 0)
    assert [tuple(event) for event in read.events.tolist()] == [tuple(map(int, e)) for e in EVENTS]
    assert not read.events.flags.writeable


def test_losses_are_counted(tmp_path):
    path = tmp_path / "lossy.slr"
    write_records(path, [*EVENTS, (41, 0, 1, Kind.LOST, 0, 7)], n_cpus=2)
    assert read_records(path).n_lost == 7


def test_a_run_without_events_is_one(tmp_path):
    path = tmp_path / "none.slr"
    write_records(path, [], n_cpus=1, end_ns=5)
    read = read_records(path)
    assert len(read.events) == 0
    assert read.end_ns == 5


def test_hashes_tell_files_apart(good):
    before = hash_file(good)
    assert len(before) == 64
    rewrite(good, 0, arg=1)
    assert hash_file(good) != before


def test_table_names_the_kinds(good):
    table = records_table(read_records(good))
    assert table["kind"].to_list() == [Kind(event[3]).name for event in EVENTS]
    assert table["t_ns"].to_list() == [event[0] for event in EVENTS]
    assert table.columns == ["t_ns", "task", "cpu", "kind", "flags", "arg"]
