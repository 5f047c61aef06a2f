// SPDX-License-Identifier: MIT
// What the records of a run say: the headline metrics, and the slices of the chart.
//
// metrics/dictionary.py defines the metrics; these are the same formulas, and a test holds
// them against it. Times are whole numbers below 2^53 ns.
//
// Read next: slices.js, which draws what slicesOf() cuts.
"use strict";

const ARRIVE = 1, WAKE = 2, RUN = 3, STOP = 4, MIGRATE = 5, OVERHEAD = 9;
const PREEMPTED = 0, YIELDED = 1, BLOCKED_STOP = 2, EXITED = 3, STILL_RUNNING = 7;
const RUNNING = 0, WAITING = 1, SLEEPING = 2;
const HEADER_BYTES = 64, RECORD_WORDS = 6, SLICES_MAX = 250000;

// All records as columns, and ARRIVE, WAKE, RUN and STOP in the order of tasks.
class Timeline {
  constructor(buffer) {
    const words = new Uint32Array(buffer, HEADER_BYTES), n = words.length / RECORD_WORDS - 1;
    const wide = (at) => words[at] + words[at + 1] * 4294967296;
    this.cpus = new DataView(buffer).getUint32(20, true);
    this.end = wide(n * RECORD_WORDS);
    this.t = new Float64Array(n);
    this.arg = new Float64Array(n);
    this.task = new Uint32Array(n);
    this.cpu = new Uint16Array(n);
    this.kind = new Uint8Array(n);
    this.flags = new Uint8Array(n);
    const counts = new Map();
    for (let i = 0, at = 0; i < n; i++, at += RECORD_WORDS) {
      this.t[i] = wide(at);
      this.task[i] = words[at + 2];
      this.cpu[i] = words[at + 3] & 0xffff;
      this.kind[i] = (words[at + 3] >> 16) & 0xff;
      this.flags[i] = words[at + 3] >>> 24;
      this.arg[i] = wide(at + 4);
      if (this.kind[i] <= STOP) counts.set(this.task[i], (counts.get(this.task[i]) ?? 0) + 1);
    }
    this.order(counts);
  }

  // `row`: records by task; those of task number k are first[k] to first[k + 1].
  order(counts) {
    this.pids = Uint32Array.from(counts.keys()).sort();
    this.first = new Uint32Array(this.pids.length + 1);
    this.number = new Map();
    this.pids.forEach((pid, k) => {
      this.number.set(pid, k);
      this.first[k + 1] = this.first[k] + counts.get(pid);
    });
    const next = this.first.slice();
    this.row = new Uint32Array(this.first[this.pids.length]);
    for (let i = 0; i < this.kind.length; i++) {
      if (this.kind[i] <= STOP) this.row[next[this.number.get(this.task[i])]++] = i;
    }
  }

  // Calls back with (record, the task's next, whether it waits for a CPU, how long) in order.
  eachOf(task, call) {
    for (let k = this.first[task]; k < this.first[task + 1]; k++) {
      const i = this.row[k], hasNext = k + 1 < this.first[task + 1], next = hasNext ? this.row[k + 1] : -1;
      const waits = this.kind[i] <= WAKE || (this.kind[i] === STOP && this.flags[i] <= YIELDED);
      call(i, next, waits, (hasNext ? this.t[next] : this.end) - this.t[i]);
    }
  }
}

function metricsOf(timeline, weights) {
  const tasks = Array.from(timeline.pids, (_, task) => measureTask(timeline, task));
  const ended = tasks.filter((task) => task.end >= 0), ran = tasks.filter((task) => task.ran >= 0);
  const turnaround = ended.map((task) => task.end - task.arrival);
  const slowdown = ended.map((task) => (task.end - task.arrival) / (task.end - task.arrival - task.waited))
    .filter((value) => value > 0 && value < Infinity);
  const stop = tasks.length && ended.length === tasks.length ? largest(ended.map((task) => task.end)) : timeline.end;
  const makespan = tasks.length ? stop - tasks.reduce((least, task) => Math.min(least, task.arrival), Infinity) : 0;
  const capacity = timeline.cpus * timeline.end, deserved = deservedOf(timeline, tasks, weights);
  const shares = tasks.map((task, k) => (task.received === 0 && task.end >= 0 ? NaN : task.received / deserved[k]))
    .filter((share) => share >= 0 && share < Infinity);
  return {
    turnaround_ns_mean: mean(turnaround),
    response_ns_mean: mean(ran.map((task) => task.ran - task.arrival)),
    wakeup_ns_p99: ranked(tasks.flatMap((task) => task.latencies), 0.99),
    starvation_ns: tasks.length ? largest(tasks.map((task) => task.longest)) : null,
    slowdown_mean: mean(slowdown),
    throughput_per_s: makespan > 0 ? (ended.length / makespan) * 1e9 : null,
    fairness_jain: jain(shares),
    switches: switchesOf(timeline),
    migrations: timeline.kind.reduce((sum, kind) => sum + (kind === MIGRATE), 0),
    cpu_utilisation: capacity ? tasks.reduce((sum, task) => sum + task.received, 0) / capacity : null,
    tasks: tasks.length, tasks_started: ran.length, tasks_ended: ended.length,
  };
}

function measureTask(timeline, number) {
  const task = { arrival: -1, ran: -1, end: -1, waited: 0, longest: 0, received: 0, latencies: [], demand: [] };
  let before = 0;
  timeline.eachOf(number, (i, next, waits, length) => {
    const kind = timeline.kind[i], t = timeline.t[i], flags = timeline.flags[i];
    const completesArrival = kind === WAKE && before === ARRIVE;
    before = kind;
    if (kind === ARRIVE && task.arrival < 0) task.arrival = t;
    if (kind === RUN && task.ran < 0) task.ran = t;
    if (kind === STOP && flags === EXITED && task.end < 0) task.end = t;
    if (kind === STOP) task.received += timeline.arg[i];
    if (waits) {
      task.waited += length;
      task.longest = Math.max(task.longest, length);
    }
    if (kind <= WAKE && !completesArrival) task.demand.push([i, 1]);
    if (kind === STOP && (flags === BLOCKED_STOP || flags === EXITED)) task.demand.push([i, -1]);
    if (kind === WAKE && !completesArrival && timeline.kind[next] === RUN) task.latencies.push(length);
  });
  return task;
}

// CPU time that each task's weight entitled it to; see metrics/fairness.py.
function deservedOf(timeline, tasks, weights) {
  const weightOf = Array.from(timeline.pids, (pid) => weights[pid - 1] ?? 100);
  const classes = [...new Set(weightOf)].sort((a, b) => b - a);
  const classOf = weightOf.map((weight) => classes.indexOf(weight));
  const service = classes.map(() => 0), count = classes.map(() => 0);
  const result = tasks.map(() => 0), wants = tasks.map(() => 0);
  const changes = tasks.flatMap((task, k) => task.demand.map(([row, change]) => [row, change, k]));
  changes.sort((a, b) => a[0] - b[0]);
  let last = 0, rates = classes.map(() => 0);
  const until = (t) => {
    if (t > last) rates.forEach((rate, c) => { service[c] += rate * (t - last); });
    last = t;
  };
  for (const [row, change, k] of changes) {
    until(timeline.t[row]);
    result[k] -= change * service[classOf[k]];
    wants[k] += change;
    count[classOf[k]] += change;
    rates = idealRates(count, classes, timeline.cpus);
  }
  until(timeline.end);
  return result.map((sum, k) => sum + wants[k] * service[classOf[k]]);
}

// Share of one CPU for a task of each class: by weight, at most 1, the rest to the others.
function idealRates(count, classes, cpus) {
  let free = cpus, left = classes.reduce((sum, weight, c) => sum + weight * count[c], 0);
  if (left < 0.5) return classes.map(() => 0);
  let perWeight = free / left;
  classes.forEach((weight, c) => {
    if (count[c] === 0 || weight * perWeight <= 1) return;
    free -= count[c];
    left -= weight * count[c];
    perWeight = Math.max(free / Math.max(left, 1e-9), perWeight);
  });
  return classes.map((weight) => Math.min(1, weight * perWeight));
}

// Times a CPU began another task than the one it ran last without a gap.
function switchesOf(timeline) {
  const last = new Map();
  let switches = 0;
  for (let i = 0; i < timeline.kind.length; i++) {
    const kind = timeline.kind[i], cpu = timeline.cpu[i];
    if (kind === RUN) {
      const j = last.get(cpu);
      const stays = j !== undefined && timeline.kind[j] === STOP && timeline.flags[j] <= YIELDED &&
        timeline.task[j] === timeline.task[i] && timeline.t[j] === timeline.t[i];
      if (!stays) switches++;
    }
    if (kind === RUN || kind === STOP || kind === OVERHEAD) last.set(cpu, i);
  }
  return switches;
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

// A value that was observed: the nearest rank.
function ranked(values, part) {
  if (!values.length) return null;
  return values.sort((a, b) => a - b)[Math.max(0, Math.ceil(part * values.length) - 1)];
}

function jain(values) {
  const sum = values.reduce((a, b) => a + b, 0), squares = values.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? null : (sum * sum) / (values.length * squares);
}

// Every task's life in stretches, as over_time.py cuts it, in the columns of slices.js.
function slicesOf(timeline) {
  const found = [];
  for (let task = 0; task < timeline.pids.length; task++) {
    timeline.eachOf(task, (i, next, waits, length) => {
      const isRun = timeline.kind[i] === RUN;
      const sleeps = timeline.kind[i] === STOP && timeline.flags[i] === BLOCKED_STOP;
      if (!isRun && !((waits || sleeps) && length > 0)) return;
      const reason = !isRun ? 0 : timeline.kind[next] === STOP ? timeline.flags[next] : STILL_RUNNING;
      found.push([task, timeline.t[i], length, isRun ? RUNNING : sleeps ? SLEEPING : WAITING, reason,
        isRun ? timeline.cpu[i] : 0]);
    });
  }
  let until = timeline.end, kept = found;
  if (found.length > SLICES_MAX) {
    until = Float64Array.from(found, (slice) => slice[1]).sort()[SLICES_MAX];
    kept = found.filter((slice) => slice[1] < until);
  }
  const counts = new Uint32Array(timeline.pids.length);
  kept.forEach(([task]) => { counts[task]++; });
  const shown = Array.from(timeline.pids, (_, k) => k).filter((k) => counts[k]);
  return {
    pids: Uint32Array.from(shown, (k) => timeline.pids[k]),
    counts: Uint32Array.from(shown, (k) => counts[k]),
    pid: Uint32Array.from(kept, (slice) => timeline.pids[slice[0]]),
    begin: Float64Array.from(kept, (slice) => slice[1]),
    end: Float64Array.from(kept, (slice) => Math.min(slice[1] + slice[2], until)),
    state: Uint8Array.from(kept, (slice) => slice[3]),
    reason: Uint8Array.from(kept, (slice) => slice[4]),
    cpu: Uint16Array.from(kept, (slice) => slice[5]),
    end_ns: timeline.end, shown_until_ns: until, cpus: timeline.cpus,
  };
}
