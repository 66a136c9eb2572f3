/** The screen Overlay: holds the state of what is shown, and brings its parts together. */

import * as address from "./address.js";
import { axisTools } from "./axistools.js";
import { Clock } from "./clock.js";
import { Run } from "./data.js";
import { fill, h, tag } from "./dom.js";
import { EventStrip } from "./eventstrip.js";
import { Filters, MOST_CHOSEN } from "./filters.js";
import { groupText } from "./groups.js";
import { listen, ofClock, ofPicture } from "./keys.js";
import { Lasso } from "./lasso.js";
import { Live } from "./live.js";
import { MetricCurves } from "./metriccurves.js";
import { countsOf, meaningOf, nameOf } from "./look.js";
import { narrowing, quarter } from "./narrowing.js";
import { number, short, title } from "./numbers.js";
import { WindowControl, windowText } from "./part.js";
import { peerTable } from "./peertable.js";
import { Picture } from "./picture.js";
import { Scene } from "./scene.js";
import { search } from "./search.js";
import { Selection } from "./selection.js";
import { HOPS } from "./shown.js";
import { beside, showsTable, showView, tools } from "./stage.js";
import { intervalEdge, intervalOf, lastTick, runScale, spoken, visiblePart, within } from "./time.js";
import { missing } from "./view.js";

const CURVES = ["network_size", "links", "degree_mean", "hit_ratio"];
const SHOWN = 3;
const PATIENCE = 200; // milliseconds between questions about the same thing

/** Open a run and show it in an element. */
export async function showOverlay(page, name, state) {
  document.title = `${name} – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  return new OverlayScreen(page, name, await Run.open(name, state.intervals), state);
}

class OverlayScreen {
  constructor(page, name, run, state) {
    this.screen = "overlay";
    this.name = name;
    this.run = run;
    this.state = this._whole(state);
    this.scene = new Scene(run, {
      busy: (text) => this._busy(text), failed: (error) => this._failed(error),
      step: () => this._step(),
    });
    this._build(page);
    this._unlisten = listen({
      ...ofClock(() => this.clock), ...ofPicture(() => this.picture),
      "/": () => this._search.querySelector("input").focus(),
      Escape: () => {
        this._setChosen([]);
        this.update({ sel: null });
      },
    });
    this._load();
  }

  /** True while these are the intervals that an address wants. */
  isOf({ intervals }) {
    return intervals === this.state.intervals;
  }

  close() {
    this.clock.pause();
    this._live?.close();
    this._unlisten();
    this.scene.close();
  }

  get picture() {
    return this.scene.picture;
  }

  get overlay() {
    return this.scene.overlay;
  }

  /** A state in which nothing is left open, and nothing is that the run does not have. */
  _whole(state) {
    const { clock, facts } = { clock: this.run.clock, facts: this.run.facts };
    const { peers, groups } = facts.columns;
    const has = (name, columns = peers) => columns.some((column) => column.name === name);
    const peer = (number) => (number !== null && number < facts.peers.length ? number : null);
    const sel = peer(state.sel), isPeer = (number) => number < facts.peers.length;
    const t = within(clock, state.t ?? lastTick(clock));
    return {
      ...state, t, ...visiblePart(runScale(clock), t, state),
      colour: has(state.colour, [...peers, ...groups]) || state.colour === HOPS ? state.colour : "",
      size: has(state.size) ? state.size : "",
      sel, ...(sel === null ? { to: null, ego: 0, component: 0 } : { to: peer(state.to) }),
      pins: state.pins.filter(isPeer), hidden: state.hidden.filter(isPeer), only: state.only.filter(isPeer),
      topics: state.topics.filter((topic) => topic < facts.topics.length),
      relays: (state.topics.length || facts.exported?.topic != null) && facts.knows.relays ? state.relays : 0,
      layers: state.layers?.filter((layer) => facts.layers.includes(layer)) ?? null,
    };
  }

  _build(page) {
    const { run, state } = this;
    this._status = h("p", { class: "status", role: "status" });
    this._label = h("div", { class: "label", hidden: true });
    this._pinned = h("div", {});
    this._canvas = h("div", { class: "canvas" });
    this._table = h("div", { class: "table scroll", tabindex: "0", role: "region", "aria-label": "Peers" });
    this.clock = new Clock(runScale(run.clock), {
      moved: (t) => this._move(t),
      paused: () => this._step(),
      chosen: (pace) => this.update(pace),
      change: (tick, forward) => this.overlay?.change(tick, forward) ?? null,
    });
    this._curves = new MetricCurves([{ run, place: (tick) => tick, skip: 0 }], this.clock,
      (curves) => this.update({ curves }));
    this._strip = new EventStrip([{ run, edge: (interval) => intervalEdge(run.clock, interval) }], this.clock);
    fill(this.clock.gutter, axisTools(this.clock, () => this.state, (changes) => this.update(changes)));
    this._window = new WindowControl((window) => this.update({ window }));
    this.clock.add(this._window.element);
    this.filters = new Filters(run, state, (changes) => this.update(changes), (what) => this._choose(what));
    this.chosen = [];
    const lasso = new Lasso(this._canvas, (isWithin) => this._setChosen(
      [...this.shown?.peers ?? []].filter((peer) => isWithin(...this.picture.pixel(peer)))));
    this.selection = new Selection(run, (changes) => this.update(changes));
    if (run.facts.live) {
      this._live = new Live(run, state.t === lastTick(run.clock), {
        grown: () => this._grow(), follow: () => this._move(lastTick(run.clock)),
        failed: (error) => this._say(error.message),
      });
      this.selection.allow(this._live);
    }
    this._views = h("button", { type: "button", class: "small", onclick: () =>
      this.update({ view: this.state.view === "table" ? "picture" : "table" }) });
    this._search = search(run.facts.peers, "Find a peer", (sel) => this.update({ sel }), "Find a peer  /");
    fill(
      page,
      h("main", { class: "overlay" },
        h("div", { class: "bar" },
          h("h1", { title: this.name }, this.name),
          h("span", { class: "quiet" }, run.facts.protocol ?? run.facts.source), this._spanTag(),
          this._live?.element, h("span", { class: "grow" }), this._search, this._views),
        this.filters.element,
        h("div", { class: "stage" },
          this._canvas, lasso.element, this._label, this._pinned, this._table, this._status,
          tools(() => this.picture, () => this._figure(), lasso.button)),
        this.selection.element,
        this.clock.element),
    );
    this._missing = missing();
    if (!this._missing) {
      this.scene.picture = new Picture(this._canvas, {
        clicked: (sel) => this.update({ sel }),
        hovered: (peer, x, y) => this._hover(peer, x, y),
        moved: () => this._pin(),
        failed: (error) => this._say(error.message),
      });
    }
    page.querySelector(".stage").classList.toggle("without", Boolean(this._missing));
    this._showAxis();
    this._showTime();
    this._showWindow();
    this._showCurves();
    this._showView();
  }

  /** Change what is shown. A choice can be taken back by the browser's Back; a time cannot. */
  update(changes, { push = true } = {}) {
    const before = this.state;
    this.state = this._whole({ ...before, ...changes });
    const { push: keep, replace, write } = address;
    (push ? keep : replace)(write(this.name, "overlay", this.state));
    this._follow(before);
  }

  _move(t) {
    this._live?.setFollowing(t >= lastTick(this.run.clock));
    this.update({ t }, { push: false });
  }

  /** Show what was collected since; who looks at the last interval stays at the last. */
  _grow() {
    this.clock.extend(runScale(this.run.clock));
    if (this._live.isFollowing) this.state = { ...this.state, t: lastTick(this.run.clock) };
    this._showTime();
    this._showCurves();
    this._question = "";
    this.ready = this.scene.load(this.state, { keep: true });
  }

  /** What fails because the run has grown meanwhile is asked again. */
  _failed(error) {
    if (error.kind === "RunChanged" && this._live) this._live.check();
    else this._say(error.message, error.kind === "TooManyTimes" ? [" ", quarter(this.run, this.state)] : []);
  }

  /** The intervals that are shown, to be taken back; null = those of the whole run. */
  _spanTag() {
    const { clock, facts: { whole, exported } } = this.run, { first, last } = clock;
    if (exported || (first === whole[0] && last === whole[1])) return null;
    return tag(`intervals ${number(first)} to ${number(last)}`, `of ${number(whole[0])} to ${number(whole[1])}`, "Show all intervals",
      () => (location.hash = address.write(this.name, "overlay", { ...this.state, intervals: null })));
  }

  /** Show another state of the same run, as Back and Forward do. */
  show(state) {
    const before = this.state;
    this.state = this._whole(state);
    this.filters.show(this.state);
    this._follow(before);
  }

  _follow(before) {
    const { state } = this;
    const changed = (...keys) => keys.some((key) => String(before[key]) !== String(state[key]));
    if (changed("from", "until")) this._showAxis();
    if (changed("t", "speed", "loop")) this._showTime();
    if (changed("window")) this._showWindow();
    if (changed("curves")) this._showCurves();
    if (changed("view")) this._showView();
    if (changed("layers", "topics", "how", "relays", "layout")) this._load();
    else this._step();
  }

  /** What a saved picture has (png.js). */
  _figure() {
    const { run, state, counts } = this;
    return {
      stages: [{ element: this._canvas.parentElement, picture: this.picture }],
      legend: this.filters.legend.element,
      caption: [
        `${this.name}, ${spoken(run.clock, state.t)}`,
        `${countsOf(counts)} of the run ${nameOf(run.facts)}. ${meaningOf(run, state)}`,
        address.write(this.name, "overlay", state),
      ],
      failed: (error) => this._say(error.message),
    };
  }

  _showTime() {
    this.clock.setPace(this.state);
    this.clock.show(this.state.t);
    this._curves.show([this.state.t]);
    this._strip.show([this.state.t]);
  }

  /** Show the part of the time that is chosen on the axis. */
  _showAxis() {
    const { from, until } = this.state;
    this.clock.setView(from === null ? null : [from, until]);
    this._curves.place();
    this._strip.place();
  }

  _showWindow() {
    this._window.show(this.run.clock, this.state.window);
  }

  _showCurves() {
    const known = this.run.facts.columns.overlay.map(({ name }) => name);
    const wanted = this.state.curves ?? CURVES.filter((name) => known.includes(name)).slice(0, SHOWN);
    this._curves.setNames(wanted.filter((name) => known.includes(name)))
      .catch((error) => this._failed(error));
  }

  _showView() {
    showView(this._canvas.parentElement, this._views, this.state.view, Boolean(this._missing));
  }

  /** Fetch what is chosen, and show it. */
  _load() {
    this.ready = this.scene.load(this.state);
  }

  /** Say what one waits for, or what is missing in what is shown. */
  _busy(text) {
    const leftOut = !text && this.overlay?.leftOut;
    const missing = [text || this._missing, leftOut ? narrowing(this.run, this.state, leftOut) : null];
    fill(this._status, missing);
    this._status.classList.toggle("empty", !this._status.textContent);
  }

  _say(text, links = []) {
    this.clock.pause();
    fill(this._status, text, links);
    this._status.classList.remove("empty");
  }

  /** Show the state at its time. */
  _step() {
    if (!this.scene.isReady) return;
    const { state } = this;
    this._strip.setOverlays([this.overlay]).catch((error) => this._failed(error));
    this.shown = this.scene.shown(state.t, state);
    this.filters.showPart(state);
    this._counts();
    this._mark();
    this._look();
    this.picture?.draw(this.shown);
    this._pin();
    if (state.sel !== null && !this.clock.playing) this._told();
  }

  _counts() {
    const { shown, state: { window } } = this;
    this.counts = shown.counts;
    const { relays } = shown;
    const part = shown.member ? ` of ${number(shown.overlay.peers.count(shown.moment))}` : "";
    this.filters.showCounts([
      ["Peers shown", number(this.counts.peers) + part, "peers that are present, or subscribe to the chosen topics"],
      ...(relays ? [["Relays among them", number(relays.length), "peers that relay the chosen topics"]] : []),
      ["Links shown", number(this.counts.pairs), "pairs (from, to) with a link in the chosen layers"],
      ...this._componentRows(),
    ], window ? `In the last ${windowText(this.run.clock, window)}` : "At this time");
  }

  /** What is said of components; while the clock plays, only so often: they take longer than a step. */
  _componentRows() {
    const { shown, state: { sel } } = this, now = performance.now();
    if (this.clock.playing && now - (this._componentsAt ?? 0) < PATIENCE) return this._components;
    this._componentsAt = now;
    const { sizes, of } = shown.components;
    return (this._components = [
      ["Components", shown.overlay.knowsLinks ? number(sizes.length) : "–",
        "parts without a link between them, of all peers of the chosen topics and layers"],
      ...(sel === null || !shown.present[sel] ? [] : [["Peers in its component", number(sizes[of[sel]]),
        "peers in the component of the selected one"]]),
    ]);
  }

  /** Choose the peers "shown", the "neighbours" of the selected one, or none. */
  _choose(what) {
    const { shown, overlay, state: { sel } } = this;
    this._setChosen(what === "shown" ? [...shown.peers] : what === "neighbours" ? [...overlay.neighbours(sel, shown.moment).keys()] : []);
  }

  _setChosen(peers) {
    this.chosen = peers;
    this.filters.setChosen(peers);
    if (!this.scene.isReady) return;
    this._mark();
    this.picture?.draw(this.shown);
  }

  /** Rows and peers that stand out: neighbours of what is selected, what is chosen, and the path. */
  _mark() {
    const { shown, state: { sel, to } } = this;
    const chosen = this.chosen.length > MOST_CHOSEN ? [] : this.chosen.filter((peer) => shown.isShown(peer));
    if (sel === null) {
      this.selection.showNothing();
      this._path = null;
      this._question = "";
      this.picture?.setMarks({ rows: [], path: null, peer: null, chosen });
      return;
    }
    this.selection.show(sel, this.state);
    const isThere = shown.present[sel] === 1;
    const neighbours = shown.overlay.neighbours(sel, shown.moment);
    this.selection.showNeighbours(neighbours, isThere, this.state.topics.length);
    if (to === null) this._path = null;
    const rows = shown.rowsOf(sel);
    this.picture?.setMarks({ rows, path: this._path, peer: shown.isShown(sel) ? sel : null, chosen });
  }

  /** Colours and sizes of the time. */
  _look() {
    const { t, scale, ...state } = this.state;
    const [colour, size] = [state.colour, state.size].map((name) => this.scene.scaled(name, t, scale, this.shown));
    this.scene.look(t, colour, size);
    this.filters.legend.show(colour, size);
    if (showsTable(this.state.view, Boolean(this._missing))) this._showTable([colour, size]);
  }

  _showTable(columns) {
    const now = performance.now();
    if (this.clock.playing && now - (this._tabled ?? 0) < PATIENCE) return;
    this._tabled = now;
    peerTable(this._table, this.run.facts.peers, this.shown.peers, columns.filter(Boolean), this.state.sel,
      (sel) => this.update({ sel }));
  }

  /** Ask the server about what is selected, at most so often. */
  _told() {
    const { sel, to, t, layers } = this.state;
    const question = JSON.stringify([sel, to, t, layers]);
    if (sel === null || question === this._question) return;
    this._question = question;
    clearTimeout(this._asking);
    this._asking = setTimeout(() => this._ask(), this._asked ? PATIENCE : 0);
    this._asked = true;
  }

  async _ask() {
    const { sel, to, t, layers } = this.state;
    this._asks?.abort();
    const { signal } = (this._asks = new AbortController());
    try {
      const known = this.run.peer(sel, t, signal);
      const path = to === null ? null
        : this.run.path(sel, to, t, layers, signal).catch((error) => ({ peers: null, why: error.message }));
      const isStill = () => !signal.aborted && this.state.sel === sel && this.state.to === to;
      const facts = await known;
      if (!isStill()) return;
      this.selection.showFacts(facts, t, layers);
      if (path) {
        const found = await path;
        if (!isStill()) return;
        this._path = found.peers;
        this.selection.showPath(found, t, layers);
        this._mark();
        this.picture?.draw(this.shown);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      this._question = "";
      this._failed(error);
    }
  }

  _hover(peer, x, y) {
    const { colour, sel, pins } = this.state;
    this._label.hidden = peer === null || [sel, ...pins].includes(peer);
    if (peer === null) return;
    const values = colour === HOPS ? this.shown.distances.values
      : colour && this.run.column(colour).at(intervalOf(this.run.clock, this.state.t), () => {})?.values;
    const groups = this.run.facts.columns.groups.find(({ name }) => name === colour)?.groups;
    const text = values ? `${title(colour)} ${groups ? groupText(groups, values[peer]) : number(values[peer])}` : "";
    fill(this._label, h("strong", {}, this.run.facts.peers[peer]), text && h("span", {}, text));
    beside(this._label, x, y);
  }

  /** The names of what is selected and pinned stay beside them. */
  _pin() {
    const { sel, pins } = this.state;
    fill(this._pinned);
    for (const peer of new Set(sel === null ? pins : [sel, ...pins])) {
      const place = this.shown?.isShown(peer) && this.picture?.pixel(peer);
      if (!place) continue;
      const label = h("div", { class: "label pinned" }, short(this.run.facts.peers[peer], 26));
      this._pinned.append(label);
      beside(label, ...place);
    }
  }
}
