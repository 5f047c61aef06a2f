// SPDX-License-Identifier: MIT
// C to a policy's module, in a worker that has clang and wasm-ld as WebAssembly.
//
// Stands behind the package @yowasp/clang in one script, whose files the page hands over:
// it fetches nothing. Commands are those of policy/wasm_build.py, without its checks and
// without counting of instructions, neither of which changes a record.
"use strict";

const SYMBOL_TABLE = 8, DATA_SYMBOL = 1, SECTION_SYMBOL = 3, UNDEFINED = 0x10, NAMED = 0x40;
let given = null, support = null;

// What the package asks for by its own address; editor.js puts it in the place of fetch().
async function fetchGiven(url) {
  const name = `${url}`.split("/").pop();
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(given.files[name], { headers: { "content-type": type } });
}

async function start(command, words, files) {
  const decoder = new TextDecoder();
  let said = "";
  const hear = (bytes) => { if (bytes) said += decoder.decode(bytes, { stream: true }); };
  try {
    return await command(words, files, { stdout: hear, stderr: hear });
  } catch (error) {
    throw new Error(said.trim() || error.message);
  }
}

async function compile(name, source) {
  const { flags, support_flags, link, include } = given;
  const clang = (more, file, text) => start(runClang,
    ["clang", "--target=wasm32", ...flags, ...more, "-I", "include", "-c", file, "-o", "made.o"], { [file]: text, include });
  support ??= (await clang(support_flags, "support.c", given.support))["made.o"];
  const found = /^[ \t]*SEC\(\s*"\.struct_ops(?:\.link)?"\s*\)\s*(?:static\s+)?struct\s+sched_ext_ops\s+(\w+)\s*=/m.exec(source);
  const object = (await clang(found ? [`-DSL_STRUCT_OPS=${found[1]}`] : [], name, source))["made.o"];
  const linked = await start(runLLVM, ["wasm-ld", ...link, "policy.o", "support.o", "-o", "policy.wasm"],
    { "policy.o": object, "support.o": support });
  return { bytes: linked["policy.wasm"], sizes: sizesInObject(object) };
}

// Sizes of the variables that an object file defines for others; see policy/wasm_file.py.
function sizesInObject(bytes) {
  const sizes = {}, read = new NumberReader(bytes, 8);
  const symbol = () => {
    const kind = bytes[read.at++], flags = read.next();
    if (kind === DATA_SYMBOL) {
      const name = read.text();
      if (!(flags & UNDEFINED)) {
        read.next();
        read.next();
        sizes[name] = read.next();
      }
    } else {
      read.next();
      if (kind !== SECTION_SYMBOL && (!(flags & UNDEFINED) || flags & NAMED)) read.text();
    }
  };
  while (read.at < bytes.length) {
    const section = bytes[read.at++], length = read.next(), end = read.at + length;
    if (section === 0 && read.text() === "linking") {
      read.next();
      while (read.at < end) {
        const kind = bytes[read.at++], size = read.next(), next = read.at + size;
        if (kind === SYMBOL_TABLE) for (let left = read.next(); left > 0; left--) symbol();
        read.at = next;
      }
    }
    read.at = end;
  }
  return sizes;
}

onmessage = async (event) => {
  if (event.data.files) {
    given = event.data;
    return;
  }
  try {
    const made = await compile(event.data.name, event.data.source);
    postMessage({ id: event.data.id, ...made });
  } catch (error) {
    postMessage({ id: event.data.id, error: error.message });
  }
};
