/** An overlay through time: which peers and pairs there are at a moment, and who is whose neighbour. */

import { upTo } from "./time.js";

export const FAR = 65535; // hops to a peer that is not reached

/**
 * Rows with a begin and an end, in ranks, and a key; ordered by key and begin, and those of a key do not
 * overlap. A moment has the ranks of its begin and end, `first` and `last`, which are the same without
 * a window.
 */
class Periods {
  constructor(begin, end, keyOf) {
    this.begin = begin;
    this.end = end;
    this._keyOf = keyOf;
    this._begins = begin.slice().sort();
    this._ends = end.slice().sort();
  }

  /** The number of keys that hold at a moment. */
  count(moment) {
    const { first, last } = moment;
    if (first === last) return upTo(this._begins, last) - upTo(this._ends, first);
    let count = 0;
    for (let row = 0; row < this.begin.length; row++) count += this.isFirst(row, moment);
    return count;
  }

  holds(row, { first, last }) {
    return this.begin[row] <= last && this.end[row] > first;
  }

  /** Whether this is the first row of its key that holds at a moment. */
  isFirst(row, moment) {
    if (!this.holds(row, moment)) return false;
    return !(row > 0 && this._keyOf(row) === this._keyOf(row - 1) && this.holds(row - 1, moment));
  }

  /** The rank of the next begin or end after a rank, or of the last one up to it. */
  change(rank, forward) {
    const places = [this._begins, this._ends].map((ranks) => ranks[upTo(ranks, rank) - (forward ? 0 : 1)]);
    const changes = places.filter((place) => place !== undefined);
    return changes.length ? (forward ? Math.min : Math.max)(...changes) : null;
  }
}

export class Overlay {
  constructor({
    times, peer, peer_begin, peer_end, subscriber, subscriber_begin, subscriber_end, src, dst, pair_begin, pair_end,
  }, size) {
    this.size = size;
    this.times = times;
    this.peer = peer;
    this.peers = new Periods(peer_begin, peer_end, (row) => peer[row]);
    this._subscriber = subscriber; // only where relays are shown beside them
    this._subscribers = new Periods(subscriber_begin ?? new Int32Array(), subscriber_end ?? new Int32Array());
    this.knowsLinks = src !== undefined;
    this.src = src ?? new Int32Array();
    this.dst = dst ?? new Int32Array();
    this.pairs = new Periods(pair_begin ?? new Int32Array(), pair_end ?? new Int32Array(),
      (row) => src[row] * size + dst[row]);
  }

  /** The rank of a tick: what holds then has begin <= rank < end. */
  rank(tick) {
    return upTo(this.times, tick) - 1;
  }

  /** A tick, or all of the time (tick − window, tick]. */
  moment(tick, window = 0) {
    return { first: this.rank(tick - window), last: this.rank(tick) };
  }

  /** The tick of the next change after a tick, or of the one before it; null = there is none. */
  change(tick, forward) {
    const rank = this.rank(forward ? tick : tick - 1);
    const changes = [this.peers, this.pairs].map((periods) => periods.change(rank, forward))
      .filter((place) => place !== null);
    return this.times[(forward ? Math.min : Math.max)(...changes)] ?? null;
  }

  /** Whether each peer is there at a moment; a byte for each peer of the run. */
  present(moment) {
    return holding(this.peer, this.peers, moment, this.size);
  }

  /** Whether each peer is there as a relay at a moment; null = relays are not shown. */
  relays(moment) {
    if (!this._subscriber) return null;
    const subscribed = holding(this._subscriber, this._subscribers, moment, this.size);
    return this.present(moment).map((isThere, peer) => isThere && !subscribed[peer]);
  }

  /** Neighbours of all peers at a moment, over links in either direction; one may come twice. */
  adjacency(moment) {
    const { src, dst, pairs, size } = this;
    const start = new Uint32Array(size + 1);
    const rows = [];
    for (let row = 0; row < src.length; row++) {
      if (!pairs.isFirst(row, moment)) continue;
      rows.push(row);
      start[src[row] + 1]++;
      start[dst[row] + 1]++;
    }
    for (let v = 0; v < size; v++) start[v + 1] += start[v];
    const place = start.slice(0, size);
    const other = new Uint32Array(2 * rows.length);
    for (const row of rows) {
      other[place[src[row]]++] = dst[row];
      other[place[dst[row]]++] = src[row];
    }
    return { start, other };
  }

  /** The peers linked to a peer at a moment: number → whether it has a link out, and one in. */
  neighbours(peer, moment) {
    const found = new Map();
    const at = (other) => found.get(other) ?? found.set(other, { out: false, in: false }).get(other);
    for (let row = 0; row < this.src.length; row++) {
      if (!this.pairs.holds(row, moment)) continue;
      if (this.src[row] === peer) at(this.dst[row]).out = true;
      else if (this.dst[row] === peer) at(this.src[row]).in = true;
    }
    return found;
  }

  /** Rows of the distinct pairs at a moment for which `isWanted(src, dst)`. */
  rowsOf(moment, isWanted) {
    const rows = [];
    for (let row = 0; row < this.src.length; row++) {
      if (isWanted(this.src[row], this.dst[row]) && this.pairs.isFirst(row, moment)) rows.push(row);
    }
    return rows;
  }

  /**
   * The components of the peers at a moment, over links in either direction: `of` has for each peer
   * the number of its component, -1 where it is not there; `sizes` their numbers of peers.
   */
  components(moment) {
    const { src, dst, pairs, size } = this;
    const parent = Int32Array.from({ length: size }, (_, peer) => peer);
    const root = (peer) => {
      while (parent[peer] !== peer) peer = parent[peer] = parent[parent[peer]];
      return peer;
    };
    for (let row = 0; row < src.length; row++) {
      if (pairs.holds(row, moment)) parent[root(src[row])] = root(dst[row]);
    }
    const of = new Int32Array(size).fill(-1), sizes = [];
    const present = this.present(moment);
    for (let peer = 0; peer < size; peer++) {
      if (!present[peer]) continue;
      const top = root(peer);
      if (of[top] < 0) of[top] = sizes.push(0) - 1;
      of[peer] = of[top];
      sizes[of[peer]]++;
    }
    return { of, sizes };
  }
}

/** A byte for each peer: whether a period of it holds at a moment. */
function holding(peers, periods, moment, size) {
  const isThere = new Uint8Array(size);
  for (let row = 0; row < peers.length; row++) {
    if (periods.holds(row, moment)) isThere[peers[row]] = 1;
  }
  return isThere;
}

/** Hops from a peer over links in either direction, up to `most`; FAR = further, or none. */
export function hops({ start, other }, peer, most = FAR - 1) {
  const found = new Uint16Array(start.length - 1).fill(FAR);
  found[peer] = 0;
  let reached = [peer];
  for (let hop = 1; reached.length && hop <= most; hop++) {
    const next = [];
    for (const v of reached) {
      for (let k = start[v]; k < start[v + 1]; k++) {
        if (found[other[k]] !== FAR) continue;
        found[other[k]] = hop;
        next.push(other[k]);
      }
    }
    reached = next;
  }
  return found;
}

/** The number of neighbours of each peer. */
export function degrees({ start, other }) {
  const size = start.length - 1;
  const counts = new Uint32Array(size), counted = new Int32Array(size).fill(-1);
  for (let v = 0; v < size; v++) {
    for (let k = start[v]; k < start[v + 1]; k++) {
      if (counted[other[k]] === v) continue;
      counted[other[k]] = v;
      counts[v]++;
    }
  }
  return counts;
}
