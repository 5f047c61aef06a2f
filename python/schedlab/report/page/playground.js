// SPDX-License-Identifier: MIT
// The playground: what was chosen becomes two runs, and what they say is shown.
//
// The state is one object, which the address of the page holds, too. A slider starts a run
// at once; while that is going on the latest of further ones waits. Each side has a worker,
// so that a run can be stopped by ending it.
//
// Must stay true: names and errors reach the page as text, never as markup.
"use strict";

const SIDES = ["a", "b"], TIME_UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
const SLIDER_LOWEST = { ns: 10000 };

// ---- what is in the page

const about = JSON.parse(document.getElementById("about").textContent);
const byName = (list, name) => list.find((entry) => entry.name === name);
const workerUrl = URL.createObjectURL(new Blob([JSON.parse(document.getElementById("worker").textContent)],
  { type: "text/javascript" }));
const modules = new Map();
let archive;

async function fileOf(name) {
  archive ??= inflate(document.getElementById("files").textContent);
  const [at, bytes] = about.files[name];
  return (await archive).subarray(at, at + bytes);
}

// SHA-256 as text. In the frame of a report there is none, and the report is asked; null: there is none at all.
async function digestOf(records) {
  const port = new MessageChannel();
  const digest = crypto.subtle ? crypto.subtle.digest("SHA-256", records) : window.parent === window ? null
    : new Promise((resolve) => {
      port.port1.onmessage = (event) => resolve(event.data);
      window.parent.postMessage(records, "*", [port.port2]);
    });
  const bytes = new Uint8Array(await digest ?? 0);
  return bytes.length ? Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") : null;
}

async function programOf(key) {
  const [program, tasks] = await Promise.all([fileOf(`program/${key}`), fileOf(`tasks/${key}`)]);
  return { program, tasks: JSON.parse(new TextDecoder().decode(tasks)) };
}

function moduleOf(name) {
  if (!modules.has(name)) modules.set(name, fileOf(name).then((bytes) => WebAssembly.compile(bytes)));
  return modules.get(name);
}

// ---- values of knobs

// A number with its unit; null where it is none, or out of range.
function parseValue(knob, text) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s)?\s*$/.exec(text);
  if (!match || (match[2] && !TIME_UNITS[knob.unit])) return null;
  const value = Math.round(match[1] * (match[2] ? TIME_UNITS[match[2]] / TIME_UNITS[knob.unit] : 1));
  return value >= knob.minimum && value <= knob.maximum ? value : null;
}

// As the command line takes it, exactly.
function showValue(knob, value) {
  const name = Object.keys(knob.names).find((each) => knob.names[each] === value);
  if (name) return name;
  if (knob.unit === "bool") return value ? "yes" : "no";
  if (!TIME_UNITS[knob.unit]) return `${value}`;
  const ns = value * TIME_UNITS[knob.unit];
  const unit = Object.keys(TIME_UNITS).reverse().find((each) => ns >= TIME_UNITS[each] && (ns * 1000) % TIME_UNITS[each] === 0) ?? "ns";
  return ns === 0 ? "0" : `${ns / TIME_UNITS[unit]}${unit}`;
}

// Places of a slider: all values of a short range, else round ones on a logarithmic scale.
function stops(knob) {
  if (knob.maximum - knob.minimum <= 200) {
    return Array.from({ length: knob.maximum - knob.minimum + 1 }, (_, i) => knob.minimum + i);
  }
  const found = new Set([knob.minimum <= 0 ? knob.minimum : null, knob.default, knob.maximum]);
  const lowest = Math.max(1, knob.minimum, SLIDER_LOWEST[knob.unit] ?? 1);
  for (let power = 1; power <= knob.maximum; power *= 10) {
    for (const digits of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const value = power * digits;
      if (Number.isInteger(value) && value >= lowest && value <= knob.maximum) found.add(value);
    }
  }
  found.delete(null);
  return [...found].sort((a, b) => a - b);
}

function nearest(values, value) {
  const above = values.findIndex((each) => each >= value);
  return above < 0 ? values.length - 1 : above;
}

// ---- one policy: its form, its worker, its last result

class Side {
  constructor(key, page) {
    Object.assign(this, { key, page, policy: "", source: null, knobs: {}, defaults: {}, job: null, waiting: null, worker: null, result: null });
    this.element = document.querySelector(`fieldset[data-side="${key}"]`);
    this.chooser = this.element.querySelector("select");
    const names = about.policies.map((policy) => policy.name);
    this.chooser.append(...(key === "b" ? [new Option("none", "")] : []), ...names.map((name) => new Option(name)));
    this.chooser.addEventListener("change", () => {
      this.set(this.chooser.value, {});
      page.changed();
    });
    this.element.querySelector(".edit").addEventListener("click", () => page.editor.open(this));
  }

  // What is declared of the policy; a changed one has its own defaults, and maybe fewer knobs.
  get entry() {
    const entry = byName(about.policies, this.policy);
    if (this.source === null || !entry) return entry;
    const knobs = entry.knobs.filter((knob) => new RegExp(`@knob\\s+${knob.name}\\s`).test(this.source));
    return { ...entry, knobs: knobs.map((knob) => ({ ...knob, default: this.defaults[knob.name] ?? knob.default })) };
  }

  // Nothing of a policy is changed as long as its text is the one that came with the page.
  edit(source) {
    this.source = source;
    this.defaults = {};
    this.fill(this.knobs);
  }

  set(policy, knobs) {
    this.policy = this.chooser.value = policy;
    this.source = null;
    this.fill(knobs);
  }

  // The form, for these values.
  fill(knobs) {
    this.knobs = {};
    this.element.querySelector(".edit").hidden = !this.policy;
    for (const knob of this.entry?.knobs ?? []) {
      const given = Number(knobs[knob.name] ?? NaN);
      if (given >= knob.minimum && given <= knob.maximum && given !== knob.default) this.knobs[knob.name] = given;
    }
    this.element.querySelector(".summary").textContent = (this.source === null ? "" : "changed: ") + (this.entry?.summary ?? "");
    this.element.querySelector(".knobs").replaceChildren(...(this.entry?.knobs ?? []).map((knob) => this.row(knob)));
  }

  turn(knob, value) {
    if (value === knob.default) delete this.knobs[knob.name];
    else this.knobs[knob.name] = value;
    this.page.changed();
  }

  row(knob) {
    const row = document.createElement("div"), label = document.createElement("label");
    const id = `${this.key}-${knob.name}`, value = this.knobs[knob.name] ?? knob.default;
    row.className = "knob";
    label.textContent = knob.name.replace(/_(ns|us|ms|s)$/, "").replaceAll("_", " ");
    label.htmlFor = id;
    row.title = knob.text;
    const control = document.createElement(Object.keys(knob.names).length ? "select" : "input");
    control.id = id;
    row.append(label, control);
    if (control.localName === "select") {
      control.append(...Object.entries(knob.names).map(([name, number]) => new Option(name, number)));
      control.value = value;
      control.className = "wide";
      control.addEventListener("change", () => this.turn(knob, Number(control.value)));
    } else if (knob.unit === "bool") {
      control.type = "checkbox";
      control.checked = value !== 0;
      control.addEventListener("change", () => this.turn(knob, Number(control.checked)));
    } else row.append(this.slider(knob, control, value));
    return row;
  }

  // A slider for round values, and a field for any; the field is returned.
  slider(knob, slider, value) {
    const values = stops(knob), field = document.createElement("input");
    field.type = "text";
    field.value = showValue(knob, value);
    field.setAttribute("aria-label", `${knob.name}, exact`);
    Object.assign(slider, { type: "range", min: 0, max: values.length - 1, step: 1 });
    slider.value = nearest(values, value);
    const say = () => slider.setAttribute("aria-valuetext", field.value);
    say();
    slider.addEventListener("input", () => {
      field.value = showValue(knob, values[slider.value]);
      field.removeAttribute("aria-invalid");
      say();
      this.turn(knob, values[slider.value]);
    });
    field.addEventListener("change", () => {
      const given = parseValue(knob, field.value);
      field.setAttribute("aria-invalid", given === null);
      if (given === null) return;
      slider.value = nearest(values, given);
      say();
      this.turn(knob, given);
    });
    return field;
  }

  // ---- runs

  async start(choice) {
    if (this.job) {
      this.waiting = choice;
      return;
    }
    const job = this.job = choice;
    if (!this.policy) return this.finish(job, null);
    try {
      const message = await this.messageOf(job);
      if (this.job !== job) return;
      job.tasks = message.tasks;
      this.worker ??= this.newWorker();
      this.worker.postMessage(message);
    } catch (error) {
      this.finish(job, { answer: { status: "failed", error: error.message }, log: "" });
    }
  }

  // What the worker is sent.
  async messageOf(job) {
    const { workload, seed, cpus, knobs } = job;
    const [simulator, policy, { program, tasks }] = await Promise.all([moduleOf("simulator"), this.module(job),
      job.own ?? programOf(`${workload.name}/${seed}`)]);
    return { simulator, policy: policy.module, sizes: policy.sizes, program, tasks, seed, cpus, knobs,
      tick_ns: workload.tick_ns, options: workload.options, errors: about.errors,
      wanted: job.source === null ? [] : this.entry.knobs.map((knob) => knob.name) };
  }

  async module(job) {
    if (job.source === null) return { module: await moduleOf(`policy/${job.policy}`) };
    return this.page.compiler.build(`${job.policy}.bpf.c`, job.source);
  }

  newWorker() {
    const worker = new Worker(workerUrl);
    worker.onmessage = (event) => this.finish(this.job, event.data);
    worker.onerror = (event) => this.finish(this.job, { answer: { status: "failed", error: event.message }, log: "" });
    return worker;
  }

  finish(job, result) {
    if (!job || this.job !== job) return;
    this.job = null;
    this.result = result && Object.assign(result, { policy: job.policy, job });
    if (result?.records) {
      this.result.hash = digestOf(result.records);
    }
    const { waiting } = this;
    this.waiting = null;
    if (result && !waiting) this.learn(result);
    this.page.show(this);
    if (waiting) this.start(waiting);
  }

  // After a run of a changed policy: its defaults, and what the compiler said.
  learn({ values = {}, answer }) {
    const isNew = Object.keys(values).some((name) => values[name] !== this.defaults[name]);
    if (isNew) {
      this.defaults = values;
      this.fill(this.knobs);
      this.page.write();
    }
    this.page.editor.show(this, answer.error ?? "");
  }

  stop() {
    this.worker?.terminate();
    this.worker = this.job = this.waiting = null;
  }
}

// ---- the page

class Playground {
  constructor(viewer) {
    this.viewer = viewer;
    this.form = document.getElementById("setup").elements;
    this.own = new OwnWorkload(this);
    this.workloads = [...about.workloads, this.own];
    this.form.workload.append(...this.workloads.map((each) => new Option(each.name)));
    this.form.seed.append(...about.seeds.map((seed) => new Option(seed)));
    this.compiler = new Compiler(this);
    this.editor = new Editor(this);
    this.sides = SIDES.map((key) => new Side(key, this));
    this.reported = about.reported ? new Reported(this) : null;
    this.form.workload.addEventListener("change", () => {
      this.form.cpus.value = this.workload.cpus;
      this.changed();
    });
    for (const name of ["cpus", "seed"]) this.form[name].addEventListener("change", () => this.changed());
    document.getElementById("setup").addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("run").addEventListener("click", () => this.run());
    document.getElementById("stop").addEventListener("click", () => this.stop());
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== this.address) this.read();
    });
  }

  get workload() {
    return byName(this.workloads, this.form.workload.value);
  }

  async begin() {
    await this.viewer.begin();
    // The policies of the lanes are those of the forms.
    for (const chooser of this.viewer.choosers) chooser.parentElement.style.display = "none";
    this.viewer.say("");
    this.read();
  }

  // ---- the address

  async read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const known = (list, name) => (byName(list, name) ? name : null);
    this.own.set(given.get(OWN));
    this.form.workload.value = known(this.workloads, given.get("workload")) ??
      known(about.workloads, "mixed") ?? about.workloads[0].name;
    this.form.cpus.value = given.get("cpus") ?? this.workload.cpus;
    this.form.seed.value = about.seeds.includes(Number(given.get("seed"))) ? given.get("seed") : about.seeds[0];
    const shown = [about.shown[0] ?? about.policies[0].name, about.shown[1] ?? ""];
    for (const [i, side] of this.sides.entries()) {
      const name = given.get(side.key), source = given.get(`${side.key}.source`);
      const policy = known(about.policies, name) ?? (name === "" && i > 0 ? "" : shown[i]);
      const knobs = [...given].filter(([key]) => key.startsWith(`${side.key}.`)).map(([key, value]) => [key.slice(2), value]);
      side.set(policy, Object.fromEntries(knobs));
      if (source && policy) {
        side.source = await fromAddress(source);
        side.fill(Object.fromEntries(knobs));
      }
    }
    this.changed();
  }

  async write() {
    const words = new URLSearchParams({ workload: this.workload.name, cpus: this.cpus, seed: this.form.seed.value });
    if (this.workload === this.own) words.set(OWN, this.own.address);
    for (const side of this.sides) {
      words.set(side.key, side.policy);
      for (const [knob, value] of Object.entries(side.knobs)) words.set(`${side.key}.${knob}`, value);
      if (side.source !== null) words.set(`${side.key}.source`, await toAddress(side.source));
    }
    this.address = words.toString();
    history.replaceState(null, "", `#${this.address}`);
  }

  get cpus() {
    const { cpus_min: least } = this.workload;
    return Math.min(64, Math.max(least, Math.round(Number(this.form.cpus.value)) || least));
  }

  // ---- runs

  changed() {
    this.form.cpus.value = this.cpus;
    this.own.element.hidden = this.workload !== this.own;
    document.getElementById("question").textContent = `${this.workload.title}. ${this.workload.question}`;
    this.write();
    this.run();
  }

  run() {
    this.began = performance.now();
    this.reported?.stop("");
    this.settled = new Promise((resolve) => { this.settle = resolve; });
    document.getElementById("stop").disabled = false;
    this.say("Running.");
    const seed = Number(this.form.seed.value), { own } = this;
    const made = this.workload === own ? { program: own.program(seed), tasks: own.tasks, toml: own.toml } : null;
    const { name, given, tick_ns, options, machine } = this.workload;
    for (const side of this.sides) {
      const choice = { workload: { name, given, tick_ns, options, machine }, own: made, cpus: this.cpus, seed,
        policy: side.policy, source: side.source, knobs: { ...side.knobs } };
      const last = side.result?.job, isSame = last && JSON.stringify(sameOf(last)) === JSON.stringify(sameOf(choice));
      if (isSame && !side.job) side.finish(side.job = last, side.result);
      else side.start(choice);
    }
  }

  stop() {
    for (const side of this.sides) side.stop();
    this.reported?.stop();
    document.getElementById("stop").disabled = true;
    this.say("Stopped.");
    this.settle();
  }

  say(text) {
    document.getElementById("state").textContent = text;
  }

  // ---- results

  async show(side) {
    const isDone = this.sides.every((each) => !each.job && !each.waiting);
    const index = SIDES.indexOf(side.key), { result } = side;
    this.viewer.runs.set(`${index}`, result?.slices ? Promise.resolve(chartOf(result)) : Promise.resolve(null));
    this.viewer.choosers[index].value = result?.slices ? `${index}` : "";
    await this.viewer.choose();
    if (!isDone) return;
    this.showNumbers();
    this.showProblems();
    document.getElementById("stop").disabled = true;
    await this.showCommands();
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    if (this.sides.some((each) => each.job)) return;
    this.milliseconds = performance.now() - this.began;
    this.say(`Done in ${this.milliseconds.toFixed(0)} ms.`);
    this.reported?.follow();
    this.settle();
  }

  get results() {
    return this.sides.map((side) => side.result).filter(Boolean);
  }

  showNumbers() {
    const table = document.getElementById("numbers"), results = this.results;
    const head = table.ownerDocument.createElement("tr");
    head.append(cell("th", "metric"), ...this.sides.filter((side) => side.result)
      .map((side) => cell("th", `${side.key.toUpperCase()}: ${side.result.policy}${side.result.job.source === null ? "" : ", changed"}`)));
    const rows = about.metrics.map((metric) => {
      const row = document.createElement("tr"), values = results.map((result) => result.metrics?.[metric.name] ?? null);
      const name = cell("th", metric.label);
      name.scope = "row";
      name.title = metric.formula;
      row.append(name, ...values.map((value, i) => {
        const made = cell("td", "");
        const mark = document.createElement("span");
        mark.className = "mean";
        mark.textContent = showNumber(metric, value);
        made.append(mark);
        made.dataset.metric = metric.name;
        if (isBest(metric, values, i)) made.className = "best";
        return made;
      }));
      return row;
    });
    const caption = document.createElement("caption");
    caption.textContent = "One run each, of the same work; a star marks the better one. One seed decides nothing.";
    const top = document.createElement("thead"), body = document.createElement("tbody");
    top.append(head);
    body.append(...rows);
    table.replaceChildren(caption, top, body);
  }

  showProblems() {
    const boxes = this.results.filter((result) => result.answer.status !== "ok")
      .map((result) => box("bad", `${nameOf(result)} failed`, result.answer.error));
    for (const result of this.results.filter((each) => each.log)) {
      boxes.push(box("warning", `${nameOf(result)} printed`, result.log.slice(-2000)));
    }
    const [a, b] = this.results;
    for (const [count, words] of about.survival) {
      if (!a?.metrics || !b?.metrics || a.metrics[count] === b.metrics[count]) continue;
      const of = (each) => `${each.metrics[count]} of ${each.metrics.tasks}`;
      boxes.push(box("warning", `${of(a)} tasks ${words} under ${nameOf(a)}, ${of(b)} under ${nameOf(b)}`, about.survival_hint));
    }
    document.getElementById("problems").replaceChildren(...boxes);
  }

  async showCommands() {
    const entries = await Promise.all(this.results.map(async (result) => {
      const { job } = result, { knobs, given } = byName(about.policies, job.policy);
      const settings = Object.entries(job.knobs).map(([name, value]) =>
        ` --set ${job.policy}.${name}=${showValue(byName(knobs, name), value)}`);
      const isOwn = job.source !== null;
      const command = `schedlab run ${job.workload.given} -p ${isOwn ? `./${job.policy}.bpf.c` : given}${settings.join("")} --cpus ${job.cpus} --seed ${job.seed}${job.workload.machine ?? ""}`;
      const code = document.createElement("code"), hash = document.createElement("span");
      code.textContent = command;
      hash.className = "small soft hash";
      const digest = await result.hash ?? (result.records ? "not computed: the page is neither a file nor from https or localhost" : "none");
      hash.textContent = `record hash ${digest}${this.reported?.compare(job, digest) ?? ""}`;
      const text = document.createElement("dd");
      const source = isOwn ? new TextEncoder().encode(job.source) : await fileOf(`source/${job.policy}`);
      const isFile = about.files[`toml/${job.workload.name}`];
      const toml = job.own?.toml ?? (isFile ? await fileOf(`toml/${job.workload.name}`) : null);
      const links = [download(`${job.policy}.bpf.c`, source), ...(toml ? [download(tomlName(job), toml)] : []),
        ...(result.slices ? [download(`${job.policy}-trace.json`, () => traceOf(result))] : [])];
      text.append(code, document.createElement("br"), hash, document.createElement("br"), ...links);
      return [cell("dt", nameOf(result)), text];
    }));
    document.getElementById("commands").replaceChildren(...entries.flat());
  }
}

function tomlName(job) {
  return `${job.workload.name.split("/").pop()}.toml`;
}

// A link that saves a file; what is given as a function is made when it is asked for.
function download(name, bytes) {
  const link = document.createElement("a");
  const make = (content) => { link.href = URL.createObjectURL(new Blob([content], { type: "text/plain" })); };
  link.download = name;
  if (typeof bytes === "function") {
    link.href = "#";
    link.addEventListener("click", () => make(bytes()), { once: true });
  } else make(bytes);
  link.textContent = `download ${name}`;
  link.className = "small download";
  return link;
}

function sameOf(job) {
  return [job.source, job.workload.name, job.own?.toml, job.cpus, job.seed, job.policy, job.knobs];
}

function nameOf(result) {
  const knobs = byName(about.policies, result.policy)?.knobs ?? [];
  const shown = Object.entries(result.job.knobs).map(([name, value]) => `${name}=${showValue(byName(knobs, name), value)}`);
  const name = result.job.source === null ? result.policy : `${result.policy}, changed`;
  return shown.length ? `${name}:${shown.join(",")}` : name;
}

function chartOf(result) {
  const { end_ns, shown_until_ns, cpus, ...columns } = result.slices;
  const names = {};
  for (const pid of columns.pids) names[pid] = result.job.tasks.names[pid - 1] ?? "task";
  return new Run({ policy: nameOf(result), seed: result.job.seed, end_ns, shown_until_ns, cpus,
    n_slices: columns.begin.length, names }, columns);
}

function isBest(metric, values, i) {
  if (metric.direction === "none" || values.length < 2 || values.some((value) => value === null)) return false;
  const best = metric.direction === "lower" ? Math.min(...values) : Math.max(...values);
  return values[i] === best && values.some((value) => value !== best);
}

function showNumber(metric, value) {
  if (value === null) return "-";
  if (metric.unit === "ns") return showTime(value);
  if (metric.is_share) return `${(100 * value).toFixed(1)} %`;
  return Number.isInteger(value) && !metric.name.includes("fairness") ? value.toLocaleString("en") : `${+value.toPrecision(3)}`;
}

function cell(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function box(kind, title, text) {
  const made = document.createElement("div"), words = document.createElement("pre");
  made.className = `box ${kind}`;
  words.textContent = text;
  made.append(cell("strong", title), words);
  return made;
}

window.schedlab.playground = new Playground(window.schedlab.viewers[0]);
window.schedlab.playground.begin();
