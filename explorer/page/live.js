/** Follows a run that is collected: asks how far it is, and tells its peers what to do. */

import { fill, h } from "./dom.js";
import { duration } from "./time.js";

const PERIOD = 500; // milliseconds between questions

export class Live {
  /**
   * `grown()` is called when the run has more intervals, `follow()` when someone wants to be at the
   * last one from now on, `failed(error)` where the server does not answer any more.
   */
  constructor(run, isFollowing, { grown, follow, failed }) {
    this._run = run;
    this._events = { grown, follow, failed };
    this.isFollowing = isFollowing;
    this.mayTell = false;
    this.element = h("button", { type: "button", class: "small live", onclick: () => follow() });
    this._show({ live: true, behind_s: null });
    this._ask();
  }

  close() {
    clearTimeout(this._timer);
    this._isClosed = true;
  }

  setFollowing(isFollowing) {
    this.isFollowing = isFollowing;
    this._show(this._state);
  }

  /** Ask now. */
  check() {
    clearTimeout(this._timer);
    this._ask();
  }

  async _ask() {
    try {
      const state = await this._run.state();
      if (this._isClosed) return;
      this.mayTell = state.commands;
      if (state.identity !== this._run.facts.identity) {
        await this._run.refresh();
        if (this._isClosed) return;
        this._events.grown();
      }
      this._show(state);
      if (!state.live) return;
    } catch (error) {
      if (this._isClosed) return;
      if (error.kind !== "RunChanged") this._events.failed(error);
    }
    clearTimeout(this._timer); // of another question that was on its way
    this._timer = setTimeout(() => this._ask(), PERIOD);
  }

  _show(state) {
    this._state = state;
    if (this._controls) this._controls.hidden = !this.mayTell || !state.live;
    const behind = state.behind_s === null ? "" : `, ${duration(1e6 * Math.max(state.behind_s, 0))} behind`;
    const text = !state.live ? "Ended" : this.isFollowing ? `Live${behind}` : `Live${behind}: catch up`;
    this.element.classList.toggle("following", this.isFollowing && state.live);
    this.element.title = state.live ? "Time since the end of the last interval in the tables" : "The run has ended";
    fill(this.element, text);
  }

  /** Buttons that make a peer leave and join, and what becomes of it. */
  controls(peer) {
    const answer = h("p", { class: "quiet", role: "status" });
    const button = (action, text) => h("button", { type: "button", class: "small", onclick: async () => {
      answer.textContent = `Asked to ${action} …`;
      try {
        const { state, reason } = await this._run.tell(peer, action);
        answer.textContent = state === "obeyed" ? `Has obeyed: ${action}`
          : state === "expired" ? "Did not answer in time" : `Refused: ${reason ?? "no reason given"}`;
      } catch (error) {
        answer.textContent = error.message;
      }
    } }, text);
    this._controls = h("div", { hidden: !this.mayTell }, h("h3", {}, "Ask it to"),
      h("div", { class: "buttons" }, button("leave", "Leave"), button("join", "Join")), answer);
    return this._controls;
  }
}
