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
      `${meta.policy}, seed ${meta.seed}: ${meta.nr_slices.toLocaleString("en")} slices${cut}`;
    this.canvas.setAttribute("aria-label", `Gantt chart of ${meta.policy}. Arrow keys move, plus and ` +
      "minus zoom, N and P go from slice to slice, 0 shows the whole run.");
  }

  get rows() {
    return this.run.rows[this.viewer.rowKind];
  }

  // Sizes in CSS pixels; the canvas has the screen's own.
  layout() {
    const width = this.scroller.clientWidth;
    const wanted = AXIS + ROW * this.rows.length + 4;
    const height = Math.min(wanted, this.viewer.heightMax);
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${wanted - height}px`;
    this.gutter = width < 560 ? 84 : 128;
    const ratio = window.devicePixelRatio || 1;
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
    this.drawSlices(row, y + 2);
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
    while (i < row.length && row.begin[i] <= to) {
      const x = this.toX(row.begin[i]), length = row.end[i] - row.begin[i];
      const isAlone = i + 1 >= row.length || row.begin[i + 1] - row.begin[i] >= perPixel;
      if (length >= perPixel || isAlone) {
        this.drawSlice(row, i, x, Math.max(length / perPixel, 1), y);
        i++;
        continue;
      }
      const pixel = Math.floor(x), edge = this.toTime(pixel + 1);
      const next = Math.max(i + 1, firstAbove(row.end, edge));
      if (next === i + 1) this.drawSlice(row, i, pixel, 1, y);
      else this.drawCrowd(row, i, next, pixel, edge, perPixel, y);
      i = next;
    }
  }

  // A pixel with many slices: as high as its time was busy, in the colour of the longest.
  drawCrowd(row, from, to, x, edge, perPixel, y) {
    const busy = (row.ranUntil(edge) - row.ranUntil(edge - perPixel)) / perPixel;
    let longest = from;
    for (let i = from; i < to && i < from + 16; i++) {
      if (row.state[i] === RAN && (row.state[longest] !== RAN ||
          row.end[i] - row.begin[i] > row.end[longest] - row.begin[longest])) longest = i;
    }
    const height = Math.max(1.5, BAR * Math.min(1, busy));
    const c = this.context;
    c.globalAlpha = this.alpha(row.pid[longest]);
    c.fillStyle = this.viewer.ink.wait;
    c.fillRect(x, y + BAR / 2, 1, 2);
    c.fillStyle = this.viewer.colour(this.run, row, longest);
    c.fillRect(x, y + BAR - height, 1, height);
    c.globalAlpha = 1;
  }

  drawSlice(row, i, x, width, y) {
    const c = this.context, ink = this.viewer.ink;
    c.globalAlpha = this.alpha(row.pid[i]);
    if (row.state[i] === BLOCKED) {
      c.fillStyle = ink.blocked;
      c.fillRect(x, y + BAR - 2, width, 1);
    } else if (row.state[i] === WAITED) {
      c.fillStyle = ink.hatch;
      c.fillRect(x, y + 4, width, BAR - 7);
    } else {
      const colour = this.viewer.colour(this.run, row, i);
      c.fillStyle = colour;
      // The gap between neighbours is what separates two slices of one colour.
      c.fillRect(x, y, width > 4 ? width - 1 : width, BAR);
      if (width > 16) this.drawLabel(row, i, x, width, y, colour);
    }
    c.globalAlpha = 1;
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
    c.fillStyle = isLight(colour) ? "#111" : "#fff";
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
  const letters = Math.floor((text.length * width) / context.measureText(text).width) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}\u2026`;
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
