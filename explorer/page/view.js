/** A canvas on which deck.gl draws, that people move and zoom; and whether there can be one. */

import { h } from "./dom.js";

let isSlow = false; // the processor draws in place of a graphics card
let lack = null;

/** Contexts of pictures that were left, with their programs: to compile these takes longest of all. */
const spare = [];

function takeSpare() {
  while (spare.length) {
    const device = spare.pop();
    if (!device.isLost) return device;
  }
}

/** Why there is no picture; empty where there is one. */
export const missing = () => (lack ??= findLack());

function findLack() {
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

const PLAIN = { left: 36, right: 60, top: 48, bottom: 36 }; // pixels; names are above, tools on the right

export class View {
  /**
   * `picked(layer, index)` says what is there, or null; `clicked(thing)` and `hovered(thing, x, y)`
   * get it. `resized()` is called before all of it is fitted to another size.
   */
  constructor(parent, { picked, clicked, hovered, moved, failed, resized = () => {} }) {
    const { Deck, OrthographicView } = globalThis.deck;
    this._parent = parent;
    this._moved = moved;
    this._margins = PLAIN;
    const at = ({ layer, index }) => (layer && index >= 0 ? picked(layer, index) : null);
    this._deck = new Deck({
      parent,
      device: takeSpare(),
      onDeviceInitialized: (device) => (this._device = device),
      views: new OrthographicView({ controller: { inertia: false } }),
      viewState: this._fitted(),
      onViewStateChange: ({ viewState }) => this._view(viewState),
      layers: [],
      useDevicePixels: !isSlow,
      deviceProps: { type: "webgl", webgl: { antialias: !isSlow } },
      pickingRadius: 6,
      getCursor: ({ isDragging, isHovering }) =>
        isDragging ? "grabbing" : isHovering ? "pointer" : "grab",
      onClick: (event) => clicked(at(event)),
      onHover: (event) => hovered(at(event), event.x, event.y),
      onError: (error) => failed(error),
      onResize: () => {
        resized();
        if (this._fits) this.fit();
      },
    });
    this._fits = true;
    this._lost = () => failed(new Error("The picture was lost: reload the page to draw it again."));
    this._deck.getCanvas()?.addEventListener("webglcontextlost", this._lost);
  }

  destroy() {
    const canvas = this._deck.getCanvas();
    this._deck.finalize();
    canvas?.removeEventListener("webglcontextlost", this._lost);
    canvas?.remove();
    if (this._device) spare.push(this._device);
  }

  /** Width by height of the canvas, in pixels. */
  get size() {
    return [this._parent.clientWidth, this._parent.clientHeight];
  }

  _fitted() {
    const [width, height] = this._extent ?? [2000, 2000];
    const { left, right, top, bottom } = this._margins;
    const room = (pixels, extent) => Math.max(pixels, 40) / Math.max(extent, 100);
    const zoom = Math.log2(Math.min(
      room(this.size[0] - left - right, width), room(this.size[1] - top - bottom, height)));
    const target = [(right - left) / 2, (bottom - top) / 2, 0].map((pixels) => pixels / 2 ** zoom);
    return { target, zoom, minZoom: zoom - 2, maxZoom: zoom + 8 };
  }

  _view(viewState) {
    this._fits = false;
    this._deck.setProps({ viewState });
    this._moved();
  }

  /** Where one looks: the middle, and the zoom beside that of all of it; null = at all of it. */
  get camera() {
    if (this._fits) return null;
    const { target, zoom } = this._deck.props.viewState;
    return { target, zoom: zoom - this._fitted().zoom };
  }

  /** Look where another view looks. */
  follow(camera) {
    const all = this._fitted();
    this._fits = camera === null;
    this._deck.setProps({
      viewState: camera ? { ...all, target: camera.target, zoom: all.zoom + camera.zoom } : all,
    });
  }

  /**
   * What is drawn is so wide and high, around the middle, and has so much room beside it; it stays
   * fitted until someone moves it.
   */
  setExtent(width, height, margins = PLAIN) {
    this._extent = [width, height];
    this._margins = margins;
    if (this._fits) this.fit();
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

  /** Where a place is, in pixels of the canvas; null before there is one. */
  pixel(place) {
    const viewport = this._deck.isInitialized && this._deck.getViewports()[0];
    return viewport ? viewport.project([...place, 0]).slice(0, 2) : null;
  }

  draw(layers) {
    this._deck.setProps({ layers });
  }

  /** A canvas that shows the same, with `scale` pixels for one of the page. */
  image(scale) {
    const canvas = this._deck.getCanvas(), [width] = this.size;
    const plain = this._deck.props.useDevicePixels;
    const drawn = new Promise((resolve) => {
      this._deck.setProps({
        useDevicePixels: scale,
        // The drawing buffer is empty again after the frame.
        onAfterRender: () => {
          const isResized = Math.abs(canvas.width / width - scale) * width <= scale; // sizes are no whole numbers
          if (!isResized) return;
          const image = h("canvas", { width: canvas.width, height: canvas.height });
          image.getContext("2d").drawImage(canvas, 0, 0);
          resolve(image);
        },
      });
      this._deck.redraw("image");
    });
    return drawn.finally(() => this._deck.setProps({ useDevicePixels: plain, onAfterRender: () => {} }));
  }
}
