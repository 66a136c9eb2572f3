/** The picture of a message's way: who has it, which copies came, and which are on their way. */

import { coloured, share, theme } from "./colours.js";
import { DUPLICATE, FIRST, REFUSED } from "./messagedata.js";
import { short } from "./numbers.js";
import { shapes } from "./shapes.js";
import { View } from "./view.js";

const NAMED = 60; // more peers than these have no names in the picture
const ROOM = 78; // pixels for the name of a column
const LANES = 200; // more lanes than these are drawn without a gap

export class MessagePicture {
  /** `clicked(peer)` gets a peer's number, or null; `resized()` when places must be found again. */
  constructor(parent, names, { resized, ...events }) {
    const { DataFilterExtension } = globalThis.deck;
    this._names = names;
    this._filter = new DataFilterExtension({ filterSize: 1 });
    const picked = (layer, index) => (layer.id === "peers" ? this._way.message.peers[index].peer : null);
    this._view = new View(parent, { ...events, picked, resized });
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

  /** Width over height of what can be drawn on, in a layout of so many peers. */
  aspect(layout, peers) {
    const [width, height] = this._view.size;
    const { left, right, top, bottom } = margins(layout, peers);
    return Math.max(width - left - right, 80) / Math.max(height - top - bottom, 80);
  }

  /** Where a peer is, in pixels; null where it is not drawn. */
  pixel(peer) {
    const i = this._way?.message.place.get(peer);
    return i === undefined ? null : this._view.pixel(this._placed.places[i]);
  }

  /** Show a way of a message, with its peers in these places. */
  setWay(way, placed) {
    this._way = way;
    this._placed = placed;
    const peers = way.message.peers.length;
    this._view.setExtent(placed.width, placed.height, margins(placed.layout, peers));
    const [width] = this._view.size;
    this._roomy = width / (placed.guides.length + 1) > ROOM;
    this._radius = Math.min(Math.max(placed.gap / 5, 3), 9);
    this._lines = Object.fromEntries([FIRST, DUPLICATE, REFUSED].map((kind) => [kind, this._copies(kind)]));
    const { from, kind, place } = way.message;
    this._parents = new Set(Array.from(from).filter((_, copy) => kind[copy] === FIRST).map((peer) => place.get(peer)));
  }

  /** The copies of a kind as lines, with their ranks among all arrivals. */
  _copies(kind) {
    const { message, order } = this._way;
    const rows = [];
    order.forEach((i, rank) => message.kind[i] === kind && this._isDrawn(i) && rows.push([i, rank]));
    const source = new Float32Array(2 * rows.length), target = source.slice();
    const ranks = new Float32Array(rows.length);
    rows.forEach(([i, rank], row) => {
      const [from, to] = this._ends(i);
      source.set(from, 2 * row);
      target.set(to, 2 * row);
      ranks[row] = rank;
    });
    return {
      length: rows.length,
      attributes: {
        getSourcePosition: { value: source, size: 2 }, getTargetPosition: { value: target, size: 2 },
        getFilterValue: { value: ranks, size: 1 },
      },
    };
  }

  /** Whether both ends of a copy have a place: a peer that only refused it, or is unknown, has none. */
  _isDrawn(i) {
    const { from, to, place } = this._way.message;
    return place.has(from[i]) && place.has(to[i]);
  }

  /** Where a copy begins and ends: in lanes, both in that of its receiver. */
  _ends(i) {
    const { message, left, at } = this._way;
    const { places, again, layout, across } = this._placed;
    const place = (copy, peer) => again.get(copy) ?? places[message.place.get(peer)];
    const [from, to] = [place(message.held[i], message.from[i]), place(i, message.to[i])];
    if (layout !== "race") return [from, to];
    const since = Number.isNaN(left[i]) ? at[i] : left[i];
    return [[across(since), to[1]], [across(at[i]), to[1]]];
  }

  /** What stands out: the `peer` that is selected, and whether duplicates are drawn. */
  setMarks({ peer, duplicates }) {
    this._chosen = peer;
    this._duplicates = duplicates;
  }

  /** Draw what had happened at a place of the clock. */
  draw(at) {
    const { grid, quiet, link, path, ink, missed, chosen, unknown } = theme();
    const { LineLayer, ScatterplotLayer, TextLayer, IconLayer } = globalThis.deck;
    const { message, had } = this._way;
    const { places, guides, across, height, layout } = this._placed;
    const rank = this._way.count(at);
    const race = layout === "race";
    const top = -height / 2 - 34;
    const thin = race ? Math.max(Math.min(this._radius, 6), places.length > LANES ? 1 : 2) : 1.6;
    const faint = Math.min(Math.max(900 / message.size, 18), 90);
    const lines = (kind, colour, width) => new LineLayer({
      id: `copies ${kind}`, data: this._lines[kind], getColor: colour, getWidth: width,
      filterRange: [-1, rank - 0.5], extensions: [this._filter], updateTriggers: { getColor: colour, getWidth: width },
    });
    const reached = (i) => !Number.isNaN(had[i]) && had[i] <= at;
    const hops = (hop) => coloured(theme().ramp, hop < 0 ? 0.5 : share(hop, 0, Math.max(message.hops, 1)));
    const fill = (peer, i) =>
      peer.role === "missed" ? missed : !reached(i) ? unknown : peer.hop < 0 ? quiet : hops(peer.hop);
    const shape = (peer, i) =>
      peer.role !== "missed" && peer.role !== "publisher" && !reached(i) ? "ring" : peer.role;
    const states = [at, this._way.by, document.documentElement.dataset.theme, link].join();
    const icons = (id, colour, more) => new IconLayer({
      id, data: message.peers, ...shapes(), sizeUnits: "pixels", getSize: 2 * this._radius + more,
      getPosition: (_, { index }) => places[index],
      getIcon: (peer, { index }) => shape(peer, index), getColor: (peer, { index }) => colour(peer, index),
      updateTriggers: { getPosition: [this._placed], getIcon: states, getColor: states, getSize: this._radius },
      pickable: id === "peers",
    });
    const text = (id, data, colour, more) => new TextLayer({
      id, data, characterSet: "auto", fontFamily: "system-ui, sans-serif", getColor: colour,
      sizeUnits: "pixels", updateTriggers: { getColor: colour }, ...more,
    });
    this._view.draw([
      new LineLayer({
        id: "guides", data: guides, getSourcePosition: ({ x }) => [x, top + 22],
        getTargetPosition: ({ x }) => [x, height / 2 + 14], getColor: grid, getWidth: 1,
        updateTriggers: { getColor: grid },
      }),
      text("axis", guides, quiet, {
        getPosition: ({ x }) => [x, top], getText: (guide) => (this._roomy ? guide.text : guide.brief), getSize: 12,
        getTextAnchor: "middle", getAlignmentBaseline: "bottom",
        updateTriggers: { getText: this._roomy, getColor: quiet },
      }),
      across && new LineLayer({
        id: "now", data: [at], getSourcePosition: (now) => [across(now), top + 22],
        getTargetPosition: (now) => [across(now), height / 2 + 14], getColor: chosen, getWidth: 1.5,
        updateTriggers: { getSourcePosition: at, getTargetPosition: at, getColor: chosen },
      }),
      this._duplicates && !race && lines(DUPLICATE, [...link, faint], 1),
      lines(FIRST, race ? [...link, 120] : [...ink, 170], thin),
      lines(REFUSED, [...path, 220], thin),
      ...this._near(at, LineLayer, chosen),
      race ? this._growing(at, LineLayer, thin) : this._flights(at, ScatterplotLayer),
      race && this._duplicates && this._ticks(rank, ScatterplotLayer, [...link, 150]),
      this._again(at, ScatterplotLayer, ink),
      icons("edges", (peer, i) => (peer.role === "missed" || reached(i) ? ink : quiet), 3),
      icons("peers", fill, 0),
      this._ring(ScatterplotLayer, chosen),
      places.length <= NAMED && text("names", this._named(), quiet, {
        getPosition: ({ i }) => (race ? [across(this._way.first), places[i][1]] : places[i]),
        getText: ({ name }) => name, getSize: 11,
        getTextAnchor: race ? "end" : "start", getAlignmentBaseline: "center",
        getPixelOffset: [race ? -16 : this._radius + 7, 0],
        updateTriggers: { getPosition: [this._placed] },
      }),
    ].filter(Boolean));
  }

  /** Names of peers where there is room: beside the lanes, or right of those that passed nothing on. */
  _named() {
    const { message } = this._way;
    return message.peers.map(({ peer }, i) => ({ i, name: short(this._names[peer], 14) }))
      .filter(({ i }) => this._placed.layout === "race"
        || (this._placed.layout === "hops" && !this._parents.has(i)));
  }

  /** Copies from and to the peer that is selected. */
  _near(at, LineLayer, colour) {
    if (this._chosen === null) return [];
    const { message } = this._way;
    const rows = [];
    for (let i = 0; i < message.size; i++) {
      const near = message.from[i] === this._chosen || message.to[i] === this._chosen;
      if (near && this._isDrawn(i) && this._way.at[i] <= at) rows.push(this._ends(i));
    }
    return [new LineLayer({
      id: "near", data: rows, getColor: [...colour, 200], getWidth: 2,
      getSourcePosition: ([from]) => from, getTargetPosition: ([, to]) => to,
      updateTriggers: { getColor: colour },
    })];
  }

  /** Copies on their way. */
  _flights(at, ScatterplotLayer) {
    const { plain, unknown, path, outline } = theme();
    const { message } = this._way;
    const colours = { [FIRST]: plain, [DUPLICATE]: unknown, [REFUSED]: path };
    const flying = this._way.flying(at).filter((i) =>
      this._isDrawn(i) && (this._duplicates || message.kind[i] !== DUPLICATE));
    return new ScatterplotLayer({
      id: "flights", data: flying, radiusUnits: "pixels", stroked: true, lineWidthUnits: "pixels",
      getPosition: (i) => between(this._ends(i), this._way.made(i, at)),
      getFillColor: (i) => colours[message.kind[i]], getLineColor: outline, getLineWidth: 1,
      getRadius: (i) => (message.kind[i] === DUPLICATE ? 3 : 4.5),
      updateTriggers: { getPosition: at, getFillColor: plain, getLineColor: outline },
    });
  }

  /** In lanes, a first copy on its way is a bar that grows. */
  _growing(at, LineLayer, width) {
    const { plain } = theme();
    const { across } = this._placed;
    return new LineLayer({
      id: "growing", data: this._way.flying(at).filter((i) => this._way.message.kind[i] === FIRST),
      getSourcePosition: (i) => this._ends(i)[0], getWidth: width, getColor: [...plain, 200],
      getTargetPosition: (i) => [across(at), this._ends(i)[1][1]],
      updateTriggers: { getTargetPosition: at, getColor: plain },
    });
  }

  /** In lanes, a duplicate is a dot where it arrived. */
  _ticks(rank, ScatterplotLayer, colour) {
    return new ScatterplotLayer({
      id: "duplicates", data: {
        length: this._lines[DUPLICATE].length,
        attributes: {
          getPosition: this._lines[DUPLICATE].attributes.getTargetPosition,
          getFilterValue: this._lines[DUPLICATE].attributes.getFilterValue,
        },
      },
      radiusUnits: "pixels", getRadius: 2, getFillColor: colour, updateTriggers: { getFillColor: colour },
      filterRange: [-1, rank - 0.5], extensions: [this._filter],
    });
  }

  /** In columns, a peer that passed a later copy on stands there again, as a small ring. */
  _again(at, ScatterplotLayer, colour) {
    const came = [...this._placed.again].filter(([copy]) => this._way.at[copy] <= at);
    return new ScatterplotLayer({
      id: "again", data: came, radiusUnits: "pixels",
      getPosition: ([, place]) => place, getRadius: this._radius, filled: true, getFillColor: theme().outline,
      stroked: true, lineWidthUnits: "pixels", getLineWidth: 1.5, getLineColor: colour,
      updateTriggers: { getFillColor: colour, getLineColor: colour, getRadius: this._radius },
    });
  }

  _ring(ScatterplotLayer, colour) {
    const i = this._way.message.place.get(this._chosen);
    return new ScatterplotLayer({
      id: "chosen", data: i === undefined ? [] : [this._placed.places[i]], radiusUnits: "pixels",
      getPosition: (place) => place, getRadius: this._radius + 6, filled: false, stroked: true,
      lineWidthUnits: "pixels", getLineWidth: 2.5, getLineColor: colour,
      updateTriggers: { getLineColor: colour, getRadius: this._radius },
    });
  }
}

/** Room for the names beside the peers. */
const margins = (layout, peers) => ({
  top: 64, bottom: 36, left: layout === "race" && peers <= NAMED ? 136 : 60,
  right: layout === "hops" && peers <= NAMED ? 140 : 96,
});

const between = ([from, to], made) => from.map((start, axis) => start + made * (to[axis] - start));
