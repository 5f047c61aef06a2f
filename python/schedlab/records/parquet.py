# SPDX-License-Identifier: MIT
"""Write small tables as Parquet files, a few hundred microseconds each.

A short run has three tables of some kilobytes. Polars takes 0.65 ms of CPU time for a file
of any size, since it starts a query with threads of its own; that was a quarter of a sweep.
This writes what such tables need of the format: one row group, one data page per column, no
compression; small integers and names by a dictionary. Larger tables are written by Polars,
with compression, and both are read back as the same table.

        "PAR1"  [page header, values] per column  footer  length of footer  "PAR1"

Must stay true: a file is what `polars.DataFrame.write_parquet` would have written of the same
columns, to those who read it.
Read next: file.py, metrics/tables.py, whose tables these are.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import polars as pl

#: Rows up to which a table is written here: above, compression is worth more than time.
ROWS_MAX = 1 << 14
_MAGIC = b"PAR1"
#: Of Thrift's compact protocol.
_BINARY, _STRUCT = 8, 12
#: Dictionaries are for values below this, which take a byte at most.
_CODES_MAX = 256

# parquet.thrift: types, encodings, pages.
_INT32, _INT64, _DOUBLE, _BYTE_ARRAY = 1, 2, 5, 6
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
#: Of each NumPy type: the physical type, and the converted one, which has its sign and width.
_TYPES: dict[str, tuple[int, int | None]] = {
    "u1": (_INT32, 11), "u2": (_INT32, 12), "u4": (_INT32, 13), "u8": (_INT64, 14),
    "i4": (_INT32, 17), "i8": (_INT64, 18), "f8": (_DOUBLE, None), "str": (_BYTE_ARRAY, 0),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    values: Any  #: numpy.ndarray, or sequence of str: one per row; of any value where it is null.
    is_valid: np.ndarray | None = None  #: Which rows are not null; default: all.
    names: tuple[str, ...] = field(default=())  #: If there are any, `values` are indices of these.

    @property
    def kind(self) -> str:
        """A key of `_TYPES`."""
        if self.names or not isinstance(self.values, np.ndarray):
            return "str"
        return self.values.dtype.str[1:]

    def series(self, name: str) -> pl.Series:
        """The column for a DataFrame."""
        import polars as pl

        dtype = pl.String if self.kind == "str" else None
        series = _enum(self.names)[self.values] if self.names else pl.Series(self.values, dtype=dtype)
        if self.is_valid is not None and not self.is_valid.all():
            series = series.set(pl.Series(~self.is_valid), None)
        return series.alias(name)


@cache
def _enum(names: tuple[str, ...]) -> pl.Series:
    """All names, in order."""
    import polars as pl

    return pl.Series(names, dtype=pl.Enum(names))


def table(columns: Mapping[str, Column]) -> pl.DataFrame:
    """Make a table of columns."""
    import polars as pl

    return pl.DataFrame([column.series(name) for name, column in columns.items()])


def write(path: Path, columns: Mapping[str, Column], *, compression: Literal["lz4", "zstd"] = "zstd") -> None:
    """Write a table of any size."""
    if len(next(iter(columns.values())).values) <= ROWS_MAX:
        path.write_bytes(file_bytes(columns))
        return
    import polars

    try:
        table(columns).write_parquet(path, compression=compression)
    except polars.exceptions.PolarsError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def file_bytes(columns: Mapping[str, Column]) -> bytes:
    """Write a small table."""
    schema = _schema(tuple((name, column.kind, column.names) for name, column in columns.items()))
    n_rows = len(next(iter(columns.values())).values)
    parts, offset, chunks = [_MAGIC], len(_MAGIC), []
    for head, column in zip(schema.heads, columns.values(), strict=True):
        dictionary, page = _pages(column)
        size = len(dictionary) + len(page)
        # Values, size uncompressed and compressed, offsets of the data and of the dictionary.
        fields = _i64(n_rows) + _i64(size) + _i64(size) + _i64(offset + len(dictionary), step=2)
        fields += _i64(offset, step=2) if dictionary else b""
        chunks.append(_i64(offset, step=2) + b"\x1c" + head + fields + b"\0\0")
        parts += (dictionary, page)
        offset += size
    row_group = _list(_STRUCT, chunks) + _i64(offset - len(_MAGIC)) + _i64(n_rows) + b"\0"
    footer = schema.start + _i64(n_rows) + _list(_STRUCT, [row_group]) + schema.end
    return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])


# ---- values -------------------------------------------------------------------


def _pages(column: Column) -> tuple[bytes, bytes]:
    """The dictionary page, empty if there is none, and the data page of a column."""
    values, kind, n = column.values, column.kind, len(column.values)
    if column.is_valid is None or column.is_valid.all():
        packed = _run(n, 1, 1)
    else:
        packed = _hybrid(column.is_valid.view(np.uint8), 1)
        if isinstance(values, np.ndarray):
            values = values[column.is_valid]
        else:
            values = [value for value, valid in zip(values, column.is_valid.tolist(), strict=True) if valid]
    levels = len(packed).to_bytes(4, "little") + packed
    if column.names:
        dictionary, n_codes = _strings(column.names), len(column.names)
    elif kind == "str":
        return b"", _data_page(n, _PLAIN, levels + _strings(tuple(values)))
    elif kind[0] == "u" and kind != "u8" and (n_codes := int(values.max(initial=0)) + 1) <= _CODES_MAX:
        dictionary = np.arange(n_codes, dtype="<i4").tobytes()
    else:
        wide = values.astype("<i4") if _TYPES[kind][0] == _INT32 else values
        return b"", _data_page(n, _PLAIN, levels + wide.tobytes())
    width = (n_codes - 1).bit_length()
    data = levels + bytes([width]) + _hybrid(values.astype(np.uint8), width)
    # The dictionary's header: number of values, encoding.
    head = _page_head(_DICTIONARY_PAGE, len(dictionary)) + b"\x4c" + _i32(n_codes) + _i32(_PLAIN)
    return head + b"\0\0" + dictionary, _data_page(n, _RLE_DICTIONARY, data)


def _page_head(kind: int, size: int) -> bytes:
    """What begins the header of a page: its type, its size uncompressed and compressed."""
    return _i32(kind) + _i32(size) + _i32(size)


def _data_page(n: int, encoding: int, data: bytes) -> bytes:
    """A page of `n` values, nulls included, with its header."""
    head = _page_head(_DATA_PAGE, len(data)) + b"\x2c" + _i32(n) + _i32(encoding)
    return head + _i32(_RLE) + _i32(_RLE) + b"\0\0" + data


def _run(n: int, code: int, width: int) -> bytes:
    """The same code of `width` bits, `n` times."""
    return varint(n << 1) + (bytes([code]) if n and width else b"")


def _hybrid(codes: np.ndarray, width: int) -> bytes:
    """Codes of `width` bits in the format's hybrid of runs and packed bits."""
    n = len(codes)
    if n == 0 or codes.min() == codes.max():
        return _run(n, int(codes[0]) if n else 0, width)
    n_groups = -(-n // 8)
    padded = np.zeros(8 * n_groups, np.uint8)
    padded[:n] = codes
    bits = padded if width == 1 else np.unpackbits(padded[:, None], axis=1, count=width, bitorder="little")
    return varint(n_groups << 1 | 1) + np.packbits(bits.ravel(), bitorder="little").tobytes()


@lru_cache(maxsize=64)
def _strings(values: tuple[str, ...]) -> bytes:
    """Strings, each after its length; a sweep's tasks have the same names in each run."""
    return b"".join(len(raw).to_bytes(4, "little") + raw for raw in (value.encode() for value in values))


# ---- Thrift's compact protocol: a byte with the step to the field's number and its type, then the value


@lru_cache(maxsize=1 << 14)
def varint(value: int) -> bytes:
    """A number, 7 bits to a byte; a table has the same few many times."""
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _i32(value: int, step: int = 1) -> bytes:
    """A field of 32 bits; not negative here, but written as what might be."""
    return bytes([step << 4 | 5]) + varint(value << 1)


def _i64(value: int, step: int = 1) -> bytes:
    """A field of 64 bits."""
    return bytes([step << 4 | 6]) + varint(value << 1)


def _text(value: str, step: int = 1) -> bytes:
    """A field of text."""
    return bytes([step << 4 | _BINARY]) + _binary(value)


def _binary(text: str) -> bytes:
    raw = text.encode()
    return varint(len(raw)) + raw


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    """A field that is a list of values of one type of the protocol."""
    n = len(items)
    head = bytes([n << 4 | kind]) if n < 15 else bytes([0xF0 | kind]) + varint(n)
    return b"\x19" + head + b"".join(items)


@dataclass(frozen=True)
class _Schema:
    """What is the same in the footers of all tables with the same columns."""

    start: bytes
    heads: tuple[bytes, ...]
    end: bytes


@lru_cache(maxsize=64)
def _schema(columns: tuple[tuple[str, str, tuple[str, ...]], ...]) -> _Schema:
    """The constant parts of a footer.

    What Polars would tell Arrow's readers of the types, such as that names are an Enum, is
    taken from a table without rows that it writes.
    """
    import polars as pl

    empty, elements, heads = {}, [], []
    for name, kind, names in columns:
        physical, converted = _TYPES[kind]
        empty[name] = Column(
            [] if kind == "str" and not names else np.zeros(0, "u1" if names else kind), names=names
        )
        # Type, optional, name, converted type.
        element = _i32(physical) + _i32(1, step=2) + _text(name)
        elements.append(element + (b"" if converted is None else _i32(converted, step=2)) + b"\0")
        # Type, encodings, path, no compression.
        encodings = _list(5, [varint(encoding << 1) for encoding in (_PLAIN, _RLE, _RLE_DICTIONARY)])
        heads.append(_i32(physical) + encodings + _list(_BINARY, [_binary(name)]) + _i32(0))
    buffer = io.BytesIO()
    table(empty).write_parquet(buffer)
    buffer.seek(0)
    arrow = pl.read_parquet_metadata(buffer)["ARROW:schema"]
    root = _text("root", step=4) + _i32(len(columns)) + b"\0"
    return _Schema(
        start=_i32(1) + _list(_STRUCT, [root, *elements]),
        heads=tuple(heads),
        end=_list(_STRUCT, [_text("ARROW:schema") + _text(arrow) + b"\0"]) + _text("schedlab") + b"\0",
    )
