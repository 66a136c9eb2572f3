/** A shape that is drawn over a picture, to choose what is in it. */

import { icon, roundButton, svg } from "./dom.js";

export class Lasso {
  /** One draws on `canvas` with Shift, or once the button is pressed; `drawn(isWithin)` gets a test of pixels. */
  constructor(canvas, drawn) {
    this._canvas = canvas;
    this._drawn = drawn;
    this._line = svg("path", {});
    this.element = svg("svg", { class: "lasso", "aria-hidden": "true" }, this._line);
    this.button = roundButton("Choose peers by a shape (Shift and drag)", icon("lasso"), () => this._setOn(!this._isOn));
    this._setOn(false);
    const moves = { pointermove: (event) => this._draw(event), pointerup: (event) => this._end(event), pointercancel: () => this._stop() };
    // Before deck.gl, which would move the picture.
    canvas.addEventListener("pointerdown", (event) => this._begin(event), { capture: true });
    for (const [name, act] of Object.entries(moves)) {
      canvas.addEventListener(name, (event) => {
        if (!this._points) return;
        event.stopPropagation();
        act(event);
      }, { capture: true });
    }
  }

  _setOn(isOn) {
    this._isOn = isOn;
    this.button.setAttribute("aria-pressed", isOn);
    this._canvas.classList.toggle("drawing", isOn);
  }

  _begin(event) {
    if (event.button !== 0 || !(event.shiftKey || this._isOn)) return;
    event.stopPropagation();
    event.preventDefault();
    this._canvas.setPointerCapture(event.pointerId);
    this._points = [];
    this._draw(event);
  }

  _draw({ clientX, clientY }) {
    const { left, top } = this._canvas.getBoundingClientRect();
    this._points.push(`${clientX - left} ${clientY - top}`);
    this._line.setAttribute("d", `M${this._points.join("L")}Z`);
  }

  _end(event) {
    this._draw(event);
    const context = document.createElement("canvas").getContext("2d");
    const shape = new Path2D(this._line.getAttribute("d"));
    this._stop();
    this._drawn((x, y) => context.isPointInPath(shape, x, y));
  }

  _stop() {
    this._points = null;
    this._line.setAttribute("d", "");
    this._setOn(false);
  }
}
