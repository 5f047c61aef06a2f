# SPDX-License-Identifier: MIT
"""The shell, its programs, and the console, as a person uses them: by typing."""

from __future__ import annotations

import re

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine

pytestmark = pytest.mark.full

UP, DOWN, LEFT, HOME = "\033[A", "\033[B", "\033[D", "\033[H"


@pytest.fixture(scope="module")
def shell(image):
    """A machine at its prompt; one for all tests, which leave no files."""
    with Console(Machine(image), timeout_s=240) as console:
        console.wait_for(r"^\$ \Z")
        yield console


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("echo hello   world", "hello world\n"),
        ("echo 'a  b' \"c  d\" e\\ f # not this", "a  b c  d e f\n"),
        ("echo a b c | wc", "1 3 6 \n"),
        ("echo one > f; echo two >> f; cat f; rm f", "one\ntwo\n"),
        ("(echo 1; echo 2; echo 3) | grep -v 2", "1\n3\n"),
        ("echo abc > f; cat < f | cat | cat; rm f", "abc\n"),
        ("mkdir d; cd d; echo x > y; ls y; rm y; cd ..; rm d", None),
        ("echo a; echo b", "a\nb\n"),
        ("(echo in; (echo deeper)) | wc", "2 2 10 \n"),
        ("echo x | grep '^x$'", "x\n"),
        ("grep 'a*b.$' < /none", "sh: cannot open /none\n"),
        ("nosuch", "sh: cannot run nosuch; `help` says what there is\n"),
        ("echo (", "sh: a ; is missing before (\n"),
        ("echo a |", "sh: a command is missing\n"),
        ("| echo", "sh: a command is missing\n"),
        ("echo )", "sh: there is a ) too many\n"),
        ("(echo", "sh: a ) is missing\n"),
        ("echo 'a", "sh: a quote is not closed\n"),
        ("echo >", "sh: a word is missing\n"),
        ("rm nofile", "rm: cannot remove nofile\n"),
        ("kill 99999", "kill: there is no process 99999; `ps` lists them\n"),
        ("sh -c 'echo from a shell'", "from a shell\n"),
        ("echo echo script > s; sh s; rm s", "script\n"),
        ("echo deep" + "|cat" * 30, "deep\n"),
        ("echo deep" + "|cat" * 60, "sh: the line has too many commands\n"),
        ("echo a" + "|cat" * 16 + ";echo b" * 9, "a\n" + "b\n" * 9),
        (";".join(["echo x"] * 30), "x\n" * 30),
        ("(" * 10 + "echo in" + ")" * 10, "in\n"),
        ("(" * 11 + "echo in" + ")" * 11, "sh: too many ( within each other\n"),
        ("(" * 250, "sh: too many ( within each other\n"),
        ("", ""),
    ],
)
def test_a_line(shell, line, answer):
    said = shell.run(line)
    if answer is not None:
        assert said == answer


def test_a_script_may_be_long(shell):
    shell.run("echo echo 1 > s; echo echo 2 >> s; echo 'echo 3 | wc' >> s")
    assert shell.run("sh s; rm s") == "1\n2\n1 1 2 \n"


def test_background(shell):
    said = shell.run("(sh -c 'echo inside'; echo outside) > f &")
    assert re.fullmatch(r"\[\d+\]\n", said)
    shell.run("wait")
    assert shell.run("cat f; rm f") == "inside\noutside\n"


def type_keys(shell, keys):
    """Type keys that end in a newline; what the command printed."""
    shell.send(keys)
    text = shell.wait_for(r"^\$ \Z")
    return text.rpartition("\r")[2].partition("\n")[2].removesuffix("$ ")


def test_editing(shell):
    assert type_keys(shell, "echo abd" + LEFT + "c\n") == "abcd\n"
    assert type_keys(shell, "cho x" + HOME + "e\n") == "echo x\n".replace("echo ", "")
    assert type_keys(shell, "echo one two\x17three\n") == "one three\n"
    assert type_keys(shell, "rubbish\x15echo clean\n") == "clean\n"
    assert type_keys(shell, "echo xy\x7f\x7fz\n") == "z\n"


def test_history(shell):
    shell.run("echo first")
    shell.run("echo second")
    assert type_keys(shell, UP + "\n") == "second\n"
    assert type_keys(shell, UP + UP + "\n") == "first\n"
    assert type_keys(shell, "typed" + UP + DOWN + "\x15echo back\n") == "back\n"
    assert "  echo second\n" in shell.run("history")


def test_ctrl_c_ends_what_is_in_front(shell):
    before = shell.run("ps").count("\n")
    # Who says so is in front already: between two commands keys are the shell's.
    shell.send("(echo started; cat; echo not reached) | cat\n")
    shell.wait_for("^started\n")
    shell.send("typed\n")
    shell.wait_for("typed\ntyped\n")
    shell.send("\x03")
    shell.wait_for(r"^\$ \Z")
    assert shell.run("ps").count("\n") == before
    assert shell.run("echo alive") == "alive\n"


def test_the_end_of_input(shell):
    shell.send("wc\nab c\nd\n\x04")
    shell.wait_for(r"^2 3 7 \n\$ \Z")


def test_what_was_typed_ahead_is_a_line(shell):
    """While a command runs, what it does not read is for the shell."""
    shell.send("sh -c 'ps > f; rm f'\necho later\n")
    shell.wait_for(r"^later\n\$ \Z")


def test_ctrl_p_shows_the_scheduler(shell):
    shell.send("\x10")
    shell.wait_for("(?i)cpu")
    shell.send("\n")
    shell.wait_for(r"^\$ \Z")


def test_ps_shows_attributes(shell):
    said = shell.run("ps")
    assert said.startswith("policy: ")
    row = next(line for line in said.splitlines() if " sh " in line)
    assert "blocked" in row
    assert row.endswith("waits for child")


def test_top_ends_after_its_rounds(shell):
    said = shell.run("top -n 2 1")
    assert said.count("policy:") == 2


def test_sched_switches(shell):
    old = re.search(r"^\* (\S+)", shell.run("sched"), re.MULTILINE)[1]
    assert shell.run("sched mlfq boost_ns=5000000") == ""
    assert shell.run("ps").startswith("policy: mlfq ")
    said = shell.run("sched")
    assert re.search(r"^\* mlfq$", said, re.MULTILINE)
    assert "boost_ns=5000000" in said
    assert "cannot switch" in shell.run("sched nosuch")
    assert "cannot switch" in shell.run("sched mlfq nosuch=1")
    assert shell.run("ps").startswith("policy: mlfq ")
    assert shell.run(f"sched {old}") == ""


def test_time_tells_how_long(shell):
    said = shell.run("time timings -n 1 -d 1000 5")
    assert re.search(r"^real \d+\.\d{3} s, ran \d+ ticks, waited for a CPU \d+ ticks", said, re.MULTILINE)


def test_nice(shell):
    assert shell.run("nice 5 echo x") == "x\n"
    assert re.search(r" 5 .* ps", shell.run("nice 5 ps"))
    assert shell.run("nice x echo").startswith("usage:")


def test_timings_are_lines_for_programs(shell):
    said = shell.run("timings --raw -n 2 -d 2000")
    lines = said.splitlines()
    assert len(lines) == 7 * 3 * 2
    for line in lines:
        fields = dict(word.split("=") for word in line.removeprefix("timing ").split())
        assert set(fields) == {"test", "name", "way", "run", "ticks", "ns", "switches"}
        assert int(fields["ns"]) > 0
        assert int(fields["ticks"]) >= 0
        if fields["test"] == "4" and fields["way"] != "text":
            assert fields["ticks"] == "50", "both codes print 50 whatever happened"


def test_timings_are_a_table_for_people(shell):
    said = shell.run("timings -n 2 -d 2000 2 5 -a text")
    assert re.search(r"^2 switch-overhead +\d+ \(\d+-\d+\) +\d+$", said, re.MULTILINE)
    assert "usage:" in shell.run("timings 8")


def test_help_names_programs_that_are_there(shell):
    said = shell.run("help")
    there = set(shell.run("ls /").split())
    # The first column: "nice 5 ps, time ps".
    named = {
        name
        for line in said.splitlines()
        if line.startswith("  ")
        for name in re.findall("[a-z]+", line[2:].split("  ")[0])
    }
    assert {"ps", "sched", "timings", "poweroff"} <= named <= there


def test_who_leaves_the_shell_is_told_how_to_end_the_machine(image):
    """And power off has a status."""
    with Console(Machine(image), timeout_s=240) as console:
        console.wait_for(r"^\$ \Z")
        console.send("exit\n")
        assert "`poweroff` ends the machine" in console.wait_for(r"^\$ \Z")
        console.send("poweroff 7\n")
        assert console.wait() == 7
