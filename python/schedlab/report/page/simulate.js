// SPDX-License-Identifier: MIT
// One run of the simulator and a policy, two WebAssembly modules, in a worker of a page.
//
// The simulator asks its caller for what hosts/wasm_run.py gives it, so the records are
// those of the command line byte for byte. Both modules are instantiated for each run.
//
// Read next: measure.js, what the records say.
"use strict";

const RECORDS_BYTES_MAX = 1 << 28, FILE_TOO_LARGE = 27;
const STREAM_RECORDS = 0, STREAM_RESULT = 1;
// Of the table of functions: a policy's own, from 4096 on; then those that are called by name.
const POLICY_SLOTS_END = 8192, NAMED_SLOTS = 64;
const CALLBACK_INSTRUCTIONS = 10n ** 9n, RUN_INSTRUCTIONS = 10n ** 12n;

class Simulation {
  constructor(job) {
    this.job = job;
    this.output = { [STREAM_RECORDS]: [], [STREAM_RESULT]: [], 2: [] };
    this.recordBytes = 0;
    const offered = {
      create: () => 0,
      write: (stream, at, bytes) => this.write(stream, at >>> 0, bytes >>> 0),
      symbol: (name, size) => this.symbol(name >>> 0, size >>> 0),
      error_text: (error, to, bytes) => this.put(to >>> 0, `${job.errors[error] ?? error}`, bytes),
    };
    this.simulator = new WebAssembly.Instance(job.simulator, { schedlab: offered }).exports;
    this.memory = this.simulator.memory;
    this.table = this.simulator.__indirect_function_table;
    this.slot = POLICY_SLOTS_END;
    this.table.grow(Math.max(0, this.slot + NAMED_SLOTS - this.table.length));
    this.sizes = job.sizes ?? sizesOf(job.policy);
    this.policy = new WebAssembly.Instance(job.policy, { env: this.simulator }).exports;
  }

  view(at, bytes) {
    return new Uint8Array(this.memory.buffer, at, bytes);
  }

  // A string with its end, at most so many bytes of it.
  put(at, text, bytes = Infinity) {
    const data = new TextEncoder().encode(text).subarray(0, bytes - 1);
    this.view(at, data.length + 1).set([...data, 0]);
  }

  text(at) {
    const all = new Uint8Array(this.memory.buffer, at);
    return new TextDecoder().decode(all.slice(0, all.indexOf(0)));
  }

  room(bytes) {
    return this.simulator.sim_wasm_room(bytes) >>> 0;
  }

  write(stream, at, bytes) {
    if (stream === STREAM_RECORDS && (this.recordBytes += bytes) > RECORDS_BYTES_MAX) return -FILE_TOO_LARGE;
    this.output[stream].push(this.view(at, bytes).slice());
    return 0;
  }

  // A variable's address and size, or a place in the table for a function.
  symbol(name, size) {
    const wanted = this.text(name), found = this.policy[wanted];
    new DataView(this.memory.buffer).setUint32(size, this.sizes[wanted] ?? 0, true);
    if (found instanceof WebAssembly.Global) return found.value;
    if (typeof found !== "function" || this.slot >= this.table.length) return 0;
    this.table.set(this.slot, found);
    return this.slot++;
  }

  run() {
    const { job, simulator, policy } = this, values = this.values(job.wanted);
    const program = this.room(job.program.length);
    this.view(program, job.program.length).set(job.program);
    simulator.sim_wasm_program(program, job.program.length);
    const request = ["--program", "program", "--cpus", job.cpus, "--seed", job.seed, "--tick-ns", job.tick_ns,
      "--records", "records", ...Object.entries(job.knobs).flatMap(([name, value]) => ["--set", `${name}=${value}`]),
      ...job.options].join("\t");
    const line = this.room(request.length + 1);
    this.put(line, request);
    if (policy.CONFIG_HZ) {
      const hz = BigInt(Math.max(1, Math.floor(1e9 / job.tick_ns)));
      new DataView(this.memory.buffer).setBigUint64(policy.CONFIG_HZ.value, hz, true);
    }
    // A policy that was compiled in the page is not metered: it is stopped by hand.
    if (policy["schedlab.run_left"]) {
      policy["schedlab.run_left"].value = RUN_INSTRUCTIONS;
      policy["schedlab.callback_limit"].value = CALLBACK_INSTRUCTIONS;
    }
    const top = simulator.__stack_pointer.value;
    try {
      simulator.sim_wasm_run(line);
    } catch (trap) {
      simulator.__stack_pointer.value = top;
      this.report(trap);
    }
    return { values, answer: JSON.parse(this.joined(STREAM_RESULT).text), log: this.joined(2).text,
      records: this.joined(STREAM_RECORDS).bytes };
  }

  // What variables are before the run: a changed policy may have other defaults.
  values(names) {
    const there = names.filter((name) => this.policy[name] instanceof WebAssembly.Global && this.sizes[name]);
    return Object.fromEntries(there.map((name) => {
      const bytes = this.view(this.policy[name].value, Math.min(8, this.sizes[name]));
      return [name, bytes.reduceRight((sum, byte) => sum * 256 + byte, 0)];
    }));
  }

  joined(stream) {
    const bytes = new Uint8Array(this.output[stream].reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.output[stream]) {
      bytes.set(part, at);
      at += part.length;
    }
    return { bytes, get text() { return new TextDecoder().decode(bytes); } };
  }

  // The simulator says what was going on when the policy was stopped.
  report(trap) {
    const isSpin = this.policy["schedlab.fuel"]?.value < 0n;
    const [kind, what] = isSpin ? ["spin", "did not return"] : ["crash", reasonOf(trap)];
    const words = [kind, what].map((text) => {
      const at = this.room(256);
      this.put(at, text, 256);
      return at;
    });
    try {
      this.simulator.sim_wasm_trapped(...words);
    } catch {
      const error = `the policy ${what} and has damaged what the simulator would say of it`;
      this.output[STREAM_RESULT] = [new TextEncoder().encode(JSON.stringify({ status: "failed", error, error_kind: kind }))];
    }
  }
}

// In the words of hosts/wasm_run.py; engines have no other names for traps than texts.
function reasonOf(trap) {
  if (/divi/.test(trap.message)) return "divided by zero";
  if (trap instanceof RangeError || /bounds|null|recursion|stack/.test(trap.message)) return "accessed invalid memory";
  return "used an index outside of its array, or reached another trap,";
}

// Sizes of a policy's variables, which wasm_build.py writes into a section of its own.
function sizesOf(module) {
  const sizes = {}, [section] = WebAssembly.Module.customSections(module, "schedlab.sizes");
  if (!section) return sizes;
  const read = new NumberReader(new Uint8Array(section));
  for (let left = read.next(); left > 0; left--) {
    const name = read.text();
    sizes[name] = read.next();
  }
  return sizes;
}

// ---- the worker: a job in, its numbers and slices out

onmessage = (event) => {
  const job = event.data, began = performance.now();
  try {
    const done = new Simulation(job).run();
    if (done.answer.status === "ok") {
      const timeline = new Timeline(done.records.buffer);
      Object.assign(done, { metrics: metricsOf(timeline, job.tasks.weights), slices: slicesOf(timeline) });
    }
    done.milliseconds = performance.now() - began;
    postMessage(done, [done.records.buffer]);
  } catch (error) {
    postMessage({ answer: { status: "failed", error: `this browser: ${error.message}`, error_kind: "host" }, log: "" });
  }
};
