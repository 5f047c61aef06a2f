# SPDX-License-Identifier: MIT
"""JSON as people write it, and TOML as we write it."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.errors import SpecError
from schedlab.workload.json_text import Pairs, parse_json
from schedlab.workload.toml_text import clean_name, unique, write_toml


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "x.json:1: not JSON: the file is empty"),
        ("/* open", "x.json:1: not JSON: a comment does not end"),
        ('{\n"a" : 1 "b" : 2}', "x.json:2: not JSON: ',' or '}' is needed, not '\"b\" : 2}'"),
        ('{"a"\n: }', "x.json:2: not JSON: a value is needed, not '}'"),
        ('{"a : 1}', "the text '\"a : 1}' does not end on its line"),
        ('{"a" : "\\x"}', r"unknown escape '\\x' in a text"),
        ("{a : 1}", "a key in quotes is needed, not 'a : 1}'"),
        ("{} []", "'[]' follows the end of the first value"),
        ("[" * 70, "values are nested more than 64 deep"),
        ("[" + "9" * 30 + "]", "a number of 30 characters is too long"),
        ("[1,,2]", "a value is needed, not ',2]'"),
        ("{,}", "a key in quotes is needed"),
        ("nil", "a value is needed, not 'nil'"),
    ],
)
def test_bad_json(text, why):
    with pytest.raises(SpecError) as caught:
        parse_json(text, name="x.json")
    assert why in str(caught.value)


def plain(node):
    """Values without lines; objects as lists of pairs."""
    if isinstance(node.value, Pairs):
        return [(pair.key, plain(pair.node)) for pair in node.value]
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def test_json_keeps_keys_that_repeat_and_takes_what_json_c_takes():
    node = parse_json('{"run" : 1, // one\n"run" : 2, /* two\n */ "x" : [true, NULL, -1.5e1,],}', name="x")
    assert plain(node) == [("run", 1), ("run", 2), ("x", [True, None, -15.0])]
    assert [pair.line for pair in node.value] == [1, 2, 3]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans())
def test_json_of_the_standard_is_read_as_python_reads_it(value, is_ascii):
    text = json.dumps(value, indent=1, ensure_ascii=is_ascii)
    expected = json.loads(text, object_pairs_hook=list)
    assert json.dumps(plain(parse_json(text, name="x"))) == json.dumps(expected)


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers() | st.text(max_size=9), max_size=3))
def test_toml_that_is_written_is_read_again(table):
    wanted = {"workload": {"title": "T", **table}, "task": [{"name": "a", "phases": [{"set": table}]}]}
    if not table:
        wanted["task"][0]["phases"] = [{"yield": True}]
    found = tomllib.loads(write_toml(wanted, comment="a\nb"))
    if not table:
        assert found["task"][0].pop("phases") == ["yield"]
        wanted["task"][0].pop("phases")
    assert found == wanted


def test_names():
    assert clean_name("event thread [1]") == "event_thread__1_"
    assert clean_name("") == "_"
    assert [unique("a", taken, "b") for taken in (set(), {"a"}, {"a", "a-b"})] == ["a", "a-b", "a-b-2"]
