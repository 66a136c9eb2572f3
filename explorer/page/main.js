/** Begins: shows the screen that the address names, and the bar above all screens. */

import { read } from "./address.js";
import { onSystemTheme, themeName } from "./colours.js";
import { fill, h } from "./dom.js";
import { showOverlay } from "./overlay.js";
import { showRuns } from "./runs.js";

const page = document.getElementById("page");
const body = h("div", { id: "screen" });
const THEME = "vizpub theme";
let shown = null;

async function route() {
  const wanted = read(location.hash);
  if (shown?.name && shown.name === wanted.run) return shown.show(wanted.state);
  shown?.close?.();
  shown = null;
  try {
    if (wanted.screen === "runs") await showRuns(body);
    else {
      const screen = await showOverlay(body, wanted.run, wanted.state);
      if (read(location.hash).run !== wanted.run) screen.close(); // another one was chosen meanwhile
      else globalThis.explorer = shown = screen;
    }
  } catch (error) {
    document.title = "vizpub";
    fill(body, h("main", { class: "waiting" },
      h("p", { role: "alert" }, error.message), h("p", {}, h("a", { href: "#/" }, "All runs"))));
  }
}

function paint() {
  button.textContent = themeName() === "dark" ? "Light" : "Dark";
  shown?.show?.(shown.state);
}

const button = h("button", {
  type: "button", class: "small", onclick: () => {
    const next = themeName() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(THEME, next);
    } catch { /* a browser may keep nothing */ }
    paint();
  },
});

try {
  const kept = localStorage.getItem(THEME);
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* likewise */ }

fill(page,
  h("header", { class: "top" },
    h("a", { href: "#/", class: "brand" }, "vizpub"),
    h("nav", { "aria-label": "Screens" }, h("a", { href: "#/" }, "Runs")),
    h("span", { class: "grow" }), button),
  body);
onSystemTheme(paint);
paint();
addEventListener("hashchange", route);
route();
