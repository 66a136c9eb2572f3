/** The screen Compare: two runs, or two times of one, side by side with one clock. */

import * as address from "./address.js";
import { axisTools } from "./axistools.js";
import { Clock } from "./clock.js";
import { commands } from "./commands.js";
import { Pair } from "./comparetime.js";
import { Run, runs } from "./data.js";
import { checkbox, choice, fill, h, labelled, refill, roundButton, select, tag, wholeNumber } from "./dom.js";
import { EventStrip } from "./eventstrip.js";
import { listen, ofClock, ofPicture } from "./keys.js";
import { countsOf, Legend, lookControls, meaningOf, nameOf } from "./look.js";
import { MetricCurves } from "./metriccurves.js";
import { number, short, title } from "./numbers.js";
import { PartControls, WindowControl, windowText } from "./part.js";
import { Picture } from "./picture.js";
import { compareCommand } from "./printed.js";
import { Scene, withCommonScale } from "./scene.js";
import { search } from "./search.js";
import { HOPS } from "./shown.js";
import { beside, tools } from "./stage.js";
import { sampled, spoken, visiblePart } from "./time.js";
import { missing } from "./view.js";

const CURVES = ["network_size", "links", "degree_mean", "hit_ratio"];
const SIDES = [0, 1];

/** Open the runs and show them in an element. */
export async function showCompare(page, name, state) {
  document.title = `${name} beside … – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  const first = await Run.open(name);
  const names = (await runs()).runs.filter((run) => run.state === "complete").map(({ run }) => run);
  if (!state.with) return new Chooser(page, first, names, state);
  return new CompareScreen(page, [first, await Run.open(state.with)], names, state);
}

/** Asks for the other run. */
class Chooser {
  constructor(page, run, names, state) {
    Object.assign(this, { screen: "compare", name: run.facts.run, run, state });
    const link = (other, text) => h("li", {}, h("a", {
      href: address.write(this.name, "compare", { ...state, with: other }) }, text));
    fill(page, h("main", { class: "waiting" },
      h("h1", {}, `Compare ${this.name} with`),
      h("ul", { class: "choices" }, names.filter((other) => other !== this.name).map((other) => link(other, other)),
        link(this.name, "itself, at another time"))));
  }

  isOf(state) {
    return state.with === "";
  }

  show() {}

  close() {}
}

class CompareScreen {
  constructor(page, sides, names, state) {
    Object.assign(this, { screen: "compare", name: sides[0].facts.run, run: sides[0], sides });
    document.title = `${this.name} beside ${sides[1].facts.run} – vizpub`;
    const common = (columns) => sides[0].facts.columns[columns].filter(({ name }) =>
      sides[1].facts.columns[columns].some((column) => column.name === name));
    this._columns = common("peers");
    this._groups = common("groups");
    this.state = this._complete(state);
    this.pair = new Pair(sides, this.state.by, this.state.later);
    this.scenes = sides.map((run, side) => new Scene(run, {
      busy: (text) => this._say(side, text), failed: (error) => this._say(side, error.message),
      step: () => this._step(),
    }));
    this._build(page, names);
    this._unlisten = listen({
      ...ofClock(() => this.clock), ...ofPicture(() => this.scenes[0].picture),
      Escape: () => this.update({ peer: "" }),
    });
    this._load();
  }

  /** True while these are the runs that an address wants. */
  isOf(state) {
    return state.with === this.sides[1].facts.run;
  }

  close() {
    this.clock.pause();
    this._unlisten();
    for (const scene of this.scenes) scene.close();
  }

  /** A state in which nothing is that the runs do not have. */
  _complete(state) {
    const has = (name, columns = this._columns) => columns.some((column) => column.name === name);
    const { clock } = this.sides[1];
    const later = Math.min(state.later, clock.last - clock.first);
    const { scale } = new Pair(this.sides, state.by, later), at = scale.within(state.at ?? scale.last);
    return {
      ...state, later, at, ...visiblePart(scale, at, state), component: state.peer ? state.component : 0,
      colour: has(state.colour, [...this._columns, ...this._groups]) || state.colour === HOPS ? state.colour : "", size: has(state.size) ? state.size : "",
    };
  }

  _build(page, names) {
    const { sides } = this;
    this._missing = missing();
    this.clock = new Clock(this.pair.scale, {
      moved: (at) => this.update({ at }, { push: false }),
      paused: () => {},
      chosen: (pace) => this.update(pace),
      change: (at, forward) => this._change(at, forward),
    });
    this._curves = new MetricCurves(this._curveSides(), this.clock, (curves) => this.update({ curves }));
    this._strip = new EventStrip(this._stripSides(), this.clock);
    fill(this.clock.gutter, axisTools(this.clock, () => this.state, (changes) => this.update(changes)));
    this._left = h("aside", { class: "side left", "aria-label": "What is shown" });
    this._window = new WindowControl((window) => this.update({ window }));
    this.clock.add(this._window.element);
    this._part = new PartControls((changes) => this.update(changes));
    this._figures = h("section", {});
    this._legend = new Legend([...this._columns, ...this._groups]);
    this._selected = h("section", {});
    this._stages = sides.map((run, side) => this._stage(run, side));
    const topics = [...new Set(sides.flatMap((run) => run.facts.topics))];
    const peers = [...new Set(sides.flatMap((run) => run.facts.peers))];
    this._names = names;
    fill(page, h("main", { class: "overlay compare" },
      h("div", { class: "bar" },
        h("h1", {}, "Compare"), h("span", { class: "grow" }),
        topics.length ? search(topics, "Show a topic", (of) => this.update({ of: topics[of] }), "A topic", "topic") : null,
        search(peers, "Find a peer", (of) => this.update({ peer: peers[of] }), "Find a peer")),
      this._left, this._stages.map(({ element }) => element), this.clock.element));
    page.querySelector("main").classList.toggle("without", Boolean(this._missing));
    this._showControls();
    this._showPart();
    this._showAxis();
    this._showTime();
    this._showCurves();
  }

  /** The picture of a run, and what is said of it. */
  _stage(run, side) {
    const canvas = h("div", { class: "canvas" });
    const label = h("div", { class: "label", hidden: true });
    const pinned = h("div", { class: "label pinned", hidden: true });
    const status = h("p", { class: "status", role: "status" });
    const about = h("p", { class: "about" });
    const element = h("section", { class: `stage side-${side}`, "aria-label": `${side ? "Right" : "Left"}: ${run.facts.run}` },
      canvas, about, label, pinned, status, this._missing ? null
        : tools(() => this.scenes[side].picture, side ? () => this._figure() : null));
    if (!this._missing) {
      this.scenes[side].picture = new Picture(canvas, {
        clicked: (peer) => this.update({ peer: peer === null ? "" : run.facts.peers[peer] }),
        hovered: (peer, x, y) => this._hover(side, peer, x, y),
        moved: () => this._moved(side),
        failed: (error) => this._say(side, error.message),
      });
    }
    return { element, canvas, label, pinned, status, about };
  }

  /** What a saved picture has (png.js): both sides. */
  _figure() {
    const { state, counts } = this, sides = this.sides.map(({ facts, clock }, side) =>
      `${nameOf(facts)}, ${spoken(clock, this.ticks[side])}, ${counts[side] ? countsOf(counts[side]) : "no such topic"}`);
    return {
      stages: this._stages.map(({ element }, side) => ({ element, picture: this.scenes[side].picture })),
      legend: this._legend.element,
      caption: [
        `${this.name} beside ${this.sides[1].facts.run}, ${this.pair.scale.spoken(state.at)}`,
        `Left: ${sides[0]}. Right: ${sides[1]}.${state.of && ` Topic: ${state.of}.`} `
          + meaningOf(this.run, { ...state, topics: [], layers: null }),
        address.write(this.name, "compare", state),
      ],
      failed: (error) => this._say(1, error.message),
    };
  }

  _stripSides() {
    return this.sides.map((run, side) => ({ run, edge: (interval) => this.pair.edge(side, interval) }));
  }

  _curveSides() {
    return this.sides.map((run, side) => ({
      run, skip: this.pair.later[side], place: (tick) => this.pair.place(side, tick),
    }));
  }

  /** Change what is shown. A choice can be taken back by the browser's Back; a time cannot. */
  update(changes, { push = true } = {}) {
    const before = this.state;
    if ("by" in changes && changes.by !== before.by) { // other units
      const at = new Pair(this.sides, changes.by, before.later).place(0, this.ticks[0]);
      changes = { ...changes, at, window: 0, from: null, until: null };
    }
    this.state = this._complete({ ...before, ...changes });
    (push ? address.push : address.replace)(address.write(this.name, "compare", this.state));
    this._follow(before);
  }

  /** Show another state of the same runs, as Back and Forward do. */
  show(state) {
    const before = this.state;
    this.state = this._complete(state);
    this._follow(before);
  }

  _follow(before) {
    const { state } = this;
    const changed = (...keys) => keys.some((key) => String(before[key]) !== String(state[key]));
    if (changed("by", "later")) {
      this.pair = new Pair(this.sides, state.by, state.later);
      this.clock.setScale(this.pair.scale);
      this._curves.setSides(this._curveSides());
      this._strip.setSides(this._stripSides());
    }
    if (changed("by", "later", "from", "until")) this._showAxis();
    if (changed("by", "later", "curves")) this._showCurves();
    if (changed("by", "later", "of", "colour", "size", "scale", "layout", "relays")) this._showControls();
    if (changed("by", "later", "window", "peer", "least", "most", "component")) this._showPart();
    this._showTime();
    if (changed("of", "layout", "relays")) this._load();
    else this._step();
  }

  /** Show the part of the time that is chosen on the axis. */
  _showAxis() {
    const { from, until } = this.state;
    this.clock.setView(from === null ? null : [from, until]);
    this._curves.place();
    this._strip.place();
  }

  _showPart() {
    this._window.show(this.pair.clock, this.state.window);
    this._part.show(this.state, this.state.peer !== "");
  }

  _showTime() {
    const { at } = this.state;
    this.clock.setPace(this.state);
    this.clock.show(at);
    this.ticks = SIDES.map((side) => this.pair.tick(side, at));
    const ticks = this.ticks.map((tick, side) => (this.pair.hasEnded(side, at) ? null : tick));
    this._curves.show(ticks);
    this._strip.show(ticks);
  }

  _showCurves() {
    const known = this._curves.columns.map(({ name }) => name);
    this._shown = (this.state.curves ?? CURVES).filter((name) => known.includes(name));
    this._curves.setNames(this._shown).then(() => this._showFigures(), (error) => this._say(0, error.message));
  }

  _showControls() {
    const { state, sides } = this;
    const change = (changes) => this.update(changes);
    const later = wholeNumber((count) => change({ later: count ?? 0 }),
      { max: sides[1].clock.last - sides[1].clock.first, value: state.later });
    refill(this._left, () => [
      h("section", {},
        labelled("Right", select(this._names.map((name) => [name, name]), sides[1].facts.run, (name) => {
          location.hash = address.write(this.name, "compare", { ...this.state, with: name, later: 0 });
        })),
        labelled("Intervals later on the right", later),
        this.pair.knowsTime ? choice("Clock by", [["time", "time"], ["interval", "interval"]], state.by,
          (by) => this.update({ by })) : h("p", { class: "quiet" }, "By interval: the length of intervals is unknown"),
        state.of ? [h("p", {}, tag("topic", state.of, "All topics", () => this.update({ of: "" }))),
        checkbox("Relays too, as squares", state.relays === 1, (on) => change({ relays: on ? 1 : 0 }))] : null),
      this._figures, this._selected,
      h("section", {}, h("h2", {}, "Look"), lookControls(this._columns, this._groups, state, change), this._legend.element),
      h("section", {}, h("h2", {}, "Peers"), this._part.elements),
      h("section", {}, commands([["vizpub", compareCommand(sides.map(({ facts }) => facts.run))]])),
    ]);
  }

  /** Fetch what is chosen, of both. */
  _load() {
    const { of, layout, relays } = this.state;
    this._lacks = this.sides.map((run) => of !== "" && !run.facts.topics.includes(of));
    this.ready = Promise.all(this.scenes.map((scene, side) => scene.load({
      layout, relays, layers: null, how: "any", topics: of && !this._lacks[side] ? [this.sides[side].facts.topics.indexOf(of)] : [],
    })));
  }

  _say(side, text) {
    const { status } = this._stages[side];
    status.textContent = text || this._missing;
    status.classList.toggle("empty", !status.textContent);
  }

  /** Show the state at its time. */
  _step() {
    const { scenes, state } = this;
    this.shown = scenes.map((scene, side) => (scene.isReady ? scene.shown(this.ticks[side], {
      ...state, sel: this._peer(side), ego: 0, pins: [], hidden: [], only: [], window: this.pair.window(side, state.window),
    }) : null));
    this.counts = this.shown.map((shown, side) => (shown && !this._lacks[side] ? shown.counts : null));
    if (scenes.every((scene) => scene.isReady)) {
      this._strip.setOverlays(scenes.map(({ overlay }) => overlay)).catch((error) => this._say(0, error.message));
      const [colour, size] = [state.colour, state.size].map((name) => this._scaled(name));
      SIDES.forEach((side) => this._draw(side, colour[side], size[side]));
      this._legend.show(colour.find(Boolean), size.find(Boolean));
    }
    SIDES.forEach((side) => this._describe(side));
    this._showFigures();
    this._showSelected();
  }

  /** The values of a metric of both runs, with common ends; null while they are on their way. */
  _scaled(name) {
    const found = this.scenes.map((scene, side) => scene.scaled(name, this.ticks[side], this.state.scale, this.shown[side]));
    if (found.some((of) => of === null)) return [null, null];
    return withCommonScale(found);
  }

  _draw(side, colour, size) {
    const { [side]: scene } = this.scenes, { [side]: shown } = this.shown;
    const peer = this._peer(side), isShown = peer !== null && shown.isShown(peer);
    scene.look(this.ticks[side], colour, size);
    scene.picture?.setMarks({
      rows: isShown ? shown.rowsOf(peer) : [],
      path: null, peer: isShown ? peer : null,
    });
    scene.picture?.draw(shown);
    this._pin(side, isShown ? peer : null);
  }

  /** The number of the selected peer in a run; null = the run has none of this name. */
  _peer(side) {
    const peer = this.state.peer ? this.sides[side].facts.peers.indexOf(this.state.peer) : -1;
    return peer < 0 ? null : peer;
  }

  _describe(side) {
    const { element, about } = this._stages[side];
    const run = this.sides[side], { facts } = run, tick = this.ticks[side];
    const hasEnded = this.pair.hasEnded(side, this.state.at);
    element.classList.toggle("ended", hasEnded || this._lacks[side]);
    fill(about,
      h("a", { href: address.write(facts.run, "overlay", { t: tick, ...this._sameOf(side) }), class: `side-${side}`, title: facts.run }, facts.run),
      h("span", { class: "quiet" }, facts.protocol ?? facts.source),
      h("span", {}, spoken(run.clock, tick)),
      hasEnded ? h("strong", {}, "ended") : null,
      this._lacks[side] ? h("strong", {}, "has no such topic") : null);
  }

  /** The choices that the overlay of a run understands too. */
  _sameOf(side) {
    const { colour, size, scale, layout, of } = this.state;
    const peer = this._peer(side), topic = this.sides[side].facts.topics.indexOf(of);
    return { colour, size, scale, layout, ...(peer === null ? {} : { sel: peer }), ...(topic < 0 ? {} : { topics: [topic] }) };
  }

  _showFigures() {
    if (!this.counts) return;
    const rows = [
      ["peers shown", this.counts.map((of) => of?.peers)], ["links shown", this.counts.map((of) => of?.pairs)],
      ...this._shown.map((name) => [title(name), this._curves.at(name)]),
    ];
    const known = (value) => value != null && !Number.isNaN(value);
    const { window } = this.state;
    const when = window ? `In the last ${windowText(this.pair.clock, window)}` : "At this time";
    fill(this._figures, h("h2", {}, when), h("table", { class: "figures" },
      h("thead", {}, h("tr", {}, h("td", {}), ["Left", "Right", "Difference"].map((text, i) =>
        h("th", { scope: "col", class: `n side-${i}` }, text)))),
      h("tbody", {}, rows.map(([word, [one, two]]) => h("tr", {}, h("th", { scope: "row" }, word),
        h("td", { class: "n" }, number(one)), h("td", { class: "n" }, number(two)),
        h("td", { class: "n" }, known(one) && known(two) ? signed(two - one) : "–"))))));
  }

  _showSelected() {
    const { peer } = this.state;
    if (!peer) return fill(this._selected, h("h2", {}, "No peer is selected"),
      h("p", { class: "quiet" }, "Click one, or find it by its name: it stands out in both runs."));
    const rows = this.scenes.map((scene, side) => {
      const of = this._peer(side), { [side]: shown } = this.shown;
      return of !== null && shown?.present[of] ? scene.overlay.neighbours(of, shown.moment).size : null;
    });
    fill(this._selected,
      h("div", { class: "title" }, h("h2", { class: "peer", title: peer }, peer),
        roundButton("Select no peer (Esc)", "×", () => this.update({ peer: "" }))),
      h("dl", { class: "values" }, rows.map((count, side) => h("div", {},
        h("dt", {}, `Neighbours ${side ? "right" : "left"}`), h("dd", {}, count === null ? "not there" : number(count))))));
  }

  /** The next place at which either run changes. */
  _change(at, forward) {
    const places = this.scenes.flatMap((scene, side) => {
      const { clock } = this.sides[side], tick = this.ticks[side];
      const from = forward || this.pair.by === "time" ? tick : tick - clock.ticks + 1;
      const found = scene.overlay?.change(from, forward) ?? null;
      return found === null ? [] : [this.pair.place(side, this.pair.by === "time" ? found : sampled(clock, Math.floor(found / clock.ticks)))];
    }).filter((place) => (forward ? place > at : place < at && place >= 0));
    return places.length ? (forward ? Math.min : Math.max)(...places) : null;
  }

  /** The other picture looks where this one does. */
  _moved(side) {
    if (this._isFollowing || !this.scenes) return;
    this._isFollowing = true;
    const { picture } = this.scenes[side], other = this.scenes[1 - side].picture;
    if (picture && other) other.follow(picture.camera);
    this._isFollowing = false;
    if (this.ticks && this.scenes.every((scene) => scene.isReady)) SIDES.forEach((of) => this._pin(of));
  }

  _hover(side, peer, x, y) {
    const { label } = this._stages[side];
    const name = peer === null ? null : this.sides[side].facts.peers[peer];
    label.hidden = name === null || name === this.state.peer;
    if (label.hidden) return;
    fill(label, h("strong", {}, name));
    beside(label, x, y);
  }

  /** The name of what is selected stays beside it. */
  _pin(side, peer = this._pinnedPeers?.[side] ?? null) {
    (this._pinnedPeers ??= [null, null])[side] = peer;
    const { pinned } = this._stages[side];
    const place = peer === null ? null : this.scenes[side].picture?.pixel(peer);
    pinned.hidden = !place;
    if (!place) return;
    pinned.textContent = short(this.state.peer, 26);
    beside(pinned, ...place);
  }
}

const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));
