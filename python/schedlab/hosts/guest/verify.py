# SPDX-License-Identifier: MIT
"""Ask the kernel of the guest whether it takes a policy; its answer is kept by hash.

Read next: policies.py, which asks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import HostError
from ...files import write_text
from ...paths import cache_folder
from ...policy.bpf import compile_object
from ...policy.find import load_policy
from .boot import GuestRunner
from .build import toolchain
from .frames import Answer
from .policies import GuestTask, guest_system, job_files, read_answers

#: How long a policy has the CPUs, in milliseconds: it need only be taken.
HOLD_MS = 10
TIMEOUT_S = 240.0
#: A line of the source in the verifier's log, before the instructions that it became.
_SOURCE = re.compile(r"^; (?P<text>.*?)(?: @ (?P<file>\S+):(?P<line>\d+))?$")
#: What the log has for its own sake: instructions, registers; and what comes behind the reason.
_STEP = re.compile(r"^(\d+: |from \d+ to |R\d+=|R\d+_w=|$)")
_END = re.compile(r"^(verification time|processed \d|insns processed|stack depth)")


def verify_policies(names: Sequence[str]) -> list[dict[str, Any]]:
    """Have policies verified, all that are new in one machine.

    In the order of `names`, which are names or paths: `policy`, `kernel`, `is_accepted`, `reason` (the
    verifier's, from the line of the source on; empty if accepted) and `instructions` verified by callback.
    PolicyError: one does not compile for BPF; UnavailableError: no QEMU, clang or kernel.
    """
    policies = [load_policy(name) for name in names]
    objects = [
        compile_object(policy.path, policy.content_hash, toolchain=toolchain).read_bytes()
        for policy in policies
    ]
    system, parts = guest_system()
    kernel = hashlib.sha256(parts.kernel.read_bytes() + system.init).hexdigest()
    files = [_note(kernel, data) for data in objects]
    new = [i for i, file in enumerate(files) if not file.is_file()]
    if new:
        tasks = [GuestTask(policies[i].name, objects[i], hold_ms=HOLD_MS) for i in new]
        said = GuestRunner().run(system, job_files(tasks), timeout_s=TIMEOUT_S)
        for i, answer in zip(new, read_answers(tasks, said, timeout_s=TIMEOUT_S), strict=True):
            _keep(files[i], answer)
    return [
        {"policy": policy.name} | json.loads(file.read_text("utf-8"))
        for policy, file in zip(policies, files, strict=True)
    ]


def _note(kernel: str, data: bytes) -> Path:
    key = hashlib.sha256(kernel.encode() + data).hexdigest()[:32]
    return cache_folder("verified") / f"{key}.json"


def _keep(file: Path, answer: Answer) -> None:
    if not answer.is_loaded and not answer.refusal:
        raise HostError(f"{answer.name}: {'; '.join(answer.fatal) or 'the guest did not come to it'}")
    found = {
        "kernel": " ".join(answer.uname.split()[:2]),
        "is_accepted": answer.is_loaded,
        "reason": "" if answer.is_loaded else reason_of(answer.refusal),
        "instructions": answer.instructions,
    }
    write_text(file, json.dumps(found))


def reason_of(log: str) -> str:
    """What a verifier's log comes to: the line of the source it ended at, and what is wrong there.

    `FILE:LINE: TEXT`, and the verifier's words below; where the log names no source, all of it.

    >>> reason_of("; x = p->a @ a.bpf.c:7\\n3: (79) r1 = *(u64 *)(r0 +0)\\nR0 invalid mem access 'scalar'\\nprocessed 4 insns")
    "a.bpf.c:7: x = p->a\\nR0 invalid mem access 'scalar'"
    >>> reason_of("stack depth 0 max 0\\nprocessed 7 insns (limit 1000000)\\nits program setup returned -22")
    'its program setup returned -22'
    """
    lines = log.strip().splitlines()
    places = [i for i, line in enumerate(lines) if _SOURCE.match(line)]
    if not places:
        return "\n".join(line for line in lines if not _END.match(line)) or log.strip()
    source = _SOURCE.match(lines[places[-1]])
    assert source
    place = f"{source['file']}:{source['line']}: " if source["file"] else ""
    words = [line for line in lines[places[-1] + 1 :] if not _STEP.match(line)]
    end = next((i for i, line in enumerate(words) if _END.match(line)), len(words))
    return "\n".join([place + source["text"], *words[:end]])
