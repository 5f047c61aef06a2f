# SPDX-License-Identifier: MIT
"""Every rule of docs/semantics.md, on every host that runs policies."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance import cases
from conftest import first_are_quick, missing
from schedlab.errors import UnavailableError
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.hosts.kernel import build as kernel_build

CASES = cases.all_cases()
#: Hosts that run these cases: each has a test below.
HOSTS = ("sim", "kernel", "guest", "uthreads")
#: A CPU that was away for so long, or whose timer was so late, may see two events of a case, 1 ms apart, at once.
DISTURBED_NS = 250_000
DOCUMENT = cases.ROOT / "docs" / "semantics.md"
#: Policies that poke at what no program can reach call the core by its own names.
FLAGS = ("-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-fno-semantic-interposition",
         "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")  # fmt: skip


@pytest.fixture(scope="session")
def compiled(tmp_path_factory, need):
    """Function that compiles a case's policy, once for all cases that share it."""
    folder = tmp_path_factory.mktemp("policies")
    compiler = need("cc")

    def build(case):
        target = folder / f"{case.policy_source.name}.so"
        if not target.exists():
            done = subprocess.run(
                [compiler, *FLAGS, f"-I{cases.ROOT / 'include'}", f"-I{cases.HERE}", "-o", target,
                 case.policy_source],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        return target

    return build


def conform(case, story):
    wrong = cases.verdict(case, story)
    assert not wrong, "\n".join([*wrong, "", story.show()])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_simulator(case, tmp_path, simulator, compiled):
    conform(case, cases.run_in_simulator(case, tmp_path, simulator, compiled(case)))


def is_disturbed(answer):
    return any(answer.get(name, 0) >= DISTURBED_NS for name in ("away_ns_max", "timer_late_ns_max"))


USER_CASES = [[case] for case in CASES if case.runs_on("uthreads")]


@pytest.mark.parametrize("case", first_are_quick(10, USER_CASES), ids=lambda case: case.name)
def test_user_threads(case, tmp_path, build, compiled):
    runner = build / "hosts" / "uthreads" / "schedlab-uthreads"
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        story = cases.run_in_simulator(case, folder, runner, compiled(case))
        # While others have the CPU, or a virtual machine's timer is late, arrivals come due
        # that a case puts apart: the order of events is another one then, and no fault.
        if not cases.verdict(case, story) or not is_disturbed(story.answer):
            break
    conform(case, story)


GUEST_CASES = [case for case in CASES if case.runs_on("guest")]


@pytest.fixture(scope="session")
def guest_answers():
    """What a real kernel says to each case, by name: one boot for all on the same machine."""
    by_machine = {}
    for case in GUEST_CASES:
        by_machine.setdefault(case.machine, []).append(cases.guest_task(case))
    try:
        return {
            answer.name: answer
            for (cpus, topology), tasks in by_machine.items()
            for answer in guest.run_guest(tasks, cpus=cpus, topology=topology)
        }
    except UnavailableError as error:
        if os.environ.get("SCHEDLAB_TOOLS_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def has_kernel_thread(trace):
    """Whether one got an idle CPU, which then looked for a task as well, unasked."""
    return any(
        name == "sched_switch" and not event["prev_pid"] and event["next_pid"] not in (1, *trace.tasks)
        for t_ns, _, name, event in trace.events
        if trace.start_ns <= t_ns <= trace.start_ns + trace.end_ns
    )


@pytest.mark.full
@pytest.mark.parametrize("case", GUEST_CASES, ids=lambda case: case.name)
def test_real_kernel(case, tmp_path, guest_answers):
    answer = guest_answers[case.name]
    for _ in range(5):
        story = cases.story_of_guest(case, answer, tmp_path)
        if not cases.verdict(case, story) or not has_kernel_thread(answer.trace):
            break
        # Each boot has its own: once more, alone, and when other work of the kernel is due.
        cpus, topology = case.machine
        *_, answer = guest.run_guest([cases.guest_task(case)] * 2, cpus=cpus, topology=topology)
    conform(case, story)


KERNEL_CASES = [case for case in CASES if case.runs_on("kernel")]


@pytest.fixture(scope="session")
def kernel_stories(tmp_path_factory):
    """What the teaching kernel does with each case, by name: a boot each, two at a time."""
    reason = kernel_boot.unavailable()
    if reason:
        missing("the teaching kernel", reason)
    image = kernel_build.build_kernel(sorted({case.policy_source for case in KERNEL_CASES}))

    def run(case):
        try:
            return cases.run_in_kernel(case, tmp_path_factory.mktemp(case.name), image)
        except AssertionError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        names = [case.name for case in KERNEL_CASES]
        return dict(zip(names, pool.map(run, KERNEL_CASES), strict=True))


@pytest.mark.full
@pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
def test_teaching_kernel(case, kernel_stories):
    story = kernel_stories[case.name]
    assert isinstance(story, cases.Story), story
    conform(case, story)


def test_hosts_in_the_cases_exist():
    for case in CASES:
        assert set(case.head.get("hosts", [])) <= set(HOSTS), case.name


def test_s33_random_numbers_follow_the_seed(tmp_path, simulator, compiled):
    (case,) = [case for case in CASES if case.name == "s33_random"]

    def numbers(seed):
        story = cases.run_in_simulator(case, tmp_path, simulator, compiled(case), seed)
        return story.said()

    assert numbers(7) == numbers(7)
    assert numbers(7) != numbers(8)


@pytest.mark.parametrize("flag", ["SCX_OPS_SWITCH_PARTIAL"])
@pytest.mark.parametrize("place", ["u64 flags = {};", "u64 flags(void) {{ return {} | 1; }}"])
def test_s42_a_flag_of_linux_alone_does_not_compile(flag, place, need):
    text = f"#include <scx/common.bpf.h>\n{place.format(flag)}\n"
    compiler = [need("cc"), "-fsyntax-only", f"-I{cases.ROOT / 'include'}", "-xc", "-"]
    done = subprocess.run(compiler, input=text, capture_output=True, text=True, check=False)
    assert done.returncode and f'"{flag}: ' in done.stderr, done.stderr
    allowed = text.replace(flag, "SCX_OPS_ENQ_LAST")
    assert not subprocess.run(compiler, input=allowed, capture_output=True, text=True, check=False).returncode


# ---- the tests of the tests ---------------------------------------------


def rules():
    """Number and text of every rule in the document."""
    text = DOCUMENT.read_text()
    parts = re.split(r"^### (S\d+)\b", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_rules_are_numbered_without_gaps():
    assert list(rules()) == [f"S{i + 1}" for i in range(len(rules()))]


def test_every_rule_names_tests_that_exist():
    for rule, text in rules().items():
        named = re.findall(r"`(tests/[\w./]+|s\d\d_\w+)`", text.partition("Test")[2])
        assert named, f"{rule} names no test"
        for name in named:
            if name.startswith("tests/"):
                assert (cases.ROOT / name).is_file(), f"{rule} names {name}"
            else:
                (case,) = [case for case in CASES if case.name == name] or [None]
                assert case, f"{rule} names {name}"
                assert case.rule == rule, f"{name} says that it tests {case.rule}"


def test_every_case_stands_under_its_rule():
    for case in CASES:
        assert f"`{case.name}`" in rules()[case.rule], f"{case.rule} does not name {case.name}"
        number = int(case.name[1:3])
        assert case.rule == f"S{number}"


def test_every_policy_is_used():
    used = {case.policy_source for case in CASES}
    assert used == set(cases.HERE.glob("*.bpf.c"))


@pytest.mark.parametrize(
    "folder", ["bpf", "core", "hosts/common", "hosts/sim", "hosts/uthreads", "include", "policies", "player"]
)
def test_every_cited_rule_exists(folder):
    known = rules()
    for path in sorted((cases.ROOT / folder).rglob("*.[ch]")):
        for number in re.findall(r"\bS(\d+)\b", path.read_text()):
            assert f"S{number}" in known, f"{path.name} cites S{number}"


def test_a_property_that_is_not_true_is_reported(tmp_path, simulator, compiled):
    """The harness itself: false properties and unexpected success are seen."""
    (case,) = [case for case in CASES if case.name == "s03_no_enqueue"]
    story = cases.run_in_simulator(case, tmp_path, simulator, compiled(case))
    lying = cases.Case(case.name, {**case.head, "expect": ["cpu_ns('a') == 1", "count('x') == 0"]}, "")
    assert len(cases.verdict(lying, story)) == 2
    failing = cases.Case(case.name, {**case.head, "expect": [], "error_kind": "stall"}, "")
    assert len(cases.verdict(failing, story)) == 1
