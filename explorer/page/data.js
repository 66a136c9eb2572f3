/** What the server, the file of an exported run or a notebook's kernel answers: facts as JSON, tables
 * as typed arrays without an object per row. */

import { merge } from "./changes.js";

const TYPES = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array,
  uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array,
};

/** An answer that is an error, in the words of the server. */
export class Refused extends Error {
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

async function fetched(path, signal, post = {}) {
  let answer;
  try {
    answer = await carrier.fetch(path, { signal, ...post });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is vizpub explore still running?", "Gone");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  if (told.kind === "RunChanged") {
    throw new Refused("This run was appended to or replaced: reload the page.", told.kind);
  }
  throw new Refused(told.error ?? `The server answered ${answer.status}.`, told.kind);
}

/** Who answers: a server. An exported file puts itself in its place (embedded.js), and names its `run`
 * and the `screens` that it has; a server has all. In a notebook, the kernel replaces `fetch` (kernel.js). */
export const carrier = {
  run: null,
  screens: null,
  fetch: (path, options) => fetch(path, options),
  /** The text of the views that an exported file brings along. */
  views: async () => null,
  json: async (path, signal, post) => (await fetched(path, signal, post)).json(),
  arrays: async (path, signal) => unpack(await (await fetched(path, signal)).arrayBuffer()),
};

const json = (path, signal, post) => carrier.json(path, signal, post);
const arrays = (path, signal) => carrier.arrays(path, signal);

/** Meta and arrays of a packed answer (explorer/packing.py); the arrays share its memory. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = Object.fromEntries(
    header.arrays.map(({ name, type, offset, length: size }) => [
      name, new TYPES[type](buffer, offset, size),
    ]),
  );
  return { meta: header.meta, ...arrays };
}

/** All runs of the workspace. */
export const runs = () => json("api/runs");

/** One run; every question but the first is of the run as it was then. */
export class Run {
  /** The run, or some of its intervals, as "10-20"; the same one until two others are opened, or it is
   * forgotten. */
  static async open(name, intervals = null) {
    const root = `api/runs/${encodeURIComponent(name)}`, part = intervals ? { intervals } : {};
    const isIt = (one) => one._root === root && one._part.intervals === part.intervals;
    const run = Run._opened.find(isIt) ?? new Run(root, part, await json(`${root}?${new URLSearchParams(part)}`));
    Run._opened = [run, ...Run._opened.filter((one) => !isIt(one))].slice(0, 2);
    return run;
  }

  static _opened = [];

  /** The next `open` asks what a run is by then. */
  static forget() {
    Run._opened = [];
  }

  /** How far the run is now, which may be collected. */
  state() {
    return json(`${this._root}/state`);
  }

  /** Take in what was collected since. Facts, names and clock change in their places. */
  async refresh() {
    const since = new URLSearchParams({ since: this.facts.identity, ...this._part });
    const { clock, known, peers, topics, ...facts } = await json(`${this._root}?${since}`);
    Object.assign(this.clock, clock);
    [[this.facts.peers, peers], [this.facts.topics, topics]].forEach(([names, more], i) => {
      names.length = known[i];
      for (const name of more) names.push(name);
    });
    Object.assign(this.facts, facts);
    this._columns.clear();
    this._curves.clear();
    this._tables = null;
  }

  /** Ask a peer to "leave" or "join": what became of it once it has answered. */
  async tell(peer, action) {
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ peer, action }) };
    let told = await json(`${this._root}/commands`, undefined, post);
    while (told.state === "queued") {
      await new Promise((resolve) => setTimeout(resolve, 300));
      told = await json(`${this._root}/commands/${told.id}`);
    }
    return told;
  }

  constructor(root, part, facts) {
    this.facts = facts;
    this.clock = facts.clock;
    this._root = root;
    this._part = part;
    this._columns = new Map();
    this._curves = new Map();
  }

  _path(what, query = {}) {
    const asked = new URLSearchParams({ of: this.facts.identity, ...this._part });
    for (const [key, value] of Object.entries(query)) {
      for (const one of [value].flat()) asked.append(key, one);
    }
    return `${this._root}/${what}?${asked}`;
  }

  /** Periods of peers and pairs, of some layers and topics, with or without relays of these. */
  async overlay({ layers, topics, how, relays }, signal) {
    const query = { topic: topics, how, relays, ...(layers ? { layer: layers } : {}) };
    const { identity } = this.facts, part = JSON.stringify(query), old = this._overlay;
    const isGrown = old?.part === part && old.identity !== identity;
    const { meta, ...answer } = await arrays(
      this._path("overlay", isGrown ? { ...query, since: old.identity } : query), signal);
    const whole = isGrown && meta.changes ? merge(old.answer, answer) : answer;
    this._overlay = { part, identity, answer: whole };
    return whole;
  }

  places(layout, signal) {
    return arrays(this._path(`places/${layout}`), signal).then((found) => found.places);
  }

  /** A column of peers. */
  column(name) {
    if (!this._columns.has(name)) this._columns.set(name, new Column(this, name));
    return this._columns.get(name);
  }

  /** A column of the overlay, interval by interval. */
  curve(name) {
    if (!this._curves.has(name)) {
      const found = arrays(this._path("curve", { name })).then((answer) => answer.values);
      found.catch(() => this._curves.delete(name));
      this._curves.set(name, found);
    }
    return this._curves.get(name);
  }

  peer(peer, tick, signal) {
    return json(this._path("peer", { peer, tick }), signal);
  }

  /** Columns of one "peer", "topic" or "link", which `numbers` name, each interval by interval. */
  async curvesOf(kind, numbers, names, signal) {
    const { values } = await arrays(this._path(`${kind}/curves`, { ...numbers, name: names }), signal);
    const length = values.length / names.length;
    return names.map((_, i) => values.subarray(i * length, (i + 1) * length));
  }

  /** A part of the messages, of a topic, a publisher or with this in their names, in an order. */
  messages({ by, down, first, ...wanted }, signal) {
    const query = { ...asked(wanted), by, first, ...(down ? { down: "true" } : {}) };
    return arrays(this._path("messages", query), signal);
  }

  /** How these messages reached their eligible peers, along "delay" or "hop". */
  coverage(wanted, along, signal) {
    return arrays(this._path("coverage", { ...asked(wanted), along }), signal);
  }

  /** The way of a message, and who missed it. */
  message(message, signal) {
    return arrays(this._path("message", { message }), signal);
  }

  missed(message, signal) {
    return json(this._path("missed", { message }), signal);
  }

  /** The tables of the run, with their columns. */
  tables() {
    this._tables ??= json(this._path("tables"));
    return this._tables;
  }

  /** A part of the rows of a table. */
  rows(query, signal) {
    return json(this._path("rows", ofRows(query)), signal);
  }

  /** The address of all rows as CSV. */
  csv({ first, ...query }) {
    return this._path("rows.csv", ofRows(query));
  }

  path(from, to, tick, layers, signal) {
    const query = { from, to, tick, ...(layers ? { layer: layers } : {}) };
    return json(this._path("path", query), signal);
  }
}

/** What is known of a question. */
const asked = (query) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null && value !== ""));

const ofRows = ({ down, ...query }) => ({ ...asked(query), ...(down ? { down: "true" } : {}) });

const KEPT_BLOCKS = 6;

/** A metric of peers, fetched in blocks of intervals. */
class Column {
  constructor(run, name) {
    this.run = run;
    this.name = name;
    this._blocks = new Map();
    this._extent = null;
  }

  /** The least and the largest value in the run. */
  extent() {
    if (!this._extent) {
      this._extent = json(this.run._path("extent", { name: this.name }));
      this._extent.catch(() => (this._extent = null));
    }
    return this._extent;
  }

  _block(number) {
    if (!this._blocks.has(number)) {
      const held = { found: null };
      held.promise = arrays(this.run._path("column", { name: this.name, block: number })).then(
        (found) => (held.found = found),
      );
      held.promise.catch(() => this._blocks.delete(number));
      this._blocks.set(number, held);
      for (const old of [...this._blocks.keys()].slice(0, -KEPT_BLOCKS)) this._blocks.delete(old);
    }
    return this._blocks.get(number);
  }

  /**
   * Values of all peers in an interval, and their ends; null while they are on their way. `later`
   * is called when they have come, `failed(error)` if they do not. The next block is asked for too.
   */
  at(interval, later, failed = () => {}) {
    const { first, last } = this.run.clock;
    const size = this.run.facts.block;
    const number = Math.floor((interval - first) / size);
    if (first + (number + 1) * size <= last) this._block(number + 1);
    const held = this._block(number);
    if (!held.found) {
      held.promise.then(later, failed);
      return null;
    }
    const { values, low, high } = held.found;
    const row = interval - first - number * size;
    const peers = values.length / low.length;
    return {
      values: values.subarray(row * peers, (row + 1) * peers), low: low[row], high: high[row],
    };
  }
}
