# SPDX-License-Identifier: MIT
"""Search a policy's knobs for better metrics, and test what is found on work that the search has not seen.

        knobs of the header -> Optuna asks for BATCH settings -> runs, all CPUs -> tells it -> ... -> best
                                                            held-out seeds: best against default, paired

Settings are tried on training seeds; what is best there is best by luck, too, so that the answer is what the held-out
seeds say. The study is DIR/study.journal: the same command goes on there. Every batch has a sampler of its own,
seeded by the number of batches before it: a search that was interrupted ends as one that was not.

Invariant: the same question and seed give the same trials on every machine, however many CPUs it has.
Read next: whatif.py, whose subjects these are; show/tune.py.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnavailableError, UsageError
from ..files import write_json
from ..hosts.choose import engine_of
from ..metrics.dictionary import DICTIONARY
from ..policy.build import BuiltPolicy, build_policy
from ..policy.find import parse_settings, show_value
from ..runs.compare import compare_values
from ..runs.gate import Condition, parse_condition
from ..runs.run import Prepared, RunSet, finish, make_plan, prepare
from ..runs.workers import do_runs, n_workers_of
from ..stats.bootstrap import ROUNDING
from ..stats.decide import decide
from ..stats.inference import CONFIDENCE
from .confirm import class_of, confirm, record_again, recorded_command
from .fidelity import with_slice
from .forecast import forecast
from .knob_ranges import Range, ranges_of
from .whatif import MATTERS_MIN, Subject, grades_of, load_command, read_metrics

TUNE_FILE, STUDY_FILE = "tune.json", "study.journal"
#: Settings tried between two looks at what is known, on every machine.
BATCH = 8
TRIALS, SEEDS, HELD_OUT = 64, 5, 20
#: Settings of a Pareto front that are tried on held-out seeds.
FRONT_MAX = 8
Values = dict[str, int]


def need_optuna() -> Any:
    """Import Optuna, or say how to get it."""
    if importlib.util.find_spec("optuna") is None:
        raise UnavailableError("tune needs Optuna: pip install 'schedlab[tune]'")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    objectives: list[str]  #: Metrics; the first decides where one answer is wanted.
    #: What must hold of the means, held against the default.
    conditions: list[Condition] = field(default_factory=list)
    #: `trials`, `seeds`, `held_out`: How many settings; how many seeds each; how many more for the answer.
    trials: int = TRIALS
    seeds: int = SEEDS
    held_out: int = HELD_OUT
    seed: int = 1  #: Of the sampler.


def read_question(
    minimise: Iterable[str], maximise: Iterable[str], subject_to: Iterable[str], *,
    trials: int = TRIALS, seeds: int = SEEDS, held_out: int = HELD_OUT, seed: int = 1,
) -> Question:  # fmt: skip
    """Check what a user asks for."""
    wanted = {"--minimise": read_metrics(minimise), "--maximise": read_metrics(maximise)}
    for option, other, direction in (
        ("--minimise", "--maximise", "lower"),
        ("--maximise", "--minimise", "higher"),
    ):
        for name in wanted[option]:
            if DICTIONARY[name].direction != direction:
                raise UsageError(
                    f"{option} {name}: {DICTIONARY[name].direction} is better; give it to {other}"
                )
    objectives = [name for names in wanted.values() for name in names]
    if not objectives:
        raise UsageError("tune: what for? Give --minimise or --maximise a metric, such as wakeup_p99")
    conditions = [parse_condition(text, option="--subject-to") for text in subject_to]
    return Question(objectives, conditions, trials, seeds, held_out, seed)


# ---- runs of settings ------------------------------------------------------------


@dataclass
class Trials:
    """Runs settings of one policy; what was run once is known."""

    prepared: Prepared
    base: BuiltPolicy
    known: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    def label(self, values: Values) -> str:
        """Name of a setting as a policy: what differs from the default."""
        knobs = self.base.policy.knobs
        shown = [f"{n}={show_value(knobs[n], v)}" for n, v in values.items() if v != self.base.values[n]]
        return f"{self.base.policy.name}:{','.join(shown)}" if shown else self.base.policy.name

    def run(
        self,
        settings: Sequence[Values],
        seeds: Sequence[int],
        *,
        on_result: Callable[[dict[str, Any]], None] | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Runs of each setting, by seed; None of what was interrupted."""
        todo: dict[tuple[Any, ...], Any] = {}
        context, first = self.prepared.context, self.prepared.cases[0]
        engine = engine_of(context.plan.execution)
        built = {}
        for values in settings:
            name = self.label(values)
            built[name] = build_policy(self.base.policy, self.base.values | values, engine=engine)
            for seed in seeds:
                if (name, seed) not in self.known:
                    todo[name, seed] = replace(first, position=len(todo), policy_name=name, seed=seed)
        # A context of its own: a worker process keeps what it was sent.
        mine = replace(context, built=built)

        def keep(found: Any) -> None:
            self.known[found.key] = found.run
            if on_result:
                on_result(found.run)

        work = ((key, mine, case) for key, case in todo.items())
        if todo and do_runs(work, keep, n_runs=len(todo), n_workers=n_workers_of(context.host)) is not None:
            raise KeyboardInterrupt
        return [[self.known[self.label(values), seed] for seed in seeds] for values in settings]


def means_of(runs: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, float] | None:
    """Means over the seeds; None where a run failed or lacks one."""
    if any(run["status"] != "ok" or any(run["metrics"].get(n) is None for n in names) for run in runs):
        return None
    return {name: sum(run["metrics"][name] for run in runs) / len(runs) for name in names}


def violation(condition: Condition, default: float, value: float) -> float:
    """By how much a mean breaks a condition, 0 or less where it holds; as a share of the default, for relative ones."""
    if condition.kind == "relative":
        measured = value / default - 1 if default else math.copysign(math.inf, value) if value else 0.0
    else:
        measured = value - default if condition.kind == "change" else value
    excess = measured - condition.threshold
    broken = -excess if condition.operator.startswith(">") else excess
    broken = 0.0 if abs(broken) < ROUNDING else broken
    # At the threshold itself only >= and <= hold.
    return broken if broken or condition.operator.endswith("=") else math.ulp(1.0)


# ---- the search ---------------------------------------------------------------------


def tune(
    subject: Subject, policy: str, out: Path, question: Question, *,
    settings: Sequence[str] = (), knobs: Sequence[str] = (), command_line: str = "",
    n_confirm: int = 0, measure: Callable[[str], dict[str, Any]] | None = None,
    on_start: Callable[[int], None] | None = None, on_result: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> tuple[dict[str, Any], RunSet]:  # fmt: skip
    """Search, and hold the best against the default; returns what `tune.json` has, and the held-out runs.

    With `n_confirm` the best is measured as often where it is a class of Linux: the recorded command anew, or what `measure`
    gives for a class.
    """
    optuna = need_optuna()
    if n_confirm and measure is None:
        recorded_command(subject.run)  # else it is refused before all the work
        measure = partial(record_again, subject.run, out=out / "confirm")
    plan = make_plan(
        [subject.workload], [policy], out, n_seeds=1, settings=with_slice(settings, [policy], subject.run),
        command_line=command_line, **options,
    )  # fmt: skip
    # The search keeps numbers only; what is kept to be looked at are the held-out runs.
    scratch = replace(plan, is_kept=False, out=out / "work")
    prepared = prepare(scratch)
    base = next(iter(prepared.context.built.values()))
    if not isinstance(base, BuiltPolicy):
        raise base
    fixed = parse_settings(settings, {base.policy.name: base.policy})
    if len(fixed) > 1:
        raise UsageError("--set: tune holds a knob at one value; search several with --knob")
    ranges = ranges_of(base, next(iter(fixed.values())).values, knobs)
    trials = Trials(prepared, base)
    if on_start:
        on_start(question.trials * question.seeds)
    study = _open_study(optuna, out, question, _identity(subject, base, ranges, question, plan))
    default = {each.knob.name: base.values[each.knob.name] for each in ranges}
    names = list(dict.fromkeys([*question.objectives, *(c.metric for c in question.conditions)]))
    try:
        at_default = means_of(trials.run([default], _seeds(1, question.seeds))[0], names)
        if at_default is None:
            raise UsageError(
                f"{policy}: its runs with default knobs fail or lack {' or '.join(names)}: nothing to improve"
            )
        _search(optuna, study, trials, ranges, question, default, at_default, on_result)
        found = _answer(optuna, study, trials, ranges, question, default, names)
        result = _confirm(found, trials, prepared, plan, question, default, names)
        _forecast(found, subject, trials, names, options)
    finally:
        shutil.rmtree(out / "work", ignore_errors=True)
    if n_confirm and found["class"] and found["forecast"] and measure:
        found["measured"] = {"policy": found["front"][0]["policy"]} | confirm(
            found["class"], found["forecast"], partial(measure, found["class"]), n_confirm
        )
    write_json(out / TUNE_FILE, found)
    return found, result


def _seeds(first: int, number: int) -> list[int]:
    return list(range(first, first + number))


def _identity(
    subject: Subject, base: BuiltPolicy, ranges: Sequence[Range], question: Question, plan: Any
) -> dict[str, Any]:
    """What a study must have been begun for, to be gone on with."""
    ends = {each.knob.name: each.names or (each.low, each.high) for each in ranges}
    return {
        "work": [subject.workload.name, plan.machine.as_json(), plan.execution.as_json()],
        "policy": base.policy_hash, "knobs": {name: list(limits) for name, limits in ends.items()},
        "objectives": question.objectives, "conditions": [c.text for c in question.conditions],
        "seeds": question.seeds, "seed": question.seed,
    }  # fmt: skip


def _open_study(optuna: Any, out: Path, question: Question, identity: Mapping[str, Any]) -> Any:
    """Begin a study, or go on with the one that is there."""
    out.mkdir(parents=True, exist_ok=True)
    file = optuna.storages.journal.JournalFileBackend(str(out / STUDY_FILE))
    directions = [
        "maximize" if DICTIONARY[n].direction == "higher" else "minimize" for n in question.objectives
    ]
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(file),
        study_name="tune",
        directions=directions,
        load_if_exists=True,
    )
    asked = json.dumps(identity, sort_keys=True, default=str)
    begun = study.user_attrs.setdefault("question", asked)
    if begun != asked:
        raise UsageError(f"--out {out}: {STUDY_FILE} answers another question; name another folder")
    study.set_user_attr("question", asked)
    running = optuna.trial.TrialState.RUNNING
    for trial in study.get_trials(states=(running,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # of a search that was interrupted
    return study


def _search(
    optuna: Any, study: Any, trials: Trials, ranges: Sequence[Range], question: Question, default: Values,
    at_default: Mapping[str, float], on_result: Callable[[dict[str, Any]], None] | None,
) -> None:  # fmt: skip
    """Ask for settings, a batch at a time, run them and tell what came of them."""
    state = optuna.trial.TrialState
    told = len(study.get_trials(states=(state.COMPLETE, state.PRUNED)))
    while told < question.trials:
        study.sampler = optuna.samplers.TPESampler(seed=question.seed * 1_000_003 + told)
        has_default = not told and all(each.holds(default[each.knob.name]) for each in ranges)
        if has_default:
            stored = {each.knob.name: each.stored(default[each.knob.name]) for each in ranges}
            study.enqueue_trial(stored, skip_if_exists=True)
        asked = [study.ask() for _ in range(min(BATCH, question.trials - told))]
        settings = [{each.knob.name: each.draw(trial) for each in ranges} for trial in asked]
        if has_default:
            settings[0] = dict(default)
        for trial, values, runs in zip(
            asked, settings, trials.run(settings, _seeds(1, question.seeds), on_result=on_result), strict=True
        ):
            _tell(study, state, trial, values, means_of(runs, [*at_default]), question, at_default)
        told += len(asked)


def _tell(
    study: Any, state: Any, trial: Any, values: Values, means: Mapping[str, float] | None, question: Question,
    at_default: Mapping[str, float],
) -> None:  # fmt: skip
    """One setting's outcome; a setting whose runs fail counts as tried."""
    trial.set_user_attr("values", values)
    if means is None:
        study.tell(trial, state=state.PRUNED)
        return
    trial.set_user_attr("means", dict(means))
    broken = [violation(c, at_default[c.metric], means[c.metric]) for c in question.conditions]
    for condition, value in zip(question.conditions, broken, strict=True):
        trial.set_constraint(condition.text, value)
    trial.set_user_attr("is_feasible", all(value <= 0 for value in broken))
    study.tell(trial, [means[name] for name in question.objectives])


def front_of(points: Sequence[tuple[float, ...]]) -> list[int]:
    """Which points no other one beats in everything; smaller is better, and of equal ones the first counts.

    >>> front_of([(1, 9), (5, 5), (6, 6), (9, 1), (5, 5)])
    [0, 1, 3]
    """

    def beats(a: int, b: int) -> bool:
        better = all(x <= y for x, y in zip(points[a], points[b], strict=True))
        return better and (points[a] != points[b] or a < b)

    return [b for b in range(len(points)) if not any(beats(a, b) for a in range(len(points)) if a != b)]


def _answer(
    optuna: Any,
    study: Any,
    trials: Trials,
    ranges: Sequence[Range],
    question: Question,
    default: Values,
    names: Sequence[str],
) -> dict[str, Any]:
    """The best settings on the training seeds, and how much each knob matters."""
    state = optuna.trial.TrialState
    done = study.get_trials(states=(state.COMPLETE,))
    feasible = [trial for trial in done if trial.user_attrs["is_feasible"]]
    signs = [-1 if DICTIONARY[name].direction == "higher" else 1 for name in question.objectives]
    points = [
        tuple(sign * value for sign, value in zip(signs, trial.values, strict=True)) for trial in feasible
    ]
    front = sorted(front_of(points), key=lambda i: points[i])[:FRONT_MAX]
    policy = trials.base.policy
    return {
        "policy": policy.name, "objectives": question.objectives, "conditions": [c.text for c in question.conditions],
        "seeds": question.seeds, "held_out": question.held_out, "confidence": CONFIDENCE,
        "trials": len(done), "feasible": len(feasible), "failed": len(study.get_trials(states=(state.PRUNED,))),
        "knobs": [
            {"knob": each.knob.name, "range": each.text, "default": show_value(each.knob, default[each.knob.name])}
            for each in ranges
        ],
        "importance": {name: _importance(optuna, study, i, ranges) for i, name in enumerate(question.objectives)},
        "front": [{"values": feasible[i].user_attrs["values"], "training": feasible[i].user_attrs["means"]} for i in front],
        "metrics": list(names),
    }  # fmt: skip


def _importance(optuna: Any, study: Any, index: int, ranges: Sequence[Range]) -> dict[str, float]:
    """Share of each knob in what tells good settings from others; empty where nothing does."""
    sign = -1 if study.directions[index] == optuna.study.StudyDirection.MAXIMIZE else 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that low values are taken for good ones, which they are
            found = optuna.importance.get_param_importances(
                study,
                evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                target=lambda trial: sign * trial.values[index],
            )
    except (ValueError, RuntimeError):
        return {}
    return {name: float(share) for name, share in found.items() if math.isfinite(share)}


def _confirm(
    found: dict[str, Any], trials: Trials, prepared: Prepared, plan: Any, question: Question, default: Values,
    names: Sequence[str],
) -> RunSet:  # fmt: skip
    """Run the best settings and the default with seeds that the search has not seen."""
    settings = [default, *({n: int(v) for n, v in each["values"].items()} for each in found["front"])]
    kept = replace(prepared, context=prepared.context.moved(plan.out, first_seed=question.seeds + 1))
    kept = replace(
        kept,
        context=replace(
            kept.context, plan=replace(plan, first_seed=question.seeds + 1, n_seeds=question.held_out)
        ),
    )
    held_out = Trials(kept, trials.base)
    sides = {
        "training": trials.run(settings, _seeds(1, question.seeds)),
        "held_out": held_out.run(settings, _seeds(question.seeds + 1, question.held_out)),
    }
    for side, (at_default, *others) in sides.items():
        for each, runs in zip(found["front"], others, strict=True):
            each[side] = _compared(at_default, runs, names, question.objectives)
    for each, values in zip(found["front"], settings[1:], strict=True):
        knobs = trials.base.policy.knobs
        each["policy"] = trials.label(values)
        each["shown"] = {name: show_value(knobs[name], value) for name, value in values.items()}
        means = {name: (m["mean_a"], m["mean_b"]) for name, m in (each["held_out"] or {}).items()}
        each["broken"] = [
            c.text for c in question.conditions if not means or violation(c, *means[c.metric]) > 0
        ]
    decide((m for each in found["front"] for m in (each["held_out"] or {}).values()), confidence=CONFIDENCE)
    decide((m for each in found["front"] for m in (each["training"] or {}).values()), confidence=CONFIDENCE)
    found["is_better"], found["advice"] = _advice(found, default)
    best = found["front"][0] if found["is_better"] else None
    knobs_of_best = trials.base.values | (best["values"] if best else {})
    found["load"] = best and load_command(plan.policies[0], knobs_of_best, engine=engine_of(plan.execution))
    shown = {id(run): run for group in sides["held_out"] for run in group}
    return finish(kept, [*shown.values()])


def _forecast(
    found: dict[str, Any], subject: Subject, trials: Trials, names: Sequence[str], options: Mapping[str, Any]
) -> None:  # fmt: skip
    """What Linux would measure under the best setting; and which of its classes that is."""
    found |= {"class": None, "forecast": {}, "measured": None}
    if not found["front"] or subject.run.get("host") != "linux":
        return
    best = found["front"][0]
    replayed = trials.known[best["policy"], 1]["metrics"]
    found["class"] = class_of(best["policy"], trials.base.values | best["values"])
    grades = grades_of(subject, names, options)
    for name in names:
        made = forecast(name, grades.get(name, ""), replayed[name])
        if made:
            found["forecast"][name] = made


def _compared(
    before: Sequence[dict[str, Any]],
    after: Sequence[dict[str, Any]],
    names: Sequence[str],
    objectives: Sequence[str],
) -> dict[str, Any] | None:
    """A setting against the default, seed by seed; None where a run failed. What is searched for is the headline."""
    if means_of(before, names) is None or means_of(after, names) is None:
        return None
    first, second = (
        np.array([[run["metrics"][name] for run in runs] for name in names], float)
        for runs in (before, after)
    )
    return compare_values(first, second, names, headlines=objectives)


def _advice(found: dict[str, Any], default: Values) -> tuple[bool, str]:
    """Whether the best setting is better than the default on work that the search has not seen."""
    first = found["objectives"][0]
    if not found["front"]:
        return False, f"no setting of {found['trials']} meets {' and '.join(found['conditions'])}"
    best = found["front"][0]
    if best["values"] == default:
        return (
            False,
            f"no better than the default: of {found['trials']} settings the default has the best {first}",
        )
    if best["held_out"] is None:
        return False, f"no answer: runs of {best['policy']} with held-out seeds fail"
    if best["broken"]:
        return (
            False,
            f"no better than the default: with held-out seeds the best setting breaks {' and '.join(best['broken'])}",
        )
    entry_ = best["held_out"][first]
    if entry_["better"] != "b":
        return (
            False,
            f"no better than the default: {found['held_out']} held-out seeds do not tell {first} of the two apart",
        )
    if entry_["ratio"] is not None and abs(entry_["ratio"] - 1) < MATTERS_MIN:
        return (
            False,
            f"no better than the default: with held-out seeds {first} differs by less than {MATTERS_MIN:.0%}",
        )
    return True, f"{best['policy']}: better than the default with seeds that the search has not seen"
