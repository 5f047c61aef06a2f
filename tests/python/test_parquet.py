# SPDX-License-Identifier: MIT
"""Small tables: what is written is what Polars, Arrow and DuckDB read."""

import io

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet
import pytest
from polars.testing import assert_frame_equal

from schedlab.records import parquet
from schedlab.records.parquet import Column

NAMES = ("RUN", "STOP", "WAKE")


def _columns(n, seed=1):
    rng = np.random.default_rng(seed)
    some = rng.random(n) < 0.5
    return {
        "time": Column(rng.integers(0, 1 << 63, n).astype("u8")),
        "few": Column(rng.integers(0, 30, n).astype("u4")),
        "many": Column(rng.integers(0, 1 << 32, n).astype("u4")),
        "one": Column(np.zeros(n, "u2")),
        "edge": Column((np.arange(n) % 257).astype("u2")),
        "byte": Column(rng.integers(0, 256, n).astype("u1")),
        "narrow": Column(rng.integers(-9, 9, n).astype("i4")),
        "name": Column(rng.integers(0, 3, n).astype("u1"), names=NAMES),
        "signed": Column(rng.integers(-(1 << 62), 1 << 62, n), some),
        "real": Column(rng.random(n), ~some),
        "text": Column([f"tâche {i}" for i in range(n)]),
        "absent": Column([f"{i}" if valid else None for i, valid in enumerate(some)], some),
        "nothing": Column(np.zeros(n), np.zeros(n, bool)),
    }


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 1000, parquet.ROWS_MAX])
def test_what_is_written_is_read(n, tmp_path):
    columns = _columns(n)
    path = tmp_path / "table.parquet"
    parquet.write(path, columns)
    wanted = parquet.table(columns)
    read = pl.read_parquet(path)
    assert_frame_equal(read, wanted)
    assert read.schema == wanted.schema
    arrow = pl.from_arrow(pyarrow.parquet.read_table(path))
    as_text = pl.col("name").cast(pl.String)
    assert_frame_equal(arrow.with_columns(as_text), wanted.with_columns(as_text))
    sums = duckdb.sql(f"select count(*), count(absent), sum(few), max(name) from '{path}'").fetchall()
    assert sums == [
        (n, int(columns["absent"].is_valid.sum()), wanted["few"].sum(), wanted["name"].cast(pl.String).max())
    ]


def test_a_table_without_rows_keeps_its_types():
    columns = _columns(0)
    read = pl.read_parquet(io.BytesIO(parquet.file_bytes(columns)))
    assert (
        read.is_empty() and read.schema == pl.read_parquet(io.BytesIO(parquet.file_bytes(_columns(5)))).schema
    )


def test_a_larger_table_is_compressed_and_the_same(tmp_path):
    columns = _columns(parquet.ROWS_MAX + 1)
    parquet.write(tmp_path / "large.parquet", columns, compression="lz4")
    codec = (
        pyarrow.parquet.ParquetFile(tmp_path / "large.parquet").metadata.row_group(0).column(0).compression
    )
    assert codec == "LZ4"
    assert_frame_equal(pl.read_parquet(tmp_path / "large.parquet"), parquet.table(columns))


def test_a_full_disk_is_an_oserror():
    for n in (5, parquet.ROWS_MAX + 1):
        with pytest.raises(OSError, match="No space left"):
            parquet.write(parquet.Path("/dev/full"), _columns(n))
