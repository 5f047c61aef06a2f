// SPDX-License-Identifier: MIT
// All seeds of a report's runs, done again with the knobs as they are now, beside what the report has.
//
// It starts when the two runs that are drawn are done, in a worker of its own, which a further change ends. Runs
// that would take long wait for a button. With knobs as they were run, each record hash is held against the folder's.
"use strict";

const ALL_SEEDS_MS_MAX = 20000;

class Reported {
  constructor(page) {
    this.page = page;
    this.element = document.getElementById("reported");
    this.state = this.element.querySelector(".state");
    this.button = this.element.querySelector("button");
    this.button.addEventListener("click", () => this.run());
  }

  // The reported runs nearest to a choice: of its policy and workload, then with its CPUs and its knobs.
  of(job) {
    const known = about.reported.filter((each) => each.policy === job.policy && each.workload === job.workload.name);
    const rank = (each) => 2 * (each.cpus === job.cpus) + this.isAsRun(each, job);
    return job.source === null ? known.sort((a, b) => rank(b) - rank(a))[0] : known[0];
  }

  isAsRun(entry, { cpus, knobs, policy, source }) {
    const all = byName(about.policies, policy).knobs;
    return source === null && entry.cpus === cpus && all.every((knob) => (knobs[knob.name] ?? knob.default) === entry.knobs[knob.name]);
  }

  // Whether a record hash is that of the folder; an empty text where the folder has no such run.
  compare(job, digest) {
    const entry = this.of(job), there = entry?.runs[job.seed];
    if (!there || !this.isAsRun(entry, job)) return "";
    return digest === there.hash ? ", the same as in the folder of these runs" : ", NOT that of the folder of these runs";
  }

  stop(text = "Stopped.") {
    this.worker?.terminate();
    if (this.worker) this.state.textContent = text;
    this.worker = null;
    this.finish?.();
  }

  // The runs that are drawn are done.
  follow() {
    this.stop();
    this.tables = [];
    this.element.querySelector(".tables").replaceChildren();
    this.work = this.page.sides.filter((side) => side.result?.metrics).flatMap((side) => {
      const { job } = side.result, entry = this.of(job);
      return entry ? Object.keys(entry.runs).map((seed) => ({ side, entry, choice: { ...job, seed: Number(seed) } })) : [];
    });
    const estimate = this.work.reduce((sum, { side }) => sum + side.result.milliseconds, 0);
    this.button.hidden = estimate <= ALL_SEEDS_MS_MAX || !this.work.length;
    this.state.textContent = this.work.length ? `${this.work.length} runs, about ${Math.ceil(estimate / 1000)} s.`
      : "The folder has no runs of these.";
    if (this.work.length && this.button.hidden) this.run();
  }

  async run() {
    this.stop();
    this.button.hidden = true;
    this.done = new Promise((resolve) => { this.finish = resolve; });
    const worker = this.worker = new Worker(workerUrl), results = new Map(this.work.map(({ side }) => [side, []]));
    document.getElementById("stop").disabled = false;
    for (const [i, { side, entry, choice }] of this.work.entries()) {
      this.state.textContent = `Run ${i + 1} of ${this.work.length}.`;
      const message = await side.messageOf(choice);
      const result = await new Promise((resolve) => {
        worker.onmessage = (event) => resolve(event.data);
        worker.onerror = (event) => resolve({ answer: { error: event.message } });
        worker.postMessage(message);
      });
      if (this.worker !== worker) return;
      const hash = result.records ? await digestOf(result.records) : null;
      if (this.worker !== worker) return;
      results.get(side).push({ choice, entry, metrics: result.metrics, error: result.answer.error, hash });
    }
    this.worker = null;
    worker.terminate();
    document.getElementById("stop").disabled = true;
    this.state.textContent = "";
    this.tables = [...results.entries()];
    this.element.querySelector(".tables").replaceChildren(...this.tables.flatMap(([side, runs]) => this.shown(side, runs)));
    this.finish();
  }

  // One side: what its hashes say, and what changed by how much.
  shown(side, runs) {
    const [{ entry, choice }] = runs, failed = runs.find((run) => !run.metrics);
    const title = `${side.key.toUpperCase()}: ${nameOf({ ...side.result, job: choice })}`;
    if (failed) return [box("bad", `${title} failed with seed ${failed.choice.seed}`, `${failed.error}`)];
    const { knobs } = byName(about.policies, entry.policy);
    const turned = knobs.filter((knob) => entry.knobs[knob.name] !== knob.default).map((knob) => [knob.name, entry.knobs[knob.name]]);
    const wasRun = nameOf({ policy: entry.policy, job: { source: null, knobs: Object.fromEntries(turned) } });
    const place = entry.cpus === choice.cpus ? "" : ` on ${entry.cpus} CPUs`;
    const same = runs.filter((run) => run.hash === entry.runs[run.choice.seed].hash).length;
    const asRun = this.isAsRun(entry, choice);
    const text = document.createElement("p");
    text.className = "same";
    if (asRun && runs.every((run) => run.hash === null)) text.textContent = `${title}: as it was run; this browser computes no record hash here.`;
    else if (asRun) text.textContent = `${title}: as it was run. ${same} of ${runs.length} record hashes are those of the folder.`;
    if (asRun && same === runs.length) return [text];
    const table = document.createElement("table"), head = document.createElement("tr"), body = document.createElement("tbody");
    table.append(cell("caption", `${title}, beside ${wasRun}${place} of the report. Means over ${runs.length} seeds, each with the same work; a star marks what is better with every seed.`));
    head.append(...["metric", "reported", "now", "change"].map((word) => cell("th", word)));
    body.append(...about.metrics.map((metric) => this.row(metric, runs)).filter(Boolean));
    const top = document.createElement("thead");
    top.append(head);
    table.append(top, body);
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.append(table);
    return asRun ? [text, scroll] : [scroll];
  }

  row(metric, runs) {
    const pairs = runs.map((run) => [run.entry.runs[run.choice.seed].metrics[metric.name] ?? null, run.metrics[metric.name] ?? null])
      .filter((pair) => !pair.includes(null));
    if (!pairs.length) return null;
    const mean = (side) => pairs.reduce((sum, pair) => sum + pair[side], 0) / pairs.length, [was, now] = [mean(0), mean(1)];
    const row = document.createElement("tr"), name = cell("th", metric.label);
    name.scope = "row";
    name.title = metric.formula;
    const up = pairs.filter(([a, b]) => b > a).length, down = pairs.filter(([a, b]) => b < a).length;
    const [count, word] = now >= was ? [up, "higher"] : [down, "lower"];
    // A change of what is a share already is in points of per cent.
    const change = now === was ? "none" : metric.is_share ? `${signed(100 * (now - was))} points`
      : was === 0 ? signed(now - was) : `${signed(100 * (now / was - 1))} %`;
    const value = (number) => showNumber(metric, metric.unit === "ns" ? Math.round(number) : number);
    const seeds = cell("span", up + down ? `${word} in ${count} of ${pairs.length}` : `equal in all ${pairs.length}`);
    seeds.className = "between";
    row.append(name, ...[value(was), value(now), change].map((text) => cell("td", text)));
    row.lastChild.append(seeds);
    row.dataset.metric = metric.name;
    const better = { lower: down, higher: up }[metric.direction];
    if (better === pairs.length) row.className = "better";
    return row;
  }
}

function signed(number) {
  return `${number > 0 ? "+" : "−"}${Math.abs(number) < 100 ? Math.abs(number).toPrecision(2) : Math.abs(number).toFixed(0)}`;
}
