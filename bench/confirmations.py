# SPDX-License-Identifier: MIT
"""Does what `whatif` and `tune` advise hold on Linux? `.venv/bin/python bench/confirmations.py`.

    confirmations.py [--state FOLDER] [--again] [--write]

Of nginx and PostgreSQL, as the validation set runs them (validation_set.py, which names the packages): each of their
recordings with `--causes` is asked, metric by metric, which of Linux's classes and slices is best (`whatif`), and those of
SCHED_OTHER which of its slices is (`tune`). Each winner is run really, under its class: the median of the real runs is
inside the interval of the prediction, or not. The intervals are those that the other programs of the set make, so that
nothing is held against what made it.

FOLDER is that of the validation set, which is made first where it is not there; answers and real runs are kept in it.
`--again` asks anew; real runs of a class stay. With `--write` the section in docs/record.md is replaced. Needs root.
Read next: validation_set.py; python/schedlab/measure/forecast.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import validation_set
from documents import write_between
from replay_validation import DOCUMENT, METRICS, ROOT, keep_others_small
from schedlab.hosts.linux.machine import describe_machine
from schedlab.measure import forecast
from schedlab.measure.tune import read_question, tune
from schedlab.measure.whatif import open_subject, what_if
from schedlab.stats.sentences import show_number

#: Real runs of each winner.
RUNS = 3
SEEDS, TRIALS = 2, 8
#: Slices of the fair class besides the machine's, and its two ways to preempt.
ALTERNATIVES = ("eevdf.slice_ns=700us,5ms", "eevdf.preempt=linux,batch")
SEARCHED = "slice_ns=100us..20ms"
#: What `tune` is asked for, of SCHED_OTHER: a slice does not change the others.
TUNED = ("wakeup_ns_p99", "switches_involuntary")


def ask_what_if(recording: Path, out: Path) -> list[dict[str, Any]]:
    """Of each metric: which class is best, and what is predicted for it."""
    subject = open_subject(str(recording), out)
    found, _ = what_if(
        subject, ["rt_fifo", "rt_rr", "eevdf"], out, metrics=[*METRICS], settings=ALTERNATIVES, n_seeds=SEEDS
    )
    answers = []
    for metric in found["metrics"]:
        rows = [row for row in found["ranking"] if row["class"] and metric in row["forecast"]]
        if rows:
            best = min(rows, key=lambda row: row["metrics"][metric]["mean_b"])
            answers.append(
                {"by": "whatif", "metric": metric, "class": best["class"]} | best["forecast"][metric]
            )
    return answers


def ask_tune(recording: Path, out: Path) -> list[dict[str, Any]]:
    """Of some metrics: which slice of the recorded class is best, and what is predicted for it."""
    subject = open_subject(str(recording), out)
    answers = []
    for metric in TUNED:
        question = read_question([metric], [], [], trials=TRIALS, seeds=SEEDS, held_out=SEEDS)
        found, _ = tune(subject, "eevdf", out / metric, question, knobs=[SEARCHED])
        if found["class"] and metric in found["forecast"]:
            answers.append(
                {"by": "tune", "metric": metric, "class": found["class"]} | found["forecast"][metric]
            )
    return answers


def ask(name: str, state: Path, ends: dict[str, Any]) -> list[dict[str, Any]]:
    """All answers for a program, with intervals of these ends."""
    kept = validation_set.folder_of(name, state)
    file = kept / "answers.made.json"
    if not file.is_file():
        forecast.validated = lambda: {"ends": ends}
        answers = []
        for linux_class in validation_set.CLASSES:
            for number in range(validation_set.SOURCES):
                recording = kept / f"{linux_class.partition(':')[0]}-{number}"
                asked = [ask_what_if] + [ask_tune] * (linux_class == "SCHED_OTHER" and not number)
                for each in asked:
                    with tempfile.TemporaryDirectory(prefix="schedlab-confirm-") as scratch:
                        answers += [
                            answer | {"recorded": linux_class} for answer in each(recording, Path(scratch))
                        ]
        validation_set.write_whole(file, answers)
    found: list[dict[str, Any]] = json.loads(file.read_text())
    return found


def measure(name: str, state: Path, classes: set[str]) -> dict[str, list[dict[str, Any]]]:
    """Metrics of real runs of a program under each class."""
    program = validation_set.PROGRAM_SET[name]
    found: dict[str, list[dict[str, Any]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-program-") as place,
        tempfile.TemporaryDirectory() as scratch,
    ):
        subprocess.run(["sh", "-ec", program.setup], cwd=place, check=True)
        for number in range(RUNS):
            for linux_class in sorted(classes):
                file = validation_set.folder_of(name, state) / f"{linux_class}-{number}.made.json"
                if not file.is_file():
                    run = validation_set.record(
                        program, Path(place), linux_class, Path(scratch) / "run", has_causes=False
                    )
                    validation_set.write_whole(file, run["metrics"])
                found.setdefault(linux_class, []).append(json.loads(file.read_text()))
    return found


def confirm(name: str, state: Path, ends: dict[str, Any]) -> list[dict[str, Any]]:
    """Each answer with what was measured."""
    answers = ask(name, state, ends)
    real = measure(name, state, {answer["class"] for answer in answers})
    for answer in answers:
        measured = median(run[answer["metric"]] for run in real[answer["class"]])
        answer |= {
            "program": name,
            "measured": measured,
            "is_inside": answer["low"] <= measured <= answer["high"],
        }
    return answers


def table(confirmed: list[dict[str, Any]]) -> str:
    """The section of the document."""
    machine = describe_machine()
    n_inside = sum(each["is_inside"] for each in confirmed)
    lines = [
        f"Made on {datetime.now(UTC):%Y-%m-%d} by `.venv/bin/python bench/confirmations.py --write`: Linux {machine['kernel']}, "
        f"{machine['cpu']}, one of {machine['cpus']} CPUs, load {machine['load_1min']:.1f} by other programs. Of {len(confirmed)} winners that "
        f"were run really, {RUNS} times each, **{n_inside} ({n_inside / len(confirmed):.0%}) were inside** the {forecast.CONFIDENCE:.0%} interval of "
        "their prediction.",
        "",
        "| program | asked | for the least | inside | off by, median | winners (times): predicted, measured |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for each in confirmed:
        groups.setdefault((each["program"], each["by"], each["metric"]), []).append(each)
    for (name, by, metric), answers in groups.items():
        winners: dict[str, list[dict[str, Any]]] = {}
        for each in answers:
            winners.setdefault(each["class"], []).append(each)
        shown = [
            f"{linux_class} ({len(mine)}): {value(mine[0], 'predicted')}, {value(mine[0], 'measured')}"
            for linux_class, mine in winners.items()
        ]
        off = median(
            abs(validation_set.error_of(metric, each["predicted"], each["measured"]) or 0) for each in answers
        )
        lines.append(
            f"| {name} | `{by}` | {METRICS[metric]} | {sum(each['is_inside'] for each in answers)} of {len(answers)} | {off:.0%} | {'; '.join(shown)} |"
        )
    for each in confirmed:
        if not each["is_inside"]:
            lines += [""] * (lines[-1][:1] == "|")
            lines.append(
                f"- Outside: {each['program']}, recorded under {each['recorded']}, `{each['by']}` for {METRICS[each['metric']]}: {each['class']}, predicted "
                f"{value(each, 'predicted')} ({value(each, 'low')} .. {value(each, 'high')}), measured {value(each, 'measured')}."
            )
    return "\n".join(lines)


def value(answer: dict[str, Any], key: str) -> str:
    """A value of an answer, for people."""
    return show_number(answer["metric"], answer[key])


def main() -> int:
    parser = argparse.ArgumentParser(description="Run really what whatif and tune say is best.")
    parser.add_argument(
        "--state", type=Path, default=ROOT / ".cache" / "validation", help="that of validation_set.py"
    )
    parser.add_argument("--again", action="store_true", help="ask anew, of the recordings that are there")
    parser.add_argument("--write", action="store_true", help="replace the section in docs/record.md")
    options = parser.parse_args()
    for file in options.state.glob("*/answers.made.json") if options.again else ():
        file.unlink()
    keep_others_small()
    done = {name: validation_set.run_program(name, options.state) for name in validation_set.PROGRAM_SET}
    confirmed = []
    for name in (each for each in done if each.startswith(validation_set.SERVERS)):
        others = validation_set.ends_of([each for each in validation_set.held(done) if each.program != name])
        confirmed += confirm(name, options.state, others)
        print(f"{name}: done", file=sys.stderr, flush=True)
    text = table(confirmed)
    print(text)
    if options.write:
        write_between("confirmations", text, DOCUMENT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
