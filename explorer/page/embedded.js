/** Answers from the file that the page is in (explorer/offline/exported.py), in place of a server's. */

import { carrier, Refused, unpack } from "./data.js";
import { EmbeddedHistory } from "./embeddedhistory.js";
import { EmbeddedTables } from "./embeddedtables.js";
import { saveLinks } from "./saving.js";

const PART = 100; // messages at once, as the server's
const file = globalThis.exportedRun;

async function read(key) {
  const place = file.index[key];
  if (place === undefined) throw new Refused("This is not in the exported file.", "LeftOut");
  if (typeof place === "string") throw new Refused(place, "UseError");
  return file.read(key);
}

const readJson = async (key) => JSON.parse(new TextDecoder().decode(await read(key)));
const readArrays = async (key) => unpack(await read(key));

/** What is read once. */
function once(made) {
  let found = null;
  return () => (found ??= made());
}

const facts = once(() => readJson("facts"));
const columns = (name, block) => readArrays(`column ${block} ${name}`);
const history = once(async () => new EmbeddedHistory(await facts(), await readArrays("history"), columns));
const tables = once(async () => new EmbeddedTables(await facts(), await readJson("tables"), (name) => readArrays(`table ${name}`)));
const allMessages = once(() => readArrays("messages"));

/** The messages that a query names, by their places in the file. */
async function messages(query) {
  const { meta, ...table } = await allMessages();
  const text = (query.get("text") ?? "").toLowerCase();
  const isWanted = (row) => ["topic", "publisher"].every((name) =>
    !query.has(name) || table[name][row] === Number(query.get(name)))
    && (!text || meta.names[row].toLowerCase().includes(text));
  const by = table[query.get("by")], sign = query.has("down") ? -1 : 1;
  // Unknown values come last.
  const order = (a, b) => Number.isNaN(by[a]) - Number.isNaN(by[b]) || sign * (by[a] - by[b]) || a - b;
  const rows = meta.names.map((_, row) => row).filter(isWanted).sort(order);
  const first = Number(query.get("first"));
  const shown = rows.slice(first, first + PART);
  return {
    meta: { total: rows.length, first, names: shown.map((row) => meta.names[row]) },
    ...Object.fromEntries(Object.entries(table).map(([name, values]) => [name, shown.map((row) => values[row])])),
  };
}

async function coverage(query) {
  if (query.has("publisher") || query.has("text")) {
    throw new Refused("An exported file has the coverage of all of its messages and of each topic, but not of "
      + "a publisher or a part of a name.", "LeftOut");
  }
  const along = query.get("along"), asked = query.get("topic") ?? "";
  const { exported } = await facts();
  const all = await readArrays(`coverage ${along} `);
  if (asked === "" || asked === String(exported.topic)) return all;
  if ((await allMessages()).topic.includes(Number(asked))) return readArrays(`coverage ${along} ${asked}`);
  const none = [];
  return {
    meta: { ...all.meta, messages: 0, left_out: 0, sampled: 0, names: none },
    at: none, quantiles: none, start: [0], line_at: none, line_share: none,
  };
}

async function message(query) {
  const found = await readArrays(`message ${query.get("message")}`);
  const { beside } = found.meta;
  found.meta.beside = beside.map((m) => (`message ${m}` in file.index ? m : null));
  return found;
}

/** Columns of one thing, as the server has them: one after the other. */
const curves = (curve) => async (query) => {
  const all = await Promise.all(query.getAll("name").map((name) => curve(query, name)));
  return { values: Float64Array.from(all.flatMap((values) => [...values])) };
};

const peerCurve = async (query, name) => (await history()).peerCurve(Number(query.get("peer")), name);

async function topicCurve(query, name) {
  const topic = Number(query.get("topic"));
  const isOfTopic = (columns, row) => columns.get("topic")[row] === topic;
  return (await tables()).curve("metrics/topics", name, isOfTopic);
}

/** As explorer/columns.py counts them. */
async function linkCurve(query, name) {
  const [src, dst] = ["src", "dst"].map((name) => Number(query.get(name)));
  const isWanted = (columns, row) => {
    const [source, target] = ["previous_hop", "peer"].map((name) => columns.get(name)[row]);
    return ((source === src && target === dst) || (source === dst && target === src))
      && (name !== "first_copies" || columns.get("first")[row]);
  };
  return (await tables()).count("receptions", isWanted);
}

const ANSWERS = {
  "": facts,
  overlay: async (query) => (await history()).overlay(query),
  "places/force": () => readArrays("places force"),
  "places/circle": () => readArrays("places circle"),
  column: (query) => columns(query.get("name"), query.get("block")),
  extent: (query) => readJson(`extent ${query.get("name")}`),
  curve: (query) => readArrays(`curve ${query.get("name")}`),
  peer: async (query) => (await history()).peer(query),
  "peer/curves": curves(peerCurve),
  "topic/curves": curves(topicCurve),
  "link/curves": curves(linkCurve),
  tables: async () => (await tables()).described,
  rows: async (query) => (await tables()).rows(query),
  path: async (query) => (await history()).path(query),
  messages, coverage, message,
  missed: (query) => readJson(`missed ${query.get("message")}`),
};

/** What a path asks for, as data.js asks a server: api/runs/RUN/WHAT?QUERY. */
function parse(path) {
  const [address, query] = path.split("?", 2);
  return [address.split("/").slice(3).join("/"), new URLSearchParams(query)];
}

async function answer(path, signal) {
  const [what, query] = parse(path);
  if (!Object.hasOwn(ANSWERS, what)) throw new Refused("This is not in the exported file.", "LeftOut");
  const found = await ANSWERS[what](query);
  signal?.throwIfAborted();
  return found;
}

Object.assign(carrier, {
  run: file.index.run, screens: ["overlay", "messages", "message", "tables", "peer", "topic", "link"],
  json: answer, arrays: answer,
  views: async () => ("views" in file.index ? new TextDecoder().decode(await read("views")) : null),
});

saveLinks(async (path) => {
  const [, query] = parse(path);
  const name = `${file.index.run}-${query.get("table").replaceAll("/", "-")}.csv`;
  return { name, blob: new Blob([await (await tables()).csv(query)], { type: "text/csv" }) };
});
