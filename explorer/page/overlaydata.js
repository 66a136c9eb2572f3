/** An overlay through time: which peers and pairs there are at a tick, and who is whose neighbour. */

import { upTo } from "./time.js";

/** Rows with a begin and an end, in ranks. */
class Periods {
  constructor(begin, end) {
    this.begin = begin;
    this.end = end;
    this._begins = begin.slice().sort();
    this._ends = end.slice().sort();
  }

  /** The number of rows that hold at a rank. */
  count(rank) {
    return upTo(this._begins, rank) - upTo(this._ends, rank);
  }

  holds(row, rank) {
    return this.begin[row] <= rank && this.end[row] > rank;
  }
}

export class Overlay {
  constructor({ times, peer, peer_begin, peer_end, src, dst, pair_begin, pair_end }, size) {
    this.size = size;
    this.times = times;
    this.peer = peer;
    this.peers = new Periods(peer_begin, peer_end);
    this.knowsLinks = src !== undefined;
    this.src = src ?? new Int32Array();
    this.dst = dst ?? new Int32Array();
    this.pairs = new Periods(pair_begin ?? new Int32Array(), pair_end ?? new Int32Array());
  }

  /** What begins and ends are compared with at a tick: begin <= rank < end. */
  rank(tick) {
    return upTo(this.times, tick) - 1;
  }

  /** The tick of the next change after a tick, or of the one before it; null = there is none. */
  change(tick, forward) {
    const place = forward ? upTo(this.times, tick) : upTo(this.times, tick - 1) - 1;
    return this.times[place] ?? null;
  }

  /** Whether each peer is there at a rank; a byte for each peer of the run. */
  present(rank) {
    const found = new Uint8Array(this.size);
    for (let row = 0; row < this.peer.length; row++) {
      if (this.peers.holds(row, rank)) found[this.peer[row]] = 1;
    }
    return found;
  }

  /** Neighbours of all peers at a rank, over links in either direction. */
  adjacency(rank) {
    const { src, dst, pairs, size } = this;
    const start = new Uint32Array(size + 1);
    const rows = [];
    for (let row = 0; row < src.length; row++) {
      if (!pairs.holds(row, rank)) continue;
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

  /** The peers linked to a peer at a rank: number → whether it has a link out, and one in. */
  neighbours(peer, rank) {
    const found = new Map();
    const at = (other) => found.get(other) ?? found.set(other, { out: false, in: false }).get(other);
    for (let row = 0; row < this.src.length; row++) {
      if (!this.pairs.holds(row, rank)) continue;
      if (this.src[row] === peer) at(this.dst[row]).out = true;
      else if (this.dst[row] === peer) at(this.src[row]).in = true;
    }
    return found;
  }

  /** Rows of the pairs at a rank for which `wanted(src, dst)`. */
  rowsOf(rank, wanted) {
    const found = [];
    for (let row = 0; row < this.src.length; row++) {
      if (wanted(this.src[row], this.dst[row]) && this.pairs.holds(row, rank)) found.push(row);
    }
    return found;
  }
}

/** Hops from a peer over links in either direction, up to `most`; 255 = further, or none. */
export function hops({ start, other }, peer, most = 254) {
  const found = new Uint8Array(start.length - 1).fill(255);
  found[peer] = 0;
  let reached = [peer];
  for (let hop = 1; reached.length && hop <= most; hop++) {
    const next = [];
    for (const v of reached) {
      for (let k = start[v]; k < start[v + 1]; k++) {
        if (found[other[k]] !== 255) continue;
        found[other[k]] = hop;
        next.push(other[k]);
      }
    }
    reached = next;
  }
  return found;
}
