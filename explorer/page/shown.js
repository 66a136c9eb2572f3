/** What is shown of an overlay at a moment: the peers that filters leave, and the links between them. */

import { degrees, FAR, hops } from "./overlaydata.js";

/** The name of the colour by hops from the selected peer; names of metrics have no spaces. */
export const HOPS = "hops from selected";

export class Shown {
  /**
   * `sel` is the selected peer or null; it may be at most `ego` hops away (0 = any number), in its
   * `component` alone, with a degree from `least` to `most` (null = any), among `only` these (none = all), and
   * not `hidden`. Degrees,
   * hops and components are those of all that topics, layers and the window leave. `pins` are shown
   * whatever the others leave out.
   */
  constructor(overlay, moment, filter) {
    this.overlay = overlay;
    this.moment = moment;
    this.present = overlay.present(moment);
    this._filter = filter;
    this.member = this._members();
  }

  get adjacency() {
    return (this._adjacency ??= this.overlay.adjacency(this.moment));
  }

  get components() {
    return (this._components ??= this.overlay.components(this.moment, this.present));
  }

  /** Hops from the selected peer; null where none is selected that is there. */
  get far() {
    const { sel } = this._filter;
    if (sel === null || !this.present[sel]) return null;
    return (this._far ??= hops(this.adjacency, sel));
  }

  /** A byte for each peer: whether it is there and shown; null = all that are there are shown. */
  _members() {
    const { sel, ego, component, least, most, hidden, pins, only } = this._filter;
    const filters = [];
    if (only.length) {
      const chosen = new Set(only);
      filters.push((peer) => chosen.has(peer));
    }
    if (ego && sel !== null) filters.push((peer) => this.far?.[peer] <= ego);
    if (component && sel !== null) {
      const { of } = this.components;
      filters.push((peer) => of[peer] === of[sel]);
    }
    if (least !== null || most !== null) {
      const counts = degrees(this.adjacency);
      filters.push((peer) => counts[peer] >= (least ?? 0) && counts[peer] <= (most ?? Infinity));
    }
    if (!filters.length && !hidden.length) return null;
    const member = this.present.slice();
    for (const passes of filters) {
      for (let peer = 0; peer < member.length; peer++) member[peer] &&= passes(peer);
    }
    for (const peer of pins) member[peer] = this.present[peer];
    for (const peer of hidden) member[peer] = 0;
    return member;
  }

  isShown(peer) {
    return (this.member ?? this.present)[peer] === 1;
  }

  /** The numbers of the peers that are shown, ascending. */
  get peers() {
    return (this._peers ??= places(this.member ?? this.present));
  }

  /** The numbers of the relays that are shown; null = relays are not chosen. */
  get relays() {
    if (this._relays === undefined) {
      const relays = this.overlay.relays(this.moment, this.present);
      this._relays = relays && Array.from(this.peers).filter((peer) => relays[peer]);
    }
    return this._relays;
  }

  /** Rows of the links of a peer that are shown. */
  rowsOf(peer) {
    const { member, overlay: { src, dst } } = this, rows = this.overlay.rowsOf(peer, this.moment);
    return member ? rows.filter((row) => member[src[row]] && member[dst[row]]) : rows;
  }

  /** The numbers of peers and of pairs that are shown; null = links are unknown. */
  get counts() {
    const { overlay, moment, member } = this;
    const pairs = () => (member ? overlay.countAmong(member, moment) : overlay.pairs.count(moment));
    return {
      peers: member ? this.peers.length : overlay.peers.count(moment),
      pairs: overlay.knowsLinks ? pairs() : null,
    };
  }

  /** Hops from the selected peer as values of a colour; NaN = unreachable, or none is selected. */
  get distances() {
    return (this._distances ??= this._measure());
  }

  _measure() {
    const { far } = this;
    const values = new Float32Array(this.overlay.size).fill(NaN);
    for (let peer = 0; far && peer < far.length; peer++) if (far[peer] !== FAR) values[peer] = far[peer];
    const counts = [];
    let unreachable = 0;
    for (const peer of far ? this.peers : []) {
      if (far[peer] === FAR) unreachable++;
      else counts[far[peer]] = (counts[far[peer]] ?? 0) + 1;
    }
    return { name: HOPS, values, low: 0, high: this._furthest, counts, unreachable };
  }

  /** The most hops from the selected peer to any, shown or not: filters leave colours as they are. */
  get _furthest() {
    return this.far ? this.far.reduce((most, hop) => (hop !== FAR && hop > most ? hop : most), 0) : NaN;
  }
}

/** The places of the bytes that are 1, ascending. */
function places(bytes) {
  const found = new Uint32Array(bytes.length);
  let count = 0;
  for (let place = 0; place < bytes.length; place++) if (bytes[place]) found[count++] = place;
  return found.subarray(0, count);
}
