// SPDX-License-Identifier: MIT
// One policy's chart on a canvas: a row per CPU or per task, time to the right.
//
// A frame costs the same however long the run: where a pixel holds many slices it
// becomes one column, as high as the CPU was busy in it, and a binary search jumps
// to the next pixel.
//
// Must stay true: both lanes of a viewer show the same window of time.
// Read next: viewer.js, which has the controls.
"use strict";

const ROW = 20, BAR = 15, AXIS = 22;
const REASON_LETTER = "PYBE";

class Lane {
  constructor(viewer, element) {
    this.viewer = viewer;
    this.element = element;
    this.title = element.querySelector(".lane-title");
    this.scroller = element.querySelector(".scroller");
    this.spacer = element.querySelector(".spacer");
    this.canvas = element.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.run = null;
    this.picked = null; // {row, slice} under the pointer or chosen with keys
    this.scroller.addEventListener("scroll", () => viewer.redraw());
  }

  show(run) {
    this.run = run;
    this.picked = null;
    this.element.hidden = !run;
    if (!run) return;
    const meta = run.meta;
    const cut = meta.shown_until_ns < meta.end_ns
      ? `; shown up to ${showTime(meta.shown_until_ns)} of ${showTime(meta.end_ns)}` : "";
    this.title.textContent =
      `${meta.policy}, seed ${meta.seed}: ${meta.n_slices.toLocaleString("en")} slices${cut}`;
    this.canvas.setAttribute("aria-label", `Gantt chart of ${meta.policy}. Arrow keys move, plus and ` +
      "minus zoom, N and P go from slice to slice, 0 shows the whole run.");
  }

  get rows() {
    return this.run.rows[this.viewer.rowKind];
  }

  // Sizes in CSS pixels; the canvas has the screen's own.
  layout() {
    const { isPaper } = this.viewer;
    const width = isPaper ? PAPER_WIDTH : this.scroller.clientWidth;
    const wanted = AXIS + ROW * this.rows.length + 4;
    const height = Math.min(wanted, isPaper ? PAPER_HEIGHT : this.viewer.heightMax);
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${wanted - height}px`;
    this.gutter = width < 560 ? 84 : 128;
    const ratio = isPaper ? 2 : window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    this.height = height;
  }

  toX(t) {
    const { from, to } = this.viewer.view;
    return this.gutter + ((t - from) / (to - from)) * (this.width - this.gutter);
  }

  toTime(x) {
    const { from, to } = this.viewer.view;
    return from + ((x - this.gutter) / (this.width - this.gutter)) * (to - from);
  }

  draw() {
    if (!this.run) return;
    this.layout();
    const ink = this.viewer.ink, c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(this.rows.length, Math.ceil((top + this.height - AXIS) / ROW));
    for (let r = first; r < last; r++) this.drawRow(r, AXIS + r * ROW - top);
    this.drawAxis();
    if (this.viewer.cursor !== null) {
      const x = this.toX(this.viewer.cursor);
      if (x >= this.gutter) {
        c.fillStyle = ink.text;
        c.globalAlpha = 0.5;
        c.fillRect(Math.round(x), 0, 1, this.height);
        c.globalAlpha = 1;
      }
    }
  }

  drawAxis() {
    const c = this.context, { from, to } = this.viewer.view;
    c.fillStyle = this.viewer.ink.ground;
    c.fillRect(0, 0, this.width, AXIS - 1);
    c.fillStyle = this.viewer.ink.text;
    c.textAlign = "center";
    for (const t of ticks(from, to, (this.width - this.gutter) / 110)) {
      const x = this.toX(t);
      c.fillRect(Math.round(x), AXIS - 5, 1, 4);
      const text = showMoment(t, to - from), half = c.measureText(text).width / 2;
      if (x - half > this.gutter - 20 && x + half < this.width) c.fillText(text, x, 8);
    }
    c.fillRect(this.gutter, AXIS - 2, this.width - this.gutter, 1);
  }

  drawRow(index, y) {
    const c = this.context, row = this.rows[index];
    c.save();
    c.beginPath();
    c.rect(this.gutter, y, this.width - this.gutter, ROW);
    c.clip();
    c.fillStyle = this.viewer.ink.grid;
    c.fillRect(this.gutter, y + ROW - 1, this.width, 1);
    this.fill = this.opacity = null;
    this.crowd = null;
    this.drawSlices(row, y + 2);
    this.drawColumns();
    c.globalAlpha = 1;
    if (this.picked && this.picked.row === index && this.picked.slice >= 0) {
      const i = this.picked.slice, x = this.toX(row.begin[i]);
      c.strokeStyle = this.viewer.ink.text;
      c.lineWidth = 2;
      c.strokeRect(x - 1, y + 1, Math.max(2, this.toX(row.end[i]) - x) + 2, BAR + 2);
    }
    c.restore();
    c.fillStyle = this.viewer.ink.text;
    c.textAlign = "right";
    const isHot = this.viewer.rowKind === "task" && this.viewer.hotPid === row.pid[0];
    c.font = `${isHot ? "bold " : ""}12px system-ui, sans-serif`;
    c.fillText(fitted(c, row.label, this.gutter - 10), this.gutter - 6, y + 2 + BAR / 2);
    c.font = "12px system-ui, sans-serif";
  }

  drawSlices(row, y) {
    const { from, to } = this.viewer.view;
    const perPixel = (to - from) / (this.width - this.gutter);
    let i = firstAbove(row.end, from);
    // A slice of no length at the very start ends there, and is still to be seen.
    while (i > 0 && row.begin[i - 1] >= from) i--;
    let covered = from; // pixels up to this moment are drawn, or out of sight
    while (i < row.length && row.begin[i] <= to) {
      const start = Math.max(row.begin[i], covered), length = row.end[i] - start;
      const x = this.toX(start);
      const isAlone = i + 1 >= row.length || row.begin[i + 1] - start >= perPixel;
      if (length >= perPixel || isAlone) {
        this.drawSlice(row, i, x, Math.max(length / perPixel, 1), y);
        i++;
        continue;
      }
      // The sliver keeps rounding from going back a pixel.
      const pixel = Math.floor(x + 1e-6), edge = this.toTime(pixel + 1);
      const next = Math.max(i + 1, firstAbove(row.end, edge, i));
      // One short slice between long ones keeps its full height; among its like it
      // would claim a whole pixel of time that it did not have.
      const before = i > 0 ? row.begin[i] - row.begin[i - 1] : Infinity;
      const after = next < row.length ? row.end[next] - row.begin[i] : Infinity;
      if (next === i + 1 && Math.min(before, after) >= 2 * perPixel) this.drawSlice(row, i, pixel, 1, y);
      else this.drawCrowd(row, i, next, pixel, edge, perPixel, y);
      covered = edge;
      i = next;
    }
  }

  // A pixel with many slices: as high as its time was busy, in the colour of the longest.
  drawCrowd(row, from, to, x, edge, perPixel, y) {
    const busy = row.ranWithin(from, to, edge - perPixel, edge) / perPixel;
    if (busy <= 0 && row.state[from] !== RAN) return this.drawSlice(row, from, x, 1, y);
    let longest = from;
    for (let i = from; i < to && i < from + 16; i++) {
      if (row.state[i] === RAN && (row.state[longest] !== RAN ||
          row.end[i] - row.begin[i] > row.end[longest] - row.begin[longest])) longest = i;
    }
    // Half pixels, so that neighbours are often equal and drawn as one.
    const height = Math.max(1.5, Math.round(2 * BAR * Math.min(1, busy)) / 2);
    const fill = this.viewer.colour(this.run, row, longest), pid = row.pid[longest], last = this.crowd;
    if (last && last.end === x && last.height === height && last.fill === fill && last.pid === pid) {
      last.end++;
      return;
    }
    this.drawColumns();
    this.crowd = { x, end: x + 1, height, fill, pid, y };
  }

  drawColumns() {
    const crowd = this.crowd;
    this.crowd = null;
    if (!crowd) return;
    this.setAlpha(crowd.pid);
    this.setFill(crowd.fill);
    this.context.fillRect(crowd.x, crowd.y + BAR - crowd.height, crowd.end - crowd.x, crowd.height);
  }

  drawSlice(row, i, x, width, y) {
    const c = this.context, ink = this.viewer.ink;
    this.setAlpha(row.pid[i]);
    if (row.state[i] === BLOCKED) {
      this.setFill(ink.blocked);
      c.fillRect(x, y + BAR - 2, width, 1);
    } else if (row.state[i] === WAITED) {
      this.setFill(ink.hatch);
      c.fillRect(x, y + 4, width, BAR - 7);
    } else {
      const colour = this.viewer.colour(this.run, row, i);
      this.setFill(colour);
      // The gap between neighbours is what separates two slices of one colour.
      c.fillRect(x, y, width > 4 ? width - 1 : width, BAR);
      if (width > 16) this.drawLabel(row, i, x, width, y, colour);
    }
  }

  // Setting a canvas' state costs more than drawing a column, so only changes are set.
  setFill(fill) {
    if (fill === this.fill) return;
    this.fill = fill;
    this.context.fillStyle = fill;
  }

  setAlpha(pid) {
    const alpha = this.alpha(pid);
    if (alpha === this.opacity) return;
    this.opacity = alpha;
    this.context.globalAlpha = alpha;
  }

  drawLabel(row, i, x, width, y, colour) {
    const c = this.context, viewer = this.viewer;
    // What a colour says, a word says too.
    const text = viewer.colourBy === "state" ? REASON_LETTER[row.reason[i]] ?? ""
      : viewer.colourBy === "cpu" ? String(row.cpu[i])
      : viewer.rowKind === "cpu" ? this.run.nameOf(row.pid[i]) : "";
    const left = Math.max(x, this.gutter), right = Math.min(x + width, this.width);
    const shown = fitted(c, text, right - left - 6);
    if (!shown) return;
    this.setFill(isLight(colour) ? "#111" : "#fff");
    c.textAlign = "center";
    c.fillText(shown, (left + right) / 2, y + BAR / 2 + 0.5);
  }

  alpha(pid) {
    return this.viewer.hotPid === null || this.viewer.hotPid === pid ? 1 : 0.22;
  }

  // What is at a place of the canvas: {row, slice, t}, or null.
  pick(x, y) {
    if (!this.run || x < this.gutter || y < AXIS) return null;
    const row = Math.floor((y - AXIS + this.scroller.scrollTop) / ROW);
    if (row >= this.rows.length) return null;
    const t = this.toTime(x), perPixel = this.toTime(x + 1) - t;
    return { row, slice: this.rows[row].at(t, 3 * perPixel), t };
  }

  // The next or previous slice of the row in which one is picked.
  step(direction) {
    const at = this.picked ?? { row: 0, slice: -1 };
    const row = this.rows[Math.min(at.row, this.rows.length - 1)];
    const from = at.slice >= 0 ? at.slice + direction : firstAbove(row.end, this.viewer.view.from);
    const slice = Math.max(0, Math.min(row.length - 1, from));
    this.picked = { row: Math.min(at.row, this.rows.length - 1), slice };
    return row.length ? this.picked : null;
  }

  // Words about a slice, for tooltip and screen reader.
  describe(row, i) {
    const r = this.rows[row], length = showTime(r.end[i] - r.begin[i]);
    const name = this.run.nameOf(r.pid[i]), span = this.viewer.view.to - this.viewer.view.from;
    const when = `${showMoment(r.begin[i], span)} to ${showMoment(r.end[i], span)}`;
    if (r.state[i] === BLOCKED) return `${name} was blocked for ${length}, ${when}`;
    if (r.state[i] === WAITED) return `${name} waited for a CPU for ${length}, ${when}`;
    const ended = ENDED[r.reason[i]];
    return `${name} ran on CPU ${r.cpu[i]} for ${length}, ${when}` + (ended ? `, then ${ended}` : "");
  }
}

// As much of a text as fits; nothing rather than a single letter of a long word.
function fitted(context, text, width) {
  if (!text || context.measureText(text).width <= width) return text;
  const cut = (letters) => `${text.slice(0, letters)}\u2026`;
  let letters = Math.floor((text.length * width) / context.measureText(text).width) - 1;
  // The first letters can be wider than the mean one.
  while (letters >= 2 && context.measureText(cut(letters)).width > width) letters--;
  return letters < 2 ? "" : cut(letters);
}

const lightness = new Map();
function isLight(colour) {
  if (!lightness.has(colour)) {
    const hex = /^#(..)(..)(..)$/.exec(colour);
    const [r, g, b] = hex ? hex.slice(1).map((h) => parseInt(h, 16)) : [200, 200, 200];
    lightness.set(colour, 0.299 * r + 0.587 * g + 0.114 * b > 140);
  }
  return lightness.get(colour);
}
