/**
 * The picture of an overlay: deck.gl draws it, and its card filters by time.
 *
 * Attributes are typed arrays that stay on the card: a step of time changes one number. A filter's
 * values are ranks, which 32-bit floats hold exactly (explorer/periods.py).
 */

import { share, table, theme } from "./colours.js";

const SPREAD = 1000; // places are within the unit circle; the card's view is about pixels
const LARGEST = 4;

let isSlow = false; // the processor draws in place of a graphics card

/** Why there is no picture; empty where there is one. */
export function missing() {
  if (!globalThis.deck) return "The file that draws the picture could not be loaded.";
  const context = document.createElement("canvas").getContext("webgl2");
  if (!context) {
    return "This browser has no WebGL 2, which the picture needs. Curves, tables and searches work.";
  }
  const about = context.getExtension("WEBGL_debug_renderer_info");
  const renderer = about ? context.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
  isSlow = /swiftshader|llvmpipe|software/i.test(renderer);
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return "";
}

export class Picture {
  /** `clicked(peer)` gets a peer's number, or null; `hovered(peer, x, y)` likewise. */
  constructor(parent, { clicked, hovered, moved, failed }) {
    const { Deck, OrthographicView, DataFilterExtension } = globalThis.deck;
    this._filter = new DataFilterExtension({ filterSize: 2 });
    this._counting = new DataFilterExtension({ filterSize: 2, countItems: true });
    this._counted = () => {};
    this._moved = moved;
    this._parent = parent;
    this._deck = new Deck({
      parent,
      views: new OrthographicView({ controller: { inertia: false } }),
      viewState: this._fitted(),
      onViewStateChange: ({ viewState }) => this._view(viewState),
      layers: [],
      useDevicePixels: !isSlow,
      deviceProps: { type: "webgl", webgl: { antialias: !isSlow } },
      pickingRadius: 6,
      getCursor: ({ isDragging, isHovering }) =>
        isDragging ? "grabbing" : isHovering ? "pointer" : "grab",
      onClick: ({ object, index, layer }) => clicked(this._peerAt(layer, index)),
      onHover: ({ index, layer, x, y }) => hovered(this._peerAt(layer, index), x, y),
      onError: (error) => failed(error),
      onResize: () => this._fits && this.fit(),
    });
    this._fits = true;
    this._deck.getCanvas?.()?.addEventListener("webglcontextlost", () =>
      failed(new Error("The picture was lost: reload the page to draw it again.")));
  }

  destroy() {
    this._deck.finalize();
  }

  _peerAt(layer, index) {
    return layer?.id === "peers" && index >= 0 ? this._overlay.peer[index] : null;
  }

  _fitted() {
    const { clientWidth, clientHeight } = this._parent;
    const [width, height] = this._extent ?? [2, 2];
    const room = (pixels, extent) => Math.max(pixels - 72, 40) / (Math.max(extent, 0.1) * SPREAD);
    const zoom = Math.log2(Math.min(room(clientWidth, width), room(clientHeight, height)));
    return { target: [0, 0, 0], zoom, minZoom: zoom - 2, maxZoom: zoom + 8 };
  }

  _view(viewState) {
    this._fits = false;
    this._deck.setProps({ viewState });
    this._moved();
  }

  /** Show all of it. */
  fit() {
    this._deck.setProps({ viewState: this._fitted() });
    this._fits = true;
    this._moved();
  }

  /** Zoom by powers of two. */
  zoom(by) {
    const before = this._deck.props.viewState;
    const zoom = Math.min(Math.max(before.zoom + by, before.minZoom), before.maxZoom);
    this._view({ ...before, zoom });
  }

  /** Where a peer is, in pixels of the picture; null before there is anything. */
  pixel(peer) {
    const viewport = this._deck.getViewports()[0];
    if (!viewport || !this._places) return null;
    return viewport.project([...this._place(peer), 0]).slice(0, 2);
  }

  _place(peer) {
    return [this._places[2 * peer] * SPREAD, -this._places[2 * peer + 1] * SPREAD];
  }

  /** Other peers, pairs or places. */
  setOverlay(overlay, places) {
    this._overlay = overlay;
    this._places = places;
    const { peer, src, dst, peers, pairs } = overlay;
    this._peers = {
      length: peer.length,
      attributes: {
        getPosition: { value: this._points(peer), size: 2 },
        getFilterValue: { value: interleaved(peers), size: 2 },
      },
    };
    this._pairs = {
      length: src.length,
      attributes: {
        getSourcePosition: { value: this._points(src), size: 2 },
        getTargetPosition: { value: this._points(dst), size: 2 },
        getFilterValue: { value: interleaved(pairs), size: 2 },
      },
    };
    this._extent = [0, 1].map((axis) => 2 * places.reduce(
      (most, value, i) => (i % 2 === axis ? Math.max(most, Math.abs(value)) : most), 0));
    if (this._fits) this.fit();
    this._end = overlay.times.length;
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

  /**
   * Colours and sizes: each null, or values of all peers with their ends. `member` has a byte for
   * each peer: 0 = it fades; null = none does.
   */
  setLook(colour, size, member) {
    const { peer } = this._overlay;
    const { ramp, unknown, plain } = theme();
    const colours = new Uint8Array(4 * peer.length);
    const radii = new Float32Array(peer.length);
    const look = table(ramp);
    for (let row = 0; row < peer.length; row++) {
      const of = peer[row];
      let mixed = plain, place = 0;
      if (colour) {
        const value = colour.values[of];
        mixed = Number.isNaN(value) ? unknown : look;
        if (mixed === look) place = 3 * byte(share(value, colour.low, colour.high));
      }
      colours[4 * row] = mixed[place];
      colours[4 * row + 1] = mixed[place + 1];
      colours[4 * row + 2] = mixed[place + 2];
      colours[4 * row + 3] = !member || member[of] ? 255 : 40;
      const big = size ? Math.max(share(size.values[of], size.low, size.high), 0) : 0;
      radii[row] = this._radius * (size ? 0.6 + (LARGEST - 0.6) * Math.sqrt(big || 0) / 2 : 1);
    }
    this._peers.attributes.getFillColor = { value: colours, size: 4, normalized: true };
    this._peers.attributes.getRadius = { value: radii, size: 1 };
    this._peers = { ...this._peers };
    this._fade = member !== null;
  }

  /** What stands out: `rows` of pairs, peers of a `path`, and the `peer` that is selected. */
  setMarks({ rows, path, peer }) {
    this._isChosen = peer !== null;
    this._marks = {
      pairs: rows.map((row) => [this._overlay.src[row], this._overlay.dst[row]]),
      path: path ? path.slice(1).map((to, i) => [path[i], to]) : [],
      rings: [...(peer === null ? [] : [{ peer, path: false }]),
        ...(path ?? []).map((of) => ({ peer: of, path: true }))],
    };
  }

  /** Draw what holds at a rank. */
  draw(rank) {
    this._rank = rank;
    this._deck.setProps({ layers: this._layers(this._filter) });
  }

  _layers(filter) {
    const { LineLayer, ScatterplotLayer } = globalThis.deck;
    const { link, outline, chosen, path } = theme();
    const filtered = {
      filterRange: [[-1, this._rank], [this._rank + 1, this._end + 1]],
      extensions: [filter],
      onFilteredItemsChange: (event) => this._counted(event),
    };
    const faded = this._opacity / (this._fade ? 4 : this._isChosen ? 2 : 1);
    const line = (id, data, colour, width) => new LineLayer({
      id, data, getColor: colour, getWidth: width, updateTriggers: { getColor: colour },
      getSourcePosition: ([from]) => this._place(from), getTargetPosition: ([, to]) => this._place(to),
    });
    return [
      new LineLayer({
        id: "pairs", data: this._pairs, getColor: link, getWidth: 1, ...filtered,
        opacity: faded ** 2.2, updateTriggers: { getColor: link }, // deck.gl takes the root of it
      }),
      line("near", this._marks.pairs, this._fade ? [...link, 150] : [...chosen, 200], 1.3),
      line("path", this._marks.path, path, 4),
      new ScatterplotLayer({
        id: "peers", data: this._peers, ...filtered, pickable: true, radiusUnits: "pixels",
        stroked: true, getLineColor: outline, lineWidthUnits: "pixels", getLineWidth: 1,
        updateTriggers: { getLineColor: outline },
      }),
      new ScatterplotLayer({
        id: "rings", data: this._marks.rings, radiusUnits: "pixels", lineWidthUnits: "pixels",
        getPosition: ({ peer }) => this._place(peer), filled: false, stroked: true,
        getRadius: ({ path: on }) => this._radius + (on ? 3 : 6), getLineWidth: 2.5,
        getLineColor: ({ path: on }) => (on ? path : chosen),
        updateTriggers: { getLineColor: [path, chosen] },
      }),
    ];
  }

  /** How many peers and pairs the card draws, as the card counts them. */
  async count() {
    const counted = {};
    // Layers of another name: the card begins to count only for a new one.
    const layers = this._layers(this._filter);
    for (const layer of this._layers(this._counting)) {
      if (layer.id !== "peers" && layer.id !== "pairs") continue;
      if (!layer.props.data.length) counted[layer.id] = 0;
      else layers.push(layer.clone({ id: `${layer.id} counted`, pickable: false }));
    }
    const wanted = ["peers", "pairs"];
    await new Promise((resolve) => {
      this._counted = ({ id, count }) => {
        counted[id.split(" ")[0]] = count;
        if (wanted.every((of) => of in counted)) resolve();
      };
      this._deck.setProps({ layers });
      if (wanted.every((of) => of in counted)) resolve();
    });
    this.draw(this._rank);
    return counted;
  }
}

const byte = (part) => Math.round(Math.min(Math.max(part, 0), 1) * 255);

/** About the largest number of rows that hold at once. */
function mostAtOnce(periods, end) {
  const at = (share) => periods.count(Math.round(share * Math.max(end - 1, 0)));
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
