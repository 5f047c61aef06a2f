// SPDX-License-Identifier: MIT
// Unpacks the slices of a run and finds its way among them. over_time.py packs.
//
// Must stay true: within a row, slices follow each other in time and do not
// overlap, so a binary search finds what is at a moment.
// Read next: gantt.js, which draws rows.
"use strict";

const RAN = 0, WAITED = 1, BLOCKED = 2;
const ENDED = ["was preempted", "yielded", "blocked", "ended", "still running", "", "", "still running"];

function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

async function inflateBytes(blob) {
  const stream = blob.stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function inflate(text) {
  return inflateBytes(new Blob([bytesOf(text)]));
}

// Index of the first entry of a rising array that is above t, from an index on.
// Strides double before the search halves them: what is near is found at once.
function firstAbove(array, t, low = 0) {
  let high = low, stride = 1;
  while (high < array.length && array[high] <= t) {
    low = high + 1;
    high += stride;
    stride *= 2;
  }
  high = Math.min(high, array.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}

// One line of the chart: a task's life, or what ran on a CPU.
class Row {
  constructor(label, begin, end, pid, state, reason, cpu) {
    Object.assign(this, { label, begin, end, pid, state, reason, cpu });
    // Running time before each slice, so that the load of any window is two look-ups.
    this.ranBefore = new Float64Array(begin.length + 1);
    for (let i = 0; i < begin.length; i++) {
      this.ranBefore[i + 1] = this.ranBefore[i] + (state[i] === RAN ? end[i] - begin[i] : 0);
    }
  }

  get length() {
    return this.begin.length;
  }

  ranUntil(t) {
    const i = firstAbove(this.end, t);
    const part = i < this.length && this.state[i] === RAN ? Math.max(0, t - this.begin[i]) : 0;
    return this.ranBefore[i] + part;
  }

  // Running time between two moments, where slice `from` is the first to end after
  // `begin`, or the one after it, and `to` the first to end after `end`. No search.
  ranWithin(from, to, begin, end) {
    let ran = this.ranBefore[to] - this.ranBefore[from];
    const isRan = (i) => i >= 0 && i < this.length && this.state[i] === RAN;
    if (isRan(from)) ran -= Math.max(0, begin - this.begin[from]);
    if (isRan(from - 1)) ran += Math.max(0, this.end[from - 1] - Math.max(begin, this.begin[from - 1]));
    if (isRan(to - 1)) ran -= Math.max(0, this.end[to - 1] - end);
    if (isRan(to)) ran += Math.max(0, end - this.begin[to]);
    return ran;
  }

  // Slice at a moment, or the nearest one within some time of it; -1 if there is none.
  at(t, within) {
    const i = firstAbove(this.end, t);
    if (i < this.length && this.begin[i] <= t) return i;
    const after = i < this.length ? this.begin[i] - t : Infinity;
    const before = i > 0 ? t - this.end[i - 1] : Infinity;
    if (Math.min(before, after) > within) return -1;
    return before <= after ? i - 1 : i;
  }
}

// All slices of one run, by task and by CPU.
class Run {
  static async unpack(meta, text) {
    const reader = new NumberReader(await inflate(text));
    const pids = reader.many(new Uint32Array(reader.next()));
    const counts = reader.many(new Uint32Array(pids.length));
    const n = counts.reduce((sum, count) => sum + count, 0);
    const begin = reader.many(new Float64Array(n)); // still the gaps
    const end = reader.many(new Float64Array(n)); // still the lengths
    const state = new Uint8Array(n), reason = new Uint8Array(n), cpu = new Uint16Array(n);
    const pid = new Uint32Array(n);
    for (let task = 0, i = 0; task < pids.length; task++) {
      for (let k = 0, t = 0; k < counts[task]; k++, i++) {
        begin[i] += t;
        end[i] += begin[i];
        t = end[i];
        pid[i] = pids[task];
      }
    }
    for (let i = 0; i < n; i++) {
      const code = reader.next();
      state[i] = code & 3;
      reason[i] = (code >> 2) & 7;
      cpu[i] = code >> 5;
    }
    return new Run(meta, { pids, counts, pid, begin, end, state, reason, cpu });
  }

  constructor(meta, columns) {
    this.meta = meta;
    this.columns = columns;
    this.rows = { task: this.taskRows(), cpu: this.cpuRows() };
  }

  nameOf(pid) {
    return `${this.meta.names[pid] ?? "task"}[${pid}]`;
  }

  taskRows() {
    const c = this.columns;
    let from = 0;
    return Array.from(c.pids, (pid, task) => {
      const to = from + c.counts[task];
      const part = (name) => c[name].subarray(from, to);
      const row = new Row(this.nameOf(pid), part("begin"), part("end"), part("pid"), part("state"),
        part("reason"), part("cpu"));
      from = to;
      return row;
    });
  }

  cpuRows() {
    const c = this.columns;
    const places = Array.from({ length: this.meta.cpus }, () => []);
    for (let i = 0; i < c.begin.length; i++) if (c.state[i] === RAN) places[c.cpu[i]]?.push(i);
    return places.map((order, cpu) => {
      order.sort((a, b) => c.begin[a] - c.begin[b] || c.end[a] - c.end[b]);
      const part = (name) => c[name].constructor.from(order, (i) => c[name][i]);
      return new Row(`CPU ${cpu}`, part("begin"), part("end"), part("pid"), part("state"),
        part("reason"), part("cpu"));
    });
  }
}

// A time with three digits and a unit.
function showTime(ns) {
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
    if (Math.abs(ns) >= scale) return `${+(ns / scale).toPrecision(4)} ${unit}`;
  }
  return `${+ns.toPrecision(3)} ns`;
}

// A moment, as exact as a window needs.
function showMoment(ns, span) {
  const [scale, unit] = ns >= 1e9 || span >= 1e9 ? [1e9, "s"] : span >= 1e3 ? [1e6, "ms"] : [1e3, "us"];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / span)) + 3));
  return `${(ns / scale).toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")} ${unit}`;
}

// Round moments for an axis, about one every so many pixels.
function ticks(from, to, number) {
  const rough = (to - from) / Math.max(1, number);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const found = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) found.push(t);
  return found;
}
