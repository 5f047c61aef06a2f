// SPDX-License-Identifier: MIT
// A workload of the reader's own: a form, the TOML that it stands for, and the program.
//
// What is drawn at random is left to the command line, so that there is nothing to draw here:
// the program is, byte for byte, what program/compiler.py makes of the TOML.
//
// Read next: playground.js, the caller; include/schedlab/program.h.
"use strict";

const OWN = "own", TASKS_MAX = 1000, ROUNDS_MAX = 1e6, TIME_MAX_NS = 3.6e12;
const VERB = { exit: 0, run: 1, sleep: 3, loop: 16, end: 17 };
const time = (minimum) => ({ unit: "ns", names: {}, minimum, maximum: TIME_MAX_NS });
const number = (minimum, maximum) => ({ unit: "", names: {}, minimum, maximum });
// What a class of tasks is, in the order of the form and of the address.
const CLASS = {
  name: null, count: number(1, TASKS_MAX), arrival: time(0), run: time(1), sleep: time(0),
  rounds: number(1, ROUNDS_MAX), weight: number(1, 10000),
};
const HEADS = { name: "tasks", count: "how many", arrival: "arrive at", run: "compute", sleep: "then sleep", rounds: "so often", weight: "weight" };
const FIRST = [["hog", 2, 0, 3e8, 0, 1, 100], ["editor", 1, 5e6, 2e6, 5e7, 10, 100]];

class OwnWorkload {
  constructor(page) {
    Object.assign(this, { page, name: OWN, given: `./${OWN}.toml`, title: "Own", question: "What becomes of this work?", cpus: 1, cpus_min: 1 });
    this.options = about.own.options;
    this.element = document.getElementById("own");
    this.text = this.element.querySelector("pre");
    this.tick = this.element.querySelector("input");
    this.tick.addEventListener("change", () => this.take(this.tick, time(1e4), (value) => { this.tick_ns = value; }));
    this.element.querySelector(".add").addEventListener("click", () => {
      const names = this.classes.map(([name]) => name);
      const name = Array.from({ length: names.length + 1 }, (_, i) => `task-${i + 1}`).find((each) => !names.includes(each));
      this.classes.push([name, ...FIRST[0].slice(1)]);
      this.changed();
    });
    this.set(null);
  }

  // From the address; anything that is none of a form's is left out.
  set(text) {
    let given = null;
    try {
      given = JSON.parse(text);
    } catch {
      // As if none had been given.
    }
    this.tick_ns = given?.tick >= 1e4 && given.tick <= TIME_MAX_NS ? Math.round(given.tick) : 1e7;
    const isClass = (row) => Array.isArray(row) && Object.values(CLASS).every((range, i) => (range === null
      ? isName(row[i]) : Number.isInteger(row[i]) && row[i] >= range.minimum && row[i] <= range.maximum));
    const rows = (given?.tasks ?? []).filter(isClass);
    this.classes = rows.length && new Set(rows.map(([name]) => name)).size === rows.length ? rows : FIRST.map((row) => [...row]);
    this.show();
  }

  get address() {
    return JSON.stringify({ tick: this.tick_ns, tasks: this.classes });
  }

  // ---- the form

  changed() {
    this.show();
    this.page.changed();
  }

  // Take what was typed, or mark it as wrong.
  take(field, range, keep, of = null) {
    const value = range === null ? field.value.trim() : parseValue(range, field.value);
    const others = this.classes.filter((row) => row !== of).map(([name]) => name);
    const isNew = range !== null || (isName(value) && !others.includes(value));
    field.setAttribute("aria-invalid", value === null || !isNew);
    if (value === null || !isNew) return;
    keep(value);
    field.value = range?.unit ? showValue(range, value) : value;
    this.text.textContent = this.toml;
    this.page.changed();
  }

  show() {
    this.tick.value = showValue(time(1e4), this.tick_ns);
    const rows = this.classes.map((row, at) => {
      const made = document.createElement("tr");
      made.append(...Object.entries(CLASS).map(([key, range], i) => {
        const place = document.createElement("td"), field = document.createElement("input");
        field.value = range?.unit ? showValue(range, row[i]) : row[i];
        field.setAttribute("aria-label", `${HEADS[key]}, row ${at + 1}`);
        field.addEventListener("change", () => this.take(field, range, (value) => { row[i] = value; }, row));
        place.append(field);
        return place;
      }));
      const remove = document.createElement("button"), place = document.createElement("td");
      Object.assign(remove, { type: "button", textContent: "remove", disabled: this.classes.length === 1 });
      remove.setAttribute("aria-label", `remove row ${at + 1}`);
      remove.addEventListener("click", () => {
        this.classes.splice(at, 1);
        this.changed();
      });
      place.append(remove);
      made.append(place);
      return made;
    });
    const head = document.createElement("tr");
    head.append(...Object.values(HEADS).map((text) => cell("th", text)));
    this.element.querySelector("thead").replaceChildren(head);
    this.element.querySelector("tbody").replaceChildren(...rows);
    this.text.textContent = this.toml;
  }

  // ---- what it stands for

  get toml() {
    const shown = (ns) => `"${showValue(time(0), ns)}"`;
    const tasks = this.classes.map(([name, count, arrival, run, sleep, rounds, weight]) => {
      const body = `{run = ${shown(run)}}${sleep ? `, {sleep = ${shown(sleep)}}` : ""}`;
      return ["", "[[task]]", `name = "${name}"`, ...(count > 1 ? [`count = ${count}`] : []),
        ...(arrival ? [`arrival = ${shown(arrival)}`] : []), ...(weight === 100 ? [] : [`weight = ${weight}`]),
        `phases = [${rounds > 1 ? `{loop = ${rounds}, do = [${body}]}` : body}]`];
    });
    return [["[workload]", `title = "${this.title}"`, `question = "${this.question}"`, `tick = ${shown(this.tick_ns)}`,
      'jitter = "0ms"'], ...tasks].flat().join("\n") + "\n";
  }

  // Names and weights of the tasks, by pid - 1.
  get tasks() {
    const each = this.classes.flatMap(([name, count, , , , , weight]) => Array(count).fill([name, weight]));
    return { names: each.map(([name]) => name), weights: each.map(([, weight]) => weight) };
  }

  program(seed) {
    const tasks = [], ops = [], names = [OWN, ...this.classes.map(([name]) => name)];
    const strings = new TextEncoder().encode(names.map((name) => `${name}\0`).join(""));
    for (const [i, [name, count, arrival_ns, run, sleep, rounds, weight]] of this.classes.entries()) {
      const first = ops.length;
      const body = [{ verb: VERB.run, b: run }, ...(sleep ? [{ verb: VERB.sleep, b: sleep }] : [])];
      if (rounds > 1) {
        ops.push({ verb: VERB.loop, a: 1 + body.length, b: rounds }, ...body, { verb: VERB.end, a: 0 });
      } else ops.push(...body);
      ops.push({ verb: VERB.exit });
      const row = { arrival_ns, name: offsetOf(names, i + 1), class_idx: i, parent: about.own.none, op_first: first,
        nr_ops: ops.length - first, affinity: about.own.none, weight, attr_given: weight === 100 ? 0 : about.own.weight_given };
      tasks.push(...Array(count).fill(row));
    }
    const { header, task, op } = about.own.layout;
    const sizes = [tasks.length * task.bytes, ops.length * op.bytes];
    const at = [header.bytes, header.bytes + sizes[0], header.bytes + sizes[0] + sizes[1]];
    const made = new Uint8Array(at[2] + strings.length);
    const first = { version: 1, header_bytes: header.bytes, total_bytes: made.length, seed, nr_tasks: tasks.length, nr_ops: ops.length,
      strings_bytes: strings.length, tasks_off: at[0], ops_off: at[1], objects_off: at[2], values_off: at[2], strings_off: at[2] };
    writeRow(made, header, 0, first);
    made.set(about.own.magic, 0);
    for (const [i, row] of tasks.entries()) writeRow(made, task, at[0] + i * task.bytes, row);
    for (const [i, row] of ops.entries()) writeRow(made, op, at[1] + i * op.bytes, row);
    made.set(strings, at[2]);
    return made;
  }
}

function isName(text) {
  return typeof text === "string" && /^[a-z][a-z0-9-]{0,14}$/.test(text);
}

function offsetOf(names, i) {
  return names.slice(0, i).reduce((sum, name) => sum + name.length + 1, 0);
}

// A row of a table, little-endian; what is not given is 0.
function writeRow(bytes, table, at, row) {
  const view = new DataView(bytes.buffer);
  for (const [name, offset, size] of table.fields) {
    const value = row[name] ?? 0, to = at + offset;
    if (size === 8) view.setBigUint64(to, BigInt(value), true);
    else if (size === 4) view.setUint32(to, value, true);
    else if (size === 2) view.setUint16(to, value, true);
    else view.setUint8(to, value);
  }
}
