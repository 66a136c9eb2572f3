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
    this._begins = begin.slice().sort();
    this._ends = end.slice().sort();
    this._isAgain = Uint8Array.from(begin, (_, row) => row > 0 && keyOf(row) === keyOf(row - 1)); // has the key of the row before
    this._again = Uint32Array.from(this._isAgain.keys()).filter((row) => this._isAgain[row]);
  }

  /** The number of keys that hold at a moment. */
  count({ first, last }) {
    const { begin, end } = this;
    let count = upTo(this._begins, last) - upTo(this._ends, first);
    if (first === last) return count;
    for (const row of this._again) count -= begin[row] <= last && end[row - 1] > first;
    return count;
  }

  holds(row, { first, last }) {
    return this.begin[row] <= last && this.end[row] > first;
  }

  /** The rows that hold at a moment, the first of each key, ascending: in memory that the next moment overwrites,
   * as new memory takes time. */
  firsts({ first, last }) {
    if (this._first === first && this._last === last) return this._firsts;
    const { begin, end, _isAgain: isAgain } = this, rows = (this._found ??= new Uint32Array(begin.length));
    let count = 0;
    for (let row = 0; row < begin.length; row++) {
      if (begin[row] <= last && end[row] > first && !(isAgain[row] && end[row - 1] > first)) rows[count++] = row;
    }
    [this._first, this._last] = [first, last];
    return (this._firsts = rows.subarray(0, count));
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
    left_out,
  }, size) {
    this.size = size;
    this.times = times;
    this.peer = peer;
    this.peers = new Periods(peer_begin, peer_end, (row) => peer[row]);
    this._subscriber = subscriber; // only where relays are shown beside them
    this._subscribers = new Periods(subscriber_begin ?? new Int32Array(), subscriber_end ?? new Int32Array(),
      (row) => subscriber[row]);
    this.leftOut = left_out ?? null; // of links: their number, the most, and how many intervals leave no more
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

  /** Whether each of the peers that are `present` at a moment is a relay; null = relays are not shown. */
  relays(moment, present) {
    if (!this._subscriber) return null;
    const subscribed = holding(this._subscriber, this._subscribers, moment, this.size);
    return present.map((isThere, peer) => isThere && !subscribed[peer]);
  }

  /** Neighbours of all peers at a moment, over links in either direction; one may come twice. */
  adjacency(moment) {
    const { src, dst, size } = this, rows = this.pairs.firsts(moment);
    const start = new Uint32Array(size + 1);
    for (let i = 0; i < rows.length; i++) {
      start[src[rows[i]] + 1]++;
      start[dst[rows[i]] + 1]++;
    }
    for (let v = 0; v < size; v++) start[v + 1] += start[v];
    const place = start.slice(0, size);
    const other = new Uint32Array(2 * rows.length);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      other[place[src[row]]++] = dst[row];
      other[place[dst[row]]++] = src[row];
    }
    return { start, other };
  }

  /** The peers linked to a peer at a moment: number → whether it has a link out, and one in. */
  neighbours(peer, moment) {
    const found = new Map();
    const at = (other) => found.get(other) ?? found.set(other, { out: false, in: false }).get(other);
    for (const row of this.rowsOf(peer, moment)) {
      if (this.src[row] === peer) at(this.dst[row]).out = true;
      else at(this.src[row]).in = true;
    }
    return found;
  }

  /** Rows of the distinct pairs of a peer at a moment. */
  rowsOf(peer, moment) {
    const { src, dst } = this, rows = this.pairs.firsts(moment), found = [];
    for (let i = 0; i < rows.length; i++) {
      if (src[rows[i]] === peer || dst[rows[i]] === peer) found.push(rows[i]);
    }
    return found;
  }

  /** The number of distinct pairs at a moment whose two ends are members. */
  countAmong(member, moment) {
    const { src, dst } = this, rows = this.pairs.firsts(moment);
    let count = 0;
    for (let i = 0; i < rows.length; i++) count += member[src[rows[i]]] & member[dst[rows[i]]];
    return count;
  }

  /**
   * The components of the peers that are `present` at a moment, over links in either direction: `of` has for each peer
   * the number of its component, -1 where it is not there; `sizes` their numbers of peers.
   */
  components(moment, present) {
    const { src, dst, size } = this, rows = this.pairs.firsts(moment);
    const parent = new Int32Array(size);
    for (let peer = 0; peer < size; peer++) parent[peer] = peer;
    const root = (peer) => {
      while (parent[peer] !== peer) peer = parent[peer] = parent[parent[peer]];
      return peer;
    };
    for (let i = 0; i < rows.length; i++) {
      const a = src[rows[i]], b = dst[rows[i]];
      if (parent[a] !== parent[b]) parent[root(a)] = root(b); // most are joined already
    }
    const of = new Int32Array(size).fill(-1), sizes = [];
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

/** Hops from a peer over links in either direction; FAR = further, or none. */
export function hops({ start, other }, peer) {
  const size = start.length - 1, found = new Uint16Array(size).fill(FAR), reached = new Uint32Array(size);
  found[peer] = 0;
  reached[0] = peer;
  for (let next = 0, count = 1; next < count; next++) {
    const hop = found[reached[next]] + 1;
    if (hop === FAR) break;
    for (let k = start[reached[next]]; k < start[reached[next] + 1]; k++) {
      if (found[other[k]] !== FAR) continue;
      found[other[k]] = hop;
      reached[count++] = other[k];
    }
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
