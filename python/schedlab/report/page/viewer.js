// SPDX-License-Identifier: MIT
// Controls of one section's Gantt charts: two policies on one time axis.
//
// Must stay true: whatever the mouse can do, the keyboard and the buttons can.
// Names reach the page as text, never as markup.
"use strict";

const HUES = 8;
// An A4 page between margins of 15 mm, and the rows that fit on it.
const PAPER_WIDTH = 680, PAPER_HEIGHT = 880;

class Viewer {
  constructor(element) {
    this.element = element;
    this.charts = JSON.parse(element.querySelector("script[type='application/json']").textContent);
    this.runs = new Map();
    this.rowKind = "cpu";
    this.colourBy = "task";
    this.hotPid = null;
    this.cursor = null;
    this.frame = 0;
    this.drawMilliseconds = 0;
    this.isPaper = this.isReady = false;
    this.lanes = [...element.querySelectorAll(".lane")].map((lane) => new Lane(this, lane));
    this.status = element.querySelector(".status");
    this.tip = element.querySelector(".tip");
    this.legend = element.querySelector(".legend");
    this.choosers = ["a", "b"].map((side) => element.querySelector(`select[name='${side}']`));
    this.view = { from: 0, to: 1 };
    this.nameColours = new Map();
  }

  // Once, whoever asks first.
  begin() {
    this.started ??= this.start().then(() => {
      this.isReady = true;
      this.resolve();
    });
    return this.started;
  }

  async start() {
    this.element.querySelector(".controls").hidden = false;
    this.readInk();
    this.choosers.forEach((chooser) => chooser.addEventListener("change", () => this.choose()));
    this.onChange("rows", (value) => { this.rowKind = value; });
    this.onChange("colour", (value) => { this.colourBy = value; });
    this.element.querySelectorAll("button[data-do]").forEach((button) =>
      button.addEventListener("click", () => this.act(button.dataset.do)));
    this.lanes.forEach((lane) => this.listen(lane));
    new ResizeObserver(() => this.redraw()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readInk();
      this.redraw();
    });
    await this.choose();
    this.act("whole");
  }

  onChange(name, apply) {
    const select = this.element.querySelector(`select[name='${name}']`);
    select.addEventListener("change", () => {
      apply(select.value);
      this.lanes.forEach((lane) => { lane.picked = null; });
      this.point(null, null);
      this.drawLegend();
      this.redraw();
    });
  }

  async choose() {
    const runs = await Promise.all(this.choosers.map((chooser) => this.load(chooser.value)));
    const span = this.wholeSpan;
    const wasWhole = this.view.from === 0 && this.view.to >= span;
    this.lanes.forEach((lane, i) => lane.show(runs[i]));
    this.learnNames(runs.filter(Boolean));
    if (wasWhole) this.view = { from: 0, to: this.wholeSpan };
    this.point(null, null);
    this.drawLegend();
    this.redraw();
  }

  async load(index) {
    if (index === "") return null;
    if (!this.runs.has(index)) {
      const packed = this.element.querySelector(`script[data-chart='${index}']`).textContent;
      this.runs.set(index, Run.unpack(this.charts[index], packed));
    }
    return this.runs.get(index);
  }

  get wholeSpan() {
    return Math.max(1, ...this.lanes.map((lane) => (lane.run ? lane.run.meta.end_ns : 0)));
  }

  get heightMax() {
    return Math.max(160, Math.min(430, window.innerHeight * 0.55));
  }

  // ---- colours

  readInk() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    this.ink = { text: of("--text"), grid: of("--grid"), ground: of("--ground"), wait: of("--wait"),
      blocked: of("--soft") };
    this.palette = Array.from({ length: HUES }, (_, i) => of(`--s${i}`));
    // Hatched, so that waiting differs from running without any colour.
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const c = tile.getContext("2d");
    c.strokeStyle = this.ink.wait;
    c.lineWidth = 1.4;
    c.beginPath();
    for (const shift of [-6, 0, 6]) {
      c.moveTo(shift, 6);
      c.lineTo(shift + 6, 0);
    }
    c.stroke();
    this.ink.hatch = c.createPattern(tile, "repeat");
    this.ink.hatchImage = tile.toDataURL();
  }

  // Tasks of one name share a colour, the same in both lanes.
  learnNames(runs) {
    const names = new Set(runs.flatMap((run) => Object.values(run.meta.names)));
    this.nameColours = new Map([...names].map((name, i) => [name, i]));
    for (const run of runs) {
      run.hueOfPid = new Map(Object.entries(run.meta.names).map(([pid, name]) =>
        [+pid, this.nameColours.get(name)]));
    }
  }

  hue(i) {
    // Beyond the palette, the golden angle keeps neighbours apart.
    return (this.palette[i] ??= `hsl(${(i * 137.5) % 360} 50% 62%)`);
  }

  colour(run, row, i) {
    if (this.colourBy === "cpu") return this.hue(row.cpu[i]);
    if (this.colourBy === "state") return this.hue(row.reason[i]);
    return this.hue(run.hueOfPid.get(row.pid[i]) ?? 0);
  }

  drawLegend() {
    const runs = this.lanes.map((lane) => lane.run).filter(Boolean);
    let entries = [];
    if (this.colourBy === "task") {
      entries = [...this.nameColours].slice(0, 24).map(([name, i]) => [this.hue(i), name]);
      if (this.nameColours.size > 24) entries.push(["", `and ${this.nameColours.size - 24} more`]);
    } else if (this.colourBy === "cpu") {
      const cpus = Math.max(0, ...runs.map((run) => run.meta.cpus));
      entries = Array.from({ length: Math.min(cpus, 24) }, (_, i) => [this.hue(i), `CPU ${i}`]);
      if (cpus > 24) entries.push(["", `and ${cpus - 24} more`]);
    } else {
      entries = ["P preempted", "Y yielded", "B blocked", "E ended"].map((text, i) =>
        [this.hue(i), `ran, then ${text.slice(2)} (${text[0]})`]);
    }
    if (this.rowKind === "task") {
      entries.push(["hatch", "waited for a CPU"], ["line", "blocked, or asleep"]);
    }
    this.legend.replaceChildren(...entries.map(([colour, text]) => {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = `swatch ${colour === "line" ? "line" : ""}`;
      if (colour === "hatch") swatch.style.backgroundImage = `url(${this.ink.hatchImage})`;
      else if (colour && colour !== "line") swatch.style.background = colour;
      if (colour) item.append(swatch);
      item.append(text);
      return item;
    }));
  }

  // ---- moving about

  act(what) {
    const { from, to } = this.view, middle = (from + to) / 2;
    if (what === "in") this.zoom(0.5, this.cursor ?? middle);
    else if (what === "out") this.zoom(2, this.cursor ?? middle);
    else if (what === "left") this.pan(-0.2);
    else if (what === "right") this.pan(0.2);
    else this.setView(0, this.wholeSpan);
    this.say(`From ${showTime(this.view.from)} to ${showTime(this.view.to)}.`);
  }

  zoom(factor, around) {
    const { from, to } = this.view;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
  }

  pan(part) {
    const step = (this.view.to - this.view.from) * part;
    this.setView(this.view.from + step, this.view.to + step);
  }

  // At least a microsecond wide, and never outside of the runs.
  setView(from, to) {
    const whole = this.wholeSpan;
    const span = Math.min(whole, Math.max(Math.min(1000, whole), to - from));
    const middle = (from + to) / 2;
    const start = Math.max(0, Math.min(whole - span, to - from === span ? from : middle - span / 2));
    this.view = { from: start, to: start + span };
    this.redraw();
  }

  // Paper is narrow, white, and has no scroll bars; it waits for no frame either.
  toPaper(isPaper) {
    this.isPaper = isPaper;
    document.documentElement.classList.toggle("paper", isPaper);
    this.readInk();
    this.drawLegend();
    this.lanes.forEach((lane) => {
      // A page of many sections may be printed before all of them are unpacked.
      if (!lane.run && !this.isReady) lane.title.textContent = isPaper ? "Not unpacked yet when this was printed: print again." : "";
      lane.draw();
    });
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const before = performance.now();
      this.lanes.forEach((lane) => lane.draw());
      this.drawMilliseconds = performance.now() - before;
    });
  }

  say(text) {
    this.status.textContent = text;
  }

  // ---- pointer and keys

  listen(lane) {
    const canvas = lane.canvas, down = new Map();
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      down.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
    });
    const up = (event) => down.delete(event.pointerId);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event), last = down.get(event.pointerId);
      if (last) this.drag(lane, down, event.pointerId, last, [x, y]);
      else this.hover(lane, x, y);
    });
    canvas.addEventListener("pointerleave", () => this.point(null, null));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, lane.toTime(place(event)[0])));
    canvas.addEventListener("wheel", (event) => {
      const isAcross = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !isAcross) return; // scrolls the page
      event.preventDefault();
      const amount = event.deltaY || event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        this.zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), lane.toTime(place(event)[0]));
      } else this.pan((isAcross ? event.deltaX : amount) / lane.width);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(lane, event));
  }

  drag(lane, down, id, last, now) {
    const others = [...down].filter(([other]) => other !== id);
    if (others.length === 1) {
      // Two fingers: the distance between them is the zoom.
      const other = others[0][1][0];
      const factor = Math.abs(last[0] - other) / Math.max(1, Math.abs(now[0] - other));
      this.zoom(factor, lane.toTime((now[0] + other) / 2));
    } else {
      const step = lane.toTime(last[0]) - lane.toTime(now[0]);
      this.setView(this.view.from + step, this.view.to + step);
      lane.scroller.scrollTop += last[1] - now[1];
    }
    down.set(id, now);
  }

  key(lane, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "whole" };
    if (acts[event.key]) this.act(acts[event.key]);
    else if (event.key === "n" || event.key === "p") this.go(lane, event.key === "n" ? 1 : -1);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.goRow(lane, event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Escape") this.point(null, null);
    else return;
    event.preventDefault();
  }

  goRow(lane, direction) {
    const row = Math.max(0, Math.min(lane.rows.length - 1, (lane.picked?.row ?? -1) + direction));
    const { from, to } = this.view;
    lane.picked = { row, slice: lane.rows[row].at((from + to) / 2, to - from) };
    this.showPicked(lane);
  }

  go(lane, direction) {
    if (lane.step(direction)) this.showPicked(lane);
  }

  showPicked(lane) {
    const { row, slice } = lane.picked, top = row * ROW;
    if (top < lane.scroller.scrollTop) lane.scroller.scrollTop = top;
    const visible = lane.height - AXIS - ROW;
    if (top > lane.scroller.scrollTop + visible) lane.scroller.scrollTop = top - visible;
    if (slice < 0) return this.say(`${lane.rows[row].label}: nothing here.`);
    const r = lane.rows[row], { from, to } = this.view;
    if (r.end[slice] <= from || r.begin[slice] > to) {
      this.setView(r.begin[slice] - (to - from) / 2, r.begin[slice] + (to - from) / 2);
    }
    this.point(lane, lane.picked);
    this.say(lane.describe(row, slice));
  }

  hover(lane, x, y) {
    const found = lane.pick(x, y);
    this.cursor = x >= lane.gutter ? lane.toTime(x) : null;
    this.point(lane, found, x, y);
  }

  // Both policies around a moment, a row for each task, and what the task did then.
  async showMoment({ charts, view, side, pid, at }) {
    await this.begin();
    this.choosers.forEach((chooser, i) => { chooser.value = charts[i]; });
    this.element.querySelector("select[name='rows']").value = this.rowKind = "task";
    await this.choose();
    this.setView(...view);
    this.element.scrollIntoView({ block: "start" });
    const lane = this.lanes[side], row = lane.rows.findIndex((each) => each.pid[0] === pid);
    lane.layout();
    if (row < 0) return;
    lane.canvas.focus({ preventScroll: true });
    lane.picked = { row, slice: lane.rows[row].at(at, 1) };
    this.showPicked(lane);
  }

  // Lights up a task in both lanes, and says in words what is there.
  point(lane, found, x, y) {
    this.lanes.forEach((each) => { if (each !== lane) each.picked = null; });
    const has = lane && found && found.slice >= 0;
    if (!lane) this.cursor = null;
    if (lane) lane.picked = has ? { row: found.row, slice: found.slice } : null;
    this.hotPid = has ? lane.rows[found.row].pid[found.slice] : null;
    this.tip.hidden = !has;
    if (has) {
      this.tip.textContent = lane.describe(found.row, found.slice);
      const box = lane.canvas.getBoundingClientRect(), home = this.element.getBoundingClientRect();
      const left = box.left - home.left + (x ?? lane.toX(lane.rows[found.row].begin[found.slice]));
      const under = y ?? AXIS + found.row * ROW - lane.scroller.scrollTop;
      const width = Math.min(320, home.width - 16);
      this.tip.style.maxWidth = `${width}px`;
      this.tip.style.left = `${Math.max(8, Math.min(left + 12, home.width - width - 8))}px`;
      this.tip.style.top = `${box.top - home.top + under + 24}px`;
    }
    this.redraw();
  }
}

// A section's slices are unpacked when it comes near the screen; all others follow
// while the page is idle, so that paper shows what nobody has scrolled to.
window.schedlab = { viewers: [] };
for (const element of document.querySelectorAll(".gantt")) {
  const viewer = new Viewer(element);
  viewer.ready = new Promise((resolve) => { viewer.resolve = resolve; });
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    viewer.begin();
  }, { rootMargin: "600px" }).observe(element);
  window.schedlab.viewers.push(viewer);
}
document.querySelectorAll("button[data-moment]").forEach((button) => button.addEventListener("click", () => {
  const moment = JSON.parse(button.dataset.moment);
  window.schedlab.viewers.find((viewer) => viewer.element.id === moment.viewer).showMoment(moment);
}));
const idle = () => new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve));
addEventListener("load", async () => {
  for (const viewer of window.schedlab.viewers) {
    await idle();
    await viewer.begin();
  }
});
addEventListener("beforeprint", () => window.schedlab.viewers.forEach((viewer) => viewer.toPaper(true)));
addEventListener("afterprint", () => window.schedlab.viewers.forEach((viewer) => viewer.toPaper(false)));
