/** What a server computes for each question, computed from the arrays of an exported file. */

import { Refused } from "./data.js";
import { Overlay } from "./overlaydata.js";
import { common, shared, united } from "./periods.js";
import { intervalOf } from "./time.js";

const NONE = -1;

export class EmbeddedHistory {
  /** `columns(name, block)` gives values of peers. */
  constructor(facts, { meta, ...arrays }, columns) {
    this._facts = facts;
    this._meta = meta;
    this._arrays = arrays;
    this._columns = columns;
    this._size = facts.peers.length;
    this._latest = null;
  }

  /** Periods of peers and pairs, as the server packs them. */
  overlay(query) {
    const { topic } = this._facts.exported, topics = topic === null ? query.getAll("topic").map(Number) : [topic];
    const layers = query.has("layer") ? query.getAll("layer") : this._facts.counted;
    const relays = topics.length > 0 && query.get("relays") === "1";
    return this._overlay(layers, topics, query.get("how") === "all", relays);
  }

  _overlay(layers, topics, every, relays) {
    const key = JSON.stringify([layers, topics, every, relays]);
    if (this._latest?.key !== key) this._latest = { key, found: this._find(layers, topics, every, relays) };
    return this._latest.found;
  }

  _find(layers, topics, every, relays) {
    const { times, src } = this._arrays;
    const together = (of) => (every ? shared(of) : united(of));
    const subscribers = topics.map((topic) => this._ofTopic("subscriber", topic));
    const members = !relays ? subscribers
      : topics.map((topic, i) => united([subscribers[i], this._ofTopic("relay", topic)]));
    const peers = topics.length ? together(members) : this._columnsOf("peer", this._arrays.peer);
    const ofPeers = {
      times, ...named("peer", peers), ...(relays ? named("subscriber", together(subscribers)) : {}),
    };
    if (src === undefined) return ofPeers;
    let pairs = united(layers.map((layer) => this._pairs(layer)));
    if (topics.length) {
      pairs = every ? this._within(pairs, peers)
        : united(members.map((of) => this._within(pairs, of)));
    }
    return {
      ...ofPeers,
      src: Int32Array.from(pairs.key, (of) => Math.floor(of / this._size)),
      dst: Int32Array.from(pairs.key, (of) => of % this._size),
      pair_begin: pairs.begin, pair_end: pairs.end,
    };
  }

  _columnsOf(name, key, from = 0, to = key.length) {
    return {
      key: Float64Array.from(key.subarray(from, to)),
      begin: this._arrays[`${name}_begin`].subarray(from, to),
      end: this._arrays[`${name}_end`].subarray(from, to),
    };
  }

  /** The pairs of a layer; rows of a layer are one after the other. */
  _pairs(layer) {
    const { src, dst, layer_start } = this._arrays;
    const place = this._meta.layers.indexOf(layer);
    if (place < 0) throw new Refused(`The layer ${layer} is not in the exported file.`, "LeftOut");
    const [from, to] = layer_start.subarray(place, place + 2);
    const found = this._columnsOf("pair", src, from, to);
    found.key.forEach((of, row) => (found.key[row] = of * this._size + dst[from + row]));
    return found;
  }

  /** Each "subscriber" or "relay" of a topic; rows of a topic are one after the other. */
  _ofTopic(name, topic) {
    const { [name]: peers, [`${name}_start`]: start } = this._arrays;
    return this._columnsOf(name, peers, ...start.subarray(topic, topic + 2));
  }

  /** The parts in which both ends subscribe. */
  _within(pairs, subscribed) {
    const from = common(pairs, subscribed, (key) => Math.floor(key / this._size));
    return common(from, subscribed, (key) => key % this._size);
  }

  /** The values of a peer now, its periods, topics and roles. */
  async peer(query) {
    const [peer, tick] = [Number(query.get("peer")), Number(query.get("tick"))];
    const interval = intervalOf(this._facts.clock, tick);
    return {
      name: this._facts.peers[peer], interval,
      values: await this._values(peer, interval),
      present: this._present(peer), topics: this._topics(peer, tick), roles: this._roles(peer, tick), attributes: this._attributes(peer, tick),
    };
  }

  async _values(peer, interval) {
    const { columns, block, clock } = this._facts;
    const place = interval - clock.first;
    const own = columns.peers.filter(({ name }) => !name.startsWith("attribute:"));
    const values = await Promise.all(own.map(async ({ name }) => {
      const found = await this._columns(name, Math.floor(place / block));
      const value = found.values[(place % block) * this._size + peer];
      if (Number.isNaN(value)) return [name, null];
      return [name, this._meta.flags.includes(name) ? value === 1 : value];
    }));
    return Object.fromEntries(values.filter(([name, value]) => value !== null || !name.startsWith("gauge:")));
  }

  _present(peer) {
    const { present, present_from, present_to } = this._arrays;
    return places(present, (of) => of === peer).map((row) =>
      [present_from[row], Number.isNaN(present_to[row]) ? null : present_to[row]]);
  }

  _topics(peer, tick) {
    const { times, subscriber, subscriber_begin, subscriber_end, subscriber_start } = this._arrays;
    if (!subscriber) return [];
    const rank = new Overlay({ times, peer: subscriber, peer_begin: subscriber_begin, peer_end: subscriber_end },
      this._size).rank(tick);
    return this._meta.topics_by_name.filter((topic) => {
      for (let row = subscriber_start[topic]; row < subscriber_start[topic + 1]; row++) {
        if (subscriber[row] === peer && subscriber_begin[row] <= rank && rank < subscriber_end[row]) return true;
      }
      return false;
    }).map((topic) => this._facts.topics[topic]);
  }

  _roles(peer, tick) {
    const { role, role_peer, role_topic, role_from, role_to } = this._arrays;
    if (!role) return [];
    const holds = (of, row) => of === peer && role_from[row] <= tick && !(role_to[row] <= tick);
    return places(role_peer, holds).map((row) => ({
      role: this._meta.roles[role[row]],
      topic: role_topic[row] === NONE ? null : this._facts.topics[role_topic[row]],
    }));
  }

  _attributes(peer, tick) {
    const { attribute, attribute_value, attribute_peer, attribute_from, attribute_to } = this._arrays;
    if (!attribute) return [];
    const [keys, values] = this._meta.attributes;
    const holds = (of, row) => of === peer && attribute_from[row] <= tick && !(attribute_to[row] <= tick);
    return places(attribute_peer, holds).map((row) => [keys[attribute[row]], values[attribute_value[row]]]);
  }

  /** The values of a peer, interval by interval. */
  async peerCurve(peer, name) {
    const { block, clock } = this._facts;
    const blocks = Math.ceil((clock.last + 1 - clock.first) / block);
    const found = await Promise.all(Array.from({ length: blocks }, (_, i) => this._columns(name, i)));
    return found.flatMap(({ values }) => [...values.filter((_, i) => i % this._size === peer)]);
  }

  /** A shortest path along the links: peers by number, null where there is none, and why. */
  path(query) {
    const [from, to, tick] = ["from", "to", "tick"].map((name) => Number(query.get(name)));
    const layers = query.has("layer") ? query.getAll("layer") : this._facts.counted;
    const { exported: { topic }, knows } = this._facts, topics = topic === null ? [] : [topic];
    const overlay = new Overlay(this._overlay(layers, topics, false, topics.length > 0 && knows.relays), this._size);
    const moment = overlay.moment(tick);
    const present = overlay.present(moment);
    const absent = [from, to].find((peer) => !present[peer]);
    if (absent !== undefined) {
      return { peers: null, why: `${this._facts.peers[absent]} is not shown at this time` };
    }
    return { peers: shortest(overlay, moment, from, to), why: null };
  }
}

/** Periods of peers, as the server names them. */
const named = (name, { key, begin, end }) =>
  ({ [name]: Int32Array.from(key), [`${name}_begin`]: begin, [`${name}_end`]: end });

/** The peers of a shortest path along the links at a moment; null where there is none. */
function shortest({ src, dst, pairs, size }, moment, from, to) {
  const next = Array.from({ length: size }, () => []);
  src.forEach((peer, row) => pairs.holds(row, moment) && next[peer].push(dst[row]));
  const before = new Int32Array(size).fill(NONE);
  before[from] = from;
  for (let reached = [from]; reached.length && before[to] === NONE;) {
    reached = reached.flatMap((peer) => next[peer].filter((other) => {
      if (before[other] !== NONE) return false;
      before[other] = peer;
      return true;
    }));
  }
  if (before[to] === NONE) return null;
  const path = [to];
  while (path[0] !== from) path.unshift(before[path[0]]);
  return path;
}

/** The places of an array that are wanted. */
function places(array, wanted) {
  const found = [];
  array.forEach((value, place) => wanted(value, place) && found.push(place));
  return found;
}
