#!/usr/bin/env node
// A telex plugin for Node: one command, one type of task, no dependency.
//
//   telex plugin check ./greet
//
// Messages are read from standard input and written to standard output, as JSON-RPC after a
// Content-Length header. Standard error is for people: use console.error, never console.log.

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";

const NAME = "greet";

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// --- Features ------------------------------------------------------------------------------------

const commands = {
  hello: {
    description: "Say hello.",
    configs: [
      { key: "name", value: "world", type: "string", description: "whom to greet" },
      { key: "loud", value: false, type: "bool", description: "in capitals" },
    ],
    run({ name, loud }) {
      const greeting = `Hello, ${name}!`;
      log("info", loud ? greeting.toUpperCase() : greeting);
    },
  },
};

const tasks = {
  write: {
    description: "Write a file.",
    configs: [
      { key: "path", type: "path", description: "which file" },
      { key: "text", value: "", type: "string", description: "what to write" },
    ],
    validate({ path }) {
      if (typeof path !== "string") throw new Refused(-32050, "path: say which file to write.");
    },
    async run({ path, text }, directory) {
      const file = resolve(directory, path);
      await writeFile(file, text);
      log("info", `wrote ${file}`);
    },
  },
};

// --- The methods ---------------------------------------------------------------------------------

let stage = "stranger"; // then introduced, ready, leaving
const setUp = new Map();

const methods = {
  handshake({ protocol, protocolVersion }) {
    if (protocol !== "rpp" || protocolVersion !== 0) {
      throw new Refused(-32001, "This plugin speaks rpp version 0.");
    }
    stage = "introduced";
    return {
      protocol,
      protocolVersion,
      name: NAME,
      version: "1",
      description: "Greets, and writes files.",
      commands: Object.entries(commands).map(([name, { description, configs }]) => ({
        name,
        usage: name,
        description,
        configs,
      })),
      tasks: Object.entries(tasks).map(([type, { description, configs }]) => ({
        type,
        description,
        configs,
      })),
    };
  },
  initialize() {
    stage = "ready";
    return {};
  },
  setupCommand({ name, config }) {
    command(name);
    setUp.set(name, config);
    return {};
  },
  async runCommand({ name, config }) {
    const { configs, run } = command(name);
    const values = { ...valuesOf(configs, setUp.get(name)), ...given(config) };
    setUp.delete(name);
    await failingWith(-32004, () => run(values));
    return {};
  },
  validateTask({ type, config }) {
    const { configs, validate } = task(type);
    validate(valuesOf(configs, config));
    return {};
  },
  async runTask({ type, dir, config }) {
    const { configs, validate, run } = task(type);
    const values = valuesOf(configs, config);
    validate(values);
    await failingWith(-32005, () => run(values, dir ?? "."));
    return {};
  },
  shutdown() {
    stage = "leaving";
    return {};
  },
};

function command(name) {
  if (!Object.hasOwn(commands, name ?? "")) throw new Refused(-32002, "There is no such command.");
  return commands[name];
}

function task(type) {
  if (!Object.hasOwn(tasks, type ?? "")) throw new Refused(-32602, "There is no such type of task.");
  return tasks[type];
}

async function failingWith(code, work) {
  try {
    await work();
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(code, error.message);
  }
}

const given = (config) =>
  Object.fromEntries((config ?? []).filter((e) => e.value != null).map((e) => [e.key, e.value]));
const valuesOf = (configs, config) => ({
  ...Object.fromEntries(configs.map((entry) => [entry.key, entry.value])),
  ...given(config),
});

// --- Messages ------------------------------------------------------------------------------------

async function receive(text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return fail(null, -32700, "This is not JSON.");
  }
  const { jsonrpc, id, method, params } = Object(message);
  if (method == null && jsonrpc === "2.0" && ("result" in message || "error" in message)) return;
  const isId = id == null || typeof id === "string" || Number.isInteger(id);
  if (jsonrpc !== "2.0" || typeof method !== "string" || !isId) {
    return fail(isId ? (id ?? null) : null, -32600, "This is not a message.");
  }
  if (method === "exit") process.exit(stage === "leaving" ? 0 : 1);
  if (id == null) return; // a notification that we do not know
  try {
    send({ id, result: await answer(method, params ?? {}) });
  } catch (error) {
    fail(id, error.code ?? -32603, error.message);
  }
}

function answer(method, params) {
  if (stage === "leaving") throw new Refused(-32803, "The plugin is shutting down.");
  if (!Object.hasOwn(methods, method)) throw new Refused(-32601, "There is no such method.");
  const needed = { handshake: "", shutdown: "", initialize: "introduced" }[method] ?? "ready";
  if (needed && stage !== needed && stage !== "ready") {
    throw new Refused(-32802, "The plugin has not been initialised.");
  }
  return methods[method](params);
}

function send(message) {
  const content = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`);
}

function fail(id, code, message) {
  send({ id, error: { code: Number.isInteger(code) ? code : -32603, message } });
}

function log(level, msg) {
  send({ method: "log", params: { level, msg } });
}

// --- Frames --------------------------------------------------------------------------------------

let buffered = Buffer.alloc(0);
let missing = 0; // bytes until it is worth looking again
const chunks = [];

process.stdin.on("data", (chunk) => {
  chunks.push(chunk);
  missing -= chunk.length;
  if (missing > 0) return;
  buffered = Buffer.concat([buffered, ...chunks.splice(0)]);
  missing = 0;
  for (;;) {
    const end = buffered.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = /^content-length:\s*(\d+)\s*$/im.exec(buffered.toString("latin1", 0, end))?.[1];
    const begin = end + 4;
    const stop = begin + Number(length ?? 0);
    if (buffered.length < stop) {
      missing = stop - buffered.length;
      return;
    }
    const content = buffered.toString("utf8", begin, stop);
    buffered = buffered.subarray(stop);
    if (length === undefined) fail(null, -32700, "This header has no Content-Length.");
    else void receive(content);
  }
});
process.stdin.on("end", () => process.exit(0)); // the host has disconnected
