/**
 * A message: its copies along a clock. The clock's places are µs since the publication, or
 * thousandths of a hop. A copy moves from when its sender had the one that it passed on to when it
 * arrived: sending times are unknown.
 */

import { upTo } from "./time.js";

export const ROLES = ["publisher", "subscriber", "relay", "peer", "missed"];
export const FIRST = 0;
export const DUPLICATE = 1;
export const REFUSED = 2;
export const HOP = 1000; // places of the clock between two hops

export class Message {
  constructor({ meta, ...arrays }) {
    this.facts = meta;
    const { copy_from, copy_to, refused_from, refused_to } = arrays;
    this.size = copy_to.length + refused_to.length;
    this.copies = copy_to.length;
    this.from = joined(Int32Array, copy_from, refused_from);
    this.to = joined(Int32Array, copy_to, refused_to);
    this.time = joined(Float64Array, arrays.copy_time_us, arrays.refused_time_us);
    this.hop = joined(Int32Array, arrays.copy_hop, new Int32Array(refused_to.length).fill(-1));
    this.held = arrays.copy_held; // the copy that its sender passed on; -1 = the sender's first
    this.relayed = joined(Uint8Array, arrays.copy_subscribed, new Uint8Array(refused_to.length).fill(2))
      .map((subscribed) => (subscribed === 0 ? 1 : 0));
    this.kind = Uint8Array.from({ length: this.size }, (_, i) =>
      i >= this.copies ? REFUSED : arrays.copy_first[i] ? FIRST : DUPLICATE);
    this.why = (i) => (i < this.copies ? "" : meta.reasons[arrays.refused_why[i - this.copies]]);
    const { peer_peer, peer_role, peer_hop, peer_duplicates, peer_eligible, peer_row } = arrays;
    this.peers = Array.from(peer_peer, (peer, i) => ({
      peer, role: ROLES[peer_role[i]], hop: peer_hop[i], duplicates: peer_duplicates[i],
      eligible: peer_eligible[i] === 1, rendezvous: arrays.peer_rendezvous[i] === 1, row: peer_row[i],
    }));
    /** The later copies that were passed on: their receivers stand again in columns by hop. */
    this.again = Array.from(arrays.copy_row, (row, copy) => ({ copy, row, hop: this.hop[copy] }))
      .filter(({ row }) => !Number.isNaN(row));
    this.place = new Map(this.peers.map(({ peer }, i) => [peer, i]));
    this.missed = this.peers.filter(({ role }) => role === "missed");
    this.hops = Math.max(0, ...this.peers.map(({ hop }) => hop));
    this.timed = this.time.some((time) => !Number.isNaN(time));
    this._arrays = arrays;
    this._ways = {};
  }

  /** Its copies along "delay" or "hop". */
  along(by) {
    this._ways[by] ??= new Way(this, by, {
      at: this._arrays[`${by}_at`].map((at) => (by === "hop" ? at * HOP : at)),
      delivered: this._arrays[`${by}_delivered`],
    });
    return this._ways[by];
  }
}

const joined = (Type, one, other) => {
  const found = new Type(one.length + other.length);
  found.set(one);
  found.set(other, one.length);
  return found;
};

/** The copies of a message in the order in which they arrive, along one clock. */
class Way {
  constructor(message, by, reached) {
    this.message = message;
    this.by = by;
    this.reached = reached;
    const { publisher, published_us } = message.facts;
    const known = message.time.filter((time) => !Number.isNaN(time));
    this.sincePublication = published_us !== null;
    this.origin = published_us ?? known.reduce((least, time) => Math.min(least, time), Infinity);
    const arrived = by === "hop" ? this._byHop() : message.time.map((time) => time - this.origin);
    /** When each peer first had it; NaN = unknown. */
    this.had = new Float64Array(message.peers.length).fill(NaN);
    for (let i = 0; i < message.copies; i++) {
      if (message.kind[i] === FIRST) this.had[message.place.get(message.to[i])] = arrived[i];
    }
    if (message.place.has(publisher)) this.had[message.place.get(publisher)] = 0;
    this.left = Float64Array.from(message.from, (from, i) =>
      from < 0 ? NaN : message.held[i] >= 0 ? arrived[message.held[i]] : this.had[message.place.get(from)]);
    if (by === "hop") this._refusedByHop(arrived);
    const sure = arrived.filter((at) => !Number.isNaN(at));
    this.first = Math.min(0, ...extreme(sure, Math.min));
    this.last = Math.max(1, ...extreme(sure, Math.max));
    this.unknown = message.size - sure.length; // drawn at the end
    this.at = arrived.map((at) => (Number.isNaN(at) ? this.last : at));
    this.order = Uint32Array.from(this.at.keys()).sort((a, b) => this.at[a] - this.at[b] || a - b);
    this.moments = Float64Array.from(this.order, (i) => this.at[i]);
    this._left();
    this._totals();
  }

  _byHop() {
    const { hop } = this.message;
    return Float64Array.from(hop, (count) => (count < 0 ? NaN : count * HOP));
  }

  /** A refusal has no hop: it is one on from its sender. */
  _refusedByHop(arrived) {
    for (let i = this.message.copies; i < this.message.size; i++) arrived[i] = this.left[i] + HOP;
  }

  /** Copies that cannot be drawn on their way: nobody knows since when, or they came before that. */
  _left() {
    this.unsent = this.early = 0;
    this.left.forEach((left, i) => {
      if (Number.isNaN(left)) this.unsent++;
      else if (left > this.at[i]) this.early++;
    });
  }

  /** How many copies of each kind, and relays, there were after each. */
  _totals() {
    const { kind, relayed } = this.message;
    this._counts = [FIRST, DUPLICATE, REFUSED].map(() => new Uint32Array(this.order.length + 1));
    this._relays = new Uint32Array(this.order.length + 1);
    this.order.forEach((copy, i) => {
      this._counts.forEach((counts, of) => (counts[i + 1] = counts[i] + (kind[copy] === of ? 1 : 0)));
      this._relays[i + 1] = this._relays[i] + (relayed[copy] && kind[copy] === FIRST ? 1 : 0);
    });
  }

  /** How many copies had arrived at a place of the clock. */
  count(at) {
    return upTo(this.moments, at);
  }

  /** What had happened at a place of the clock. */
  counts(at) {
    const rank = this.count(at);
    const [first, duplicate, refused] = this._counts.map((counts) => counts[rank]);
    const { at: reached, delivered } = this.reached;
    const place = upTo(reached, at);
    return {
      first, duplicate, refused, relays: this._relays[rank], flying: this.flying(at).length,
      delivered: reached.length ? (place ? delivered[place - 1] : 0) : null,
    };
  }

  /** Copies that are on their way, as far as is known. */
  flying(at) {
    const found = [];
    for (let rank = this.count(at); rank < this.order.length; rank++) {
      const i = this.order[rank];
      if (this.left[i] <= at) found.push(i);
    }
    return found;
  }

  /** How much of its way a copy has made, 0 to 1. */
  made(i, at) {
    return (at - this.left[i]) / (this.at[i] - this.left[i]);
  }

  /** The place of the next arrival after a place, or of the one before it; null = there is none. */
  change(at, forward) {
    const rank = forward ? this.count(at) : upTo(this.moments, at - 1) - 1;
    return this.moments[rank] ?? null;
  }

  /** Where shares of the eligible peers were reached: [share, place], null = never. */
  marks(shares = [0.5, 0.9, 0.99]) {
    const { at, delivered } = this.reached, { eligible } = this.message.facts.figures;
    if (!at.length || !eligible) return [];
    return shares.map((share) => {
      const place = delivered.findIndex((count) => count >= share * eligible - 1e-9);
      return [share, place < 0 ? null : at[place]];
    });
  }
}

/** The least or the largest of many values, in a list; of none, none. */
const extreme = (values, of) =>
  values.length ? [values.reduce((found, value) => of(found, value))] : [];
