/**
 * The picture of an overlay: deck.gl draws it, and its card filters by time.
 *
 * Attributes are typed arrays that stay on the card: a step of time changes one number. A filter's
 * values are ranks, which 32-bit floats hold exactly (explorer/periods.py).
 */

import { share, table, theme } from "./colours.js";
import { shapes } from "./shapes.js";
import { View } from "./view.js";

const SPREAD = 1000; // places are within the unit circle; the card's view is about pixels
const LARGEST = 4;

export class Picture {
  /** `clicked(peer)` gets a peer's number, or null; `hovered(peer, x, y)` likewise. */
  constructor(parent, { clicked, hovered, moved, failed }) {
    const { DataFilterExtension } = globalThis.deck;
    this._filter = new DataFilterExtension({ filterSize: 2 });
    this._counting = new DataFilterExtension({ filterSize: 2, countItems: true });
    this._counters = [];
    this._counted = () => {};
    const picked = (layer, index) => (layer.id === "peers" ? this._overlay.peer[index] : null);
    this._view = new View(parent, { picked, clicked, hovered, moved, failed });
  }

  destroy() {
    this._view.destroy();
  }

  fit() {
    this._view.fit();
  }

  zoom(by) {
    this._view.zoom(by);
  }

  image(scale) {
    return this._view.image(scale);
  }

  get camera() {
    return this._view.camera;
  }

  follow(camera) {
    this._view.follow(camera);
  }

  /** Where a peer is, in pixels of the picture; null before there is anything. */
  pixel(peer) {
    return this._places ? this._view.pixel(this._place(peer)) : null;
  }

  _place(peer) {
    return [this._places[2 * peer] * SPREAD, -this._places[2 * peer + 1] * SPREAD];
  }

  /** Other peers, pairs or places. */
  setOverlay(overlay, places) {
    this._overlay = overlay;
    this._places = places;
    const { peer, src, dst, peers, pairs } = overlay;
    this._filterValues = { peers: interleaved(peers), pairs: interleaved(pairs) };
    this._spare = [{}, {}];
    this._peers = {
      length: peer.length,
      attributes: {
        getPosition: { value: this._points(peer), size: 2 },
        getFilterValue: { value: this._filterValues.peers, size: 2 },
      },
    };
    this._pairs = {
      length: src.length,
      attributes: {
        getSourcePosition: { value: this._points(src), size: 2 },
        getTargetPosition: { value: this._points(dst), size: 2 },
        getFilterValue: { value: this._filterValues.pairs, size: 2 },
      },
    };
    const extent = [0, 1].map((axis) => 2 * SPREAD * places.reduce(
      (most, value, i) => (i % 2 === axis ? Math.max(most, Math.abs(value)) : most), 0));
    this._view.setExtent(...extent);
    this._rowOf = new Int32Array(overlay.size); // one of each peer; all of a peer look alike
    peer.forEach((of, row) => (this._rowOf[of] = row));
    this._end = overlay.times.length;
    this._member = null;
    this._opacity = Math.min(Math.max(6 / Math.sqrt(1 + mostAtOnce(pairs, this._end)), 0.05), 0.6);
    this._radius = Math.min(Math.max(150 / Math.sqrt(overlay.size), 2.2), 8);
  }

  _points(peers) {
    const found = new Float32Array(2 * peers.length);
    for (let row = 0; row < peers.length; row++) {
      found[2 * row] = this._places[2 * peers[row]] * SPREAD;
      found[2 * row + 1] = -this._places[2 * peers[row] + 1] * SPREAD;
    }
    return found;
  }

  /** Colours and sizes: each null, or values of all peers with their ends. */
  setLook(colour, size) {
    const { peer } = this._overlay;
    const { ramp, unknown, plain, groups, others } = theme();
    const colours = new Uint8Array(4 * peer.length);
    const radii = new Float32Array(peer.length);
    const look = table(ramp);
    for (let row = 0; row < peer.length; row++) {
      const of = peer[row];
      let mixed = plain, place = 0;
      if (colour) {
        const value = colour.values[of];
        mixed = Number.isNaN(value) ? unknown : colour.groups ? groups[value] ?? others : look;
        if (mixed === look) place = 3 * byte(share(value, colour.low, colour.high));
      }
      colours[4 * row] = mixed[place];
      colours[4 * row + 1] = mixed[place + 1];
      colours[4 * row + 2] = mixed[place + 2];
      colours[4 * row + 3] = 255;
      const big = size ? Math.max(share(size.values[of], size.low, size.high), 0) : 0;
      radii[row] = this._radius * (size ? 0.6 + (LARGEST - 0.6) * Math.sqrt(big || 0) / 2 : 1);
    }
    this._peers.attributes.getFillColor = { value: colours, size: 4, normalized: true };
    this._peers.attributes.getRadius = { value: radii, size: 1 };
    this._peers = { ...this._peers };
  }

  _colourOf(peer) {
    const row = this._rowOf[peer];
    return this._peers.attributes.getFillColor.value.subarray(4 * row, 4 * row + 3);
  }

  _radiusOf(peer) {
    return this._peers.attributes.getRadius.value[this._rowOf[peer]];
  }

  /** What stands out: `rows` of pairs, peers of a `path`, the `peer` that is selected, and those `chosen`. */
  setMarks({ rows, path, peer, chosen = [] }) {
    this._isChosen = peer !== null;
    this._marks = {
      peer,
      pairs: rows.map((row) => [this._overlay.src[row], this._overlay.dst[row]]),
      path: path ? path.slice(1).map((to, i) => [path[i], to]) : [],
      rings: [...(peer === null ? [] : [{ peer, path: false }]),
        ...(path ?? []).map((of) => ({ peer: of, path: true })), ...chosen.map((of) => ({ peer: of, path: false }))],
    };
  }

  /** A head of a link from peer to peer: its angle, and how far its tip is from the middle of the peer. */
  _head(from, to, away) {
    const [source, target] = [from, to].map((peer) => this._place(peer));
    const angle = Math.atan2(target[1] - source[1], target[0] - source[0]);
    const distance = this._radiusOf(to) + away;
    return { to, angle: -angle * 180 / Math.PI, offset: [-distance * Math.cos(angle), -distance * Math.sin(angle)] };
  }

  /** Draw what is shown (shown.js). */
  draw({ moment, member, relays }) {
    this._moment = moment;
    this._relays = relays ?? [];
    if (member || this._member) this._setMember(member);
    this._draw();
  }

  _draw() {
    this._view.draw([...this._layers(this._filter), ...this._counters]);
  }

  /** Rows of peers that are not shown get a begin that never comes. */
  _setMember(member) {
    this._member = member;
    const { peer, src, dst } = this._overlay;
    const never = this._end + 2;
    // Two in turn, as new memory takes time: deck.gl takes values from another array than the last one.
    this._spare = [this._spare[1], this._spare[0]];
    const filtered = (data, kind, one, two) => {
      const all = this._filterValues[kind], value = (this._spare[0][kind] ??= new Float32Array(all.length));
      value.set(all);
      for (let row = 0; member && row < one.length; row++) {
        if (!(member[one[row]] & member[two[row]])) value[2 * row] = never;
      }
      return { ...data, attributes: { ...data.attributes, getFilterValue: { value, size: 2 } } };
    };
    this._peers = filtered(this._peers, "peers", peer, peer);
    this._pairs = filtered(this._pairs, "pairs", src, dst);
  }

  _layers(filter) {
    const { IconLayer, LineLayer, ScatterplotLayer } = globalThis.deck;
    const { link, outline, chosen, path } = theme();
    const filtered = {
      filterRange: [[-1, this._moment.last], [this._moment.first + 1, this._end + 1]],
      extensions: [filter],
      onFilteredItemsChange: (event) => this._counted(event),
    };
    const faded = this._opacity / (this._isChosen ? 2 : 1);
    const line = (id, data, colour, width) => new LineLayer({
      id, data, getColor: colour, getWidth: width, updateTriggers: { getColor: colour },
      getSourcePosition: ([from]) => this._place(from), getTargetPosition: ([, to]) => this._place(to),
    });
    const heads = (id, links, colour, size, away) => new IconLayer({
      id, data: links.map(([from, to]) => this._head(from, to, to === this._marks.peer ? 7 : away)), ...shapes(),
      sizeUnits: "pixels", getSize: size, getIcon: () => "arrow", getColor: colour,
      getPosition: ({ to }) => this._place(to), getAngle: ({ angle }) => angle, getPixelOffset: ({ offset }) => offset,
    });
    return [
      new LineLayer({
        id: "pairs", data: this._pairs, getColor: link, getWidth: 1, ...filtered,
        opacity: faded ** 2.2, updateTriggers: { getColor: link }, // deck.gl takes the root of it
      }),
      line("near", this._marks.pairs, [...chosen, 200], 1.3),
      line("path", this._marks.path, path, 4),
      heads("heads", this._marks.pairs, chosen, 10, 0),
      heads("heads of the path", this._marks.path, path, 16, 3),
      new ScatterplotLayer({
        id: "peers", data: this._peers, ...filtered, pickable: true, radiusUnits: "pixels",
        stroked: true, getLineColor: outline, lineWidthUnits: "pixels", getLineWidth: 1,
        updateTriggers: { getLineColor: outline },
      }),
      ...[["outlines of relays", () => outline, 2], ["relays", (peer) => this._colourOf(peer), 0]].map(([id, colour, more]) =>
        new IconLayer({
          id, data: this._relays, ...shapes(), sizeUnits: "pixels", getIcon: () => "relay",
          getPosition: (peer) => this._place(peer), getColor: colour,
          getSize: (peer) => 2.3 * this._radiusOf(peer) + more,
          updateTriggers: { getColor: [this._peers, outline], getSize: this._peers },
        })),
      new ScatterplotLayer({
        id: "rings", data: this._marks.rings, radiusUnits: "pixels", lineWidthUnits: "pixels",
        getPosition: ({ peer }) => this._place(peer), filled: false, stroked: true,
        getRadius: ({ path: on }) => this._radius + (on ? 3 : 6), getLineWidth: 2.5,
        getLineColor: ({ path: on }) => (on ? path : chosen),
        updateTriggers: { getLineColor: [path, chosen] },
      }),
      // The card compiles a program for each kind of layer: not before something is marked.
    ].filter(({ props: { data } }) => !Array.isArray(data) || data.length);
  }

  /** How many peers and pairs the card draws, as the card counts them. */
  async count() {
    const counted = {}, wanted = ["peers", "pairs"];
    // Layers of another name: the card begins to count only for a new one. They stay if another draws meanwhile.
    const layers = this._layers(this._counting).filter(({ id }) => wanted.includes(id));
    for (const { id, props } of layers) if (!props.data.length) counted[id] = 0;
    this._counters = layers.filter(({ id }) => !(id in counted))
      .map((layer) => layer.clone({ id: `${layer.id} counted`, pickable: false }));
    await new Promise((resolve) => {
      const look = () => wanted.every((of) => of in counted) && resolve();
      this._counted = ({ id, count }) => {
        counted[id.split(" ")[0]] = count;
        look();
      };
      this._draw();
      look();
    });
    this._counters = [];
    this._draw();
    return counted;
  }
}

const byte = (part) => Math.round(Math.min(Math.max(part, 0), 1) * 255);

/** About the largest number of rows that hold at once. */
function mostAtOnce(periods, end) {
  const at = (share) => {
    const rank = Math.round(share * Math.max(end - 1, 0));
    return periods.count({ first: rank, last: rank });
  };
  return Math.max(...Array.from({ length: 17 }, (_, i) => at(i / 16)));
}

/** Begins and ends, one after the other. */
function interleaved({ begin, end }) {
  const found = new Float32Array(2 * begin.length);
  for (let row = 0; row < begin.length; row++) {
    found[2 * row] = begin[row];
    found[2 * row + 1] = end[row];
  }
  return found;
}
