// SPDX-License-Identifier: MIT
// A policy's C in the page: an editor with numbered lines, and the compiler behind it.
//
// The compiler is 27 MB beside the page, in scripts, since a page from a file may read no
// other file. It is loaded when the first changed policy is to run.
//
// Read next: compile.js, the compiler's worker.
"use strict";

const MESSAGE = /^([^\s:]+):(\d+):\d+: (?:fatal )?(error|warning): (.*)$/gm;

class Compiler {
  constructor(page) {
    this.page = page;
    this.made = new Map();
    this.waiting = new Map();
  }

  // {module, sizes}; the error's text is the compiler's.
  build(name, source) {
    const key = `${name}\n${source}`;
    if (!this.made.has(key)) this.made.set(key, this.ask(name, source));
    return this.made.get(key);
  }

  async ask(name, source) {
    if (!about.compiler) throw new Error("this page has no compiler: write it with `schedlab playground --with-compiler`");
    this.worker ??= this.load();
    const worker = await this.worker, id = this.made.size;
    this.page.say("Compiling.");
    const answer = await new Promise((resolve) => {
      this.waiting.set(id, resolve);
      worker.postMessage({ id, name, source });
    });
    if (answer.error) throw new Error(answer.error);
    return { module: await WebAssembly.compile(answer.bytes), sizes: answer.sizes };
  }

  async load() {
    const { parts, index, ...options } = about.compiler, pieces = [];
    window.schedlab.piece = (text) => pieces.push(bytesOf(text));
    for (const [number, part] of parts.entries()) {
      this.page.say(`Loading the compiler, ${Math.round((100 * number) / parts.length)} %.`);
      await new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = part;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${part} is not beside the page`));
        document.head.append(script);
      });
    }
    this.page.say("Loading the compiler, 100 %.");
    const all = await inflateBytes(new Blob(pieces)), files = {};
    for (const [name, [at, bytes]] of Object.entries(index)) files[name] = all.slice(at, at + bytes);
    const text = new TextDecoder(), include = {};
    for (const name of Object.keys(about.files).filter((each) => each.startsWith("include/"))) {
      const words = name.split("/").slice(1), last = words.pop();
      words.reduce((folder, word) => (folder[word] ??= {}), include)[last] = text.decode(await fileOf(name));
    }
    // The package's script keeps what fetch() is when it starts, and would tell the console how far it is.
    const script = ["globalThis.fetch = fetchGiven; console.log = () => {};\n", files["bundle.js"],
      JSON.parse(document.getElementById("compile").textContent)];
    const worker = new Worker(URL.createObjectURL(new Blob(script, { type: "text/javascript" })));
    worker.onmessage = (event) => this.waiting.get(event.data.id)(event.data);
    worker.onerror = (event) => this.waiting.forEach((resolve) => resolve({ error: `this browser: ${event.message}` }));
    worker.postMessage({ files, include, support: text.decode(await fileOf("support")), ...options });
    return worker;
  }
}

class Editor {
  constructor(page) {
    this.page = page;
    this.element = document.getElementById("editor");
    this.area = this.element.querySelector("textarea");
    this.gutter = this.element.querySelector(".gutter");
    this.list = this.element.querySelector(".messages");
    this.side = null;
    this.mayLeave = false;
    this.area.addEventListener("input", () => this.mark([]));
    this.area.addEventListener("scroll", () => { this.gutter.scrollTop = this.area.scrollTop; });
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.element.querySelector(".compile").addEventListener("click", () => {
      this.side.edit(this.area.value);
      page.changed();
    });
    this.element.querySelector(".discard").addEventListener("click", () => {
      this.element.hidden = true;
      this.side.set(this.side.policy, this.side.knobs);
      page.changed();
    });
  }

  async open(side) {
    const text = side.source ?? new TextDecoder().decode(await fileOf(`source/${side.policy}`));
    this.side = side;
    this.area.value = text;
    this.element.hidden = false;
    this.element.querySelector("h2").textContent = `Policy ${side.key.toUpperCase()}: ${side.policy}.bpf.c`;
    this.mark([]);
    this.area.focus();
    this.area.setSelectionRange(0, 0);
    this.element.scrollIntoView({ block: "nearest" });
  }

  // Tab is a letter of C; after Escape it leaves the editor, as it does elsewhere.
  key(event) {
    if (event.key === "Tab" && !event.shiftKey && !this.mayLeave) {
      event.preventDefault();
      document.execCommand("insertText", false, "\t");
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      this.element.querySelector(".compile").click();
    }
    this.mayLeave = event.key === "Escape" || (this.mayLeave && event.key === "Shift");
  }

  // Messages of the compiler at their lines: {line, kind, text}.
  mark(messages) {
    const byLine = new Map(messages.map((message) => [message.line, message]));
    const lines = this.area.value.split("\n");
    this.gutter.replaceChildren(...lines.map((_, i) => {
      const number = document.createElement("span"), message = byLine.get(i + 1);
      number.textContent = `${i + 1}\n`;
      if (message) {
        number.className = message.kind;
        number.title = message.text;
      }
      return number;
    }));
    this.list.replaceChildren(...messages.map((message) => {
      const item = document.createElement("li"), go = document.createElement("button");
      go.type = "button";
      go.textContent = `line ${message.line}: ${message.text}`;
      go.addEventListener("click", () => this.goTo(message.line));
      item.append(go);
      return item;
    }));
    this.gutter.scrollTop = this.area.scrollTop;
  }

  show(side, text) {
    if (this.element.hidden || this.side !== side) return;
    const own = [...text.matchAll(MESSAGE)].filter(([, file]) => file === `${side.policy}.bpf.c`);
    this.mark(own.map(([, , line, kind, words]) => ({ line: Number(line), kind, text: words })));
  }

  goTo(line) {
    const lines = this.area.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1);
    this.area.focus();
    this.area.setSelectionRange(from, from + lines[line - 1].length);
    this.area.scrollTop = (this.area.scrollHeight / lines.length) * Math.max(0, line - 5);
  }
}

// ---- text in an address

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function toAddress(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_");
}

async function fromAddress(text) {
  try {
    const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
  } catch {
    return null;
  }
}
