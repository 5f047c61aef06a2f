// SPDX-License-Identifier: MIT
// A run as a trace that Perfetto's viewer opens: a row for each CPU, and one for each task.
//
// It is the older of the viewer's formats, JSON of trace events, times in microseconds.
// The command line writes the newer one, with more in it: `schedlab trace`.
//
// Read next: slices.js.
"use strict";

const ON_CPUS = 1, OF_TASKS = 2, STATE_NAMES = ["ran", "waited for a CPU", "was blocked"];

function traceOf(result) {
  const { slices, job } = result, events = [], nameOfTask = (pid) => job.tasks.names[pid - 1] ?? "task";
  const told = (what, pid, tid, name) => events.push({ ph: "M", name: what, pid, ...(tid === null ? {} : { tid }), args: { name } });
  told("process_name", ON_CPUS, null, "CPUs");
  told("process_name", OF_TASKS, null, "tasks");
  for (let cpu = 0; cpu < slices.cpus; cpu++) told("thread_name", ON_CPUS, cpu, `CPU ${cpu}`);
  for (const pid of slices.pids) told("thread_name", OF_TASKS, pid, `${nameOfTask(pid)}[${pid}]`);
  for (let i = 0; i < slices.begin.length; i++) {
    const pid = slices.pid[i], state = slices.state[i];
    const times = { ph: "X", ts: slices.begin[i] / 1000, dur: (slices.end[i] - slices.begin[i]) / 1000 };
    const args = state === RAN ? { cpu: slices.cpu[i], ended: ENDED[slices.reason[i]] } : {};
    events.push({ ...times, name: STATE_NAMES[state], pid: OF_TASKS, tid: pid, args });
    if (state === RAN) events.push({ ...times, name: `${nameOfTask(pid)}[${pid}]`, pid: ON_CPUS, tid: slices.cpu[i], args: { pid } });
  }
  return JSON.stringify({ displayTimeUnit: "ns", traceEvents: events });
}
