/** A run's overlay in a picture: fetches what is chosen, and says what there is at a time. */

import { themeName } from "./colours.js";
import { grouped, withCommonGroups } from "./groups.js";
import { Overlay } from "./overlaydata.js";
import { HOPS, Shown } from "./shown.js";
import { intervalOf } from "./time.js";

export class Scene {
  /**
   * `busy(text)` is told what one waits for, `failed(error)` what went wrong; `step()` is called when
   * there is more to draw. Without a picture, the scene only knows what there is.
   */
  constructor(run, { busy, failed, step }) {
    this.run = run;
    this.picture = null;
    this._events = { busy, failed, step };
  }

  close() {
    this._loading?.abort();
    this.picture?.destroy();
  }

  /**
   * Fetch the periods and places of `{ layers, topics, how, relays, layout }`. With `keep`, peers that have
   * a place keep it: the run has grown.
   */
  async load({ layout, ...chosen }, { keep = false } = {}) {
    this._loading?.abort();
    const { signal } = (this._loading = new AbortController());
    const { busy, failed } = this._events;
    if (!keep) busy("Loading …");
    try {
      this.overlay = new Overlay(await this.run.overlay(chosen, signal), this.run.facts.peers.length);
      const slow = layout === "force" && this.overlay.knowsLinks;
      if (slow && keep && this._places) return this._show(extended(this._places, this.overlay));
      if (slow && !this._places) await this._place("circle", signal);
      if (slow) busy("Placing the peers by their links …");
      await this._place(slow ? "force" : "circle", signal);
      busy("");
    } catch (error) {
      if (error.name !== "AbortError") failed(error);
    }
  }

  async _place(layout, signal) {
    this._show(await this.run.places(layout, signal));
  }

  _show(places) {
    this._places = places;
    this.picture?.setOverlay(this.overlay, this._places);
    this._look = null;
    this._events.step();
  }

  /** True once there is something to draw. */
  get isReady() {
    return Boolean(this.overlay && this._places);
  }

  /** What is shown at a tick and in a window of ticks before it, of what a filter leaves (shown.js). */
  shown(tick, { window, ...filter }) {
    return new Shown(this.overlay, this.overlay.moment(tick, window), filter);
  }

  /**
   * The values of a metric of peers at a tick, with the ends of its scale: of the "run", or of the
   * "interval"; null while they are on their way. Hops from the selected peer are those in what is
   * `shown`.
   */
  scaled(name, tick, scale, shown) {
    if (!name) return null;
    if (name === HOPS) return shown.distances;
    const { step, failed } = this._events;
    const column = this.run.column(name);
    const values = column.at(intervalOf(this.run.clock, tick), step, failed);
    if (!values) return null;
    const group = this.run.facts.columns.groups.find((one) => one.name === name);
    if (group) return grouped(group, values.values, shown.peers);
    const unknown = Array.from(shown.peers).some((peer) => Number.isNaN(values.values[peer]));
    if (scale === "interval") return { name, unknown, ...values };
    if (!column.ends) {
      column.extent().then((ends) => { column.ends = ends; step(); }, failed);
      return null;
    }
    return { name, unknown, values: values.values, ...column.ends };
  }

  /** Colour and size the peers, if that changes anything. */
  look(tick, colour, size) {
    const key = [intervalOf(this.run.clock, tick), themeName(),
      ...[colour, size].flatMap((of) => [of?.name, of?.low, of?.high])].join();
    if (key === this._look && colour?.name !== HOPS) return;
    this._look = key;
    this.picture?.setLook(colour, size);
  }
}

/** Scaled values of two runs, with the ends of both and the numbers of peers by hop of each. */
export function withCommonScale(values) {
  if (values[0].groups) return withCommonGroups(values);
  const ends = values.flatMap(({ low, high }) => [low, high]).filter((end) => end !== null && !Number.isNaN(end));
  const common = ends.length ? { low: Math.min(...ends), high: Math.max(...ends) } : {};
  common.unknown = values.some(({ unknown }) => unknown);
  if (values[0].counts) {
    const hops = Math.max(...values.map(({ counts }) => counts.length));
    common.counts = Array.from({ length: hops }, (_, hop) => values.map(({ counts }) => counts[hop] ?? 0));
    common.unreachable = values.map(({ unreachable }) => unreachable);
  }
  return values.map((of) => ({ ...of, ...common }));
}

const GOLDEN = Math.PI * (3 - Math.sqrt(5)); // an angle that never comes back to where it was

/** The places of all peers: a new one is beside the peers that it is linked to. */
function extended(places, { size, src, dst }) {
  const before = places.length / 2;
  const found = new Float32Array(2 * size), near = new Float64Array(3 * size);
  found.set(places.subarray(0, 2 * size));
  for (let row = 0; row < src.length; row++) {
    for (const [peer, other] of [[src[row], dst[row]], [dst[row], src[row]]]) {
      if (peer < before || other >= before) continue;
      near[3 * peer] += places[2 * other];
      near[3 * peer + 1] += places[2 * other + 1];
      near[3 * peer + 2]++;
    }
  }
  for (let peer = before; peer < size; peer++) {
    const [x, y, count] = near.subarray(3 * peer, 3 * peer + 3), angle = GOLDEN * peer;
    const away = count ? 0.05 : 0.95;
    found[2 * peer] = (count ? x / count : 0) + away * Math.cos(angle);
    found[2 * peer + 1] = (count ? y / count : 0) + away * Math.sin(angle);
  }
  return found;
}
