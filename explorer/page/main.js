/** Begins: shows the screen that the address names, and the bar above all screens. */

import { aboutFile } from "./aboutfile.js";
import { read, settle, write } from "./address.js";
import { showCompare } from "./compare.js";
import { onSystemTheme, themeName } from "./colours.js";
import { carrier, Run } from "./data.js";
import { fill, h } from "./dom.js";
import { finder } from "./finder.js";
import { showMessage } from "./message.js";
import { showMessages } from "./messages.js";
import { showOverlay } from "./overlay.js";
import { showRuns } from "./runs.js";
import { showTables } from "./tables.js";
import { showLink, showPeer, showTopic } from "./thing.js";
import { ViewsMenu } from "./viewsmenu.js";

const page = document.getElementById("page");
let body = h("div", { id: "screen" });
const nav = h("nav", { "aria-label": "Screens" });
const find = h("div", {});
const about = h("div", { class: "menus" });
const THEME = "vizpub theme";
let shown = null, menu = null;

const SCREENS = {
  overlay: showOverlay, compare: showCompare, messages: showMessages, message: showMessage,
  tables: showTables, peer: showPeer, topic: showTopic, link: showLink,
};
const TABS = [["overlay", "Overlay"], ["messages", "Messages"], ["compare", "Compare"], ["tables", "Tables"]];

/** What the address names, or what an exported file has in its place. */
function readAddress() {
  const wanted = read(location.hash);
  if (!carrier.run || (wanted.run === carrier.run && carrier.screens.includes(wanted.screen))) return wanted;
  return read(write(carrier.run, "overlay"));
}

async function route() {
  const wanted = readAddress();
  const isShown = shown?.name && shown.name === wanted.run && shown.screen === wanted.screen;
  if (isShown && (shown.isOf?.(wanted.state) ?? true)) return shown.show(wanted.state);
  settle();
  shown?.close?.();
  globalThis.explorer = shown = null;
  // Each has a place of its own: what comes too late fills one that is not on the page any more.
  const place = h("div", { id: "screen" });
  body.replaceWith(place);
  body = place;
  try {
    if (wanted.screen === "runs") {
      Run.forget();
      await showRuns(place);
    } else {
      const screen = await SCREENS[wanted.screen](place, wanted.run, wanted.state);
      if (body !== place) return screen.close(); // another one was chosen meanwhile
      globalThis.explorer = shown = screen;
    }
    if (body === place) navigate(wanted);
  } catch (error) {
    if (body !== place) return;
    Run.forget();
    navigate({ screen: "" });
    document.title = "vizpub";
    fill(place, h("main", { class: "waiting" },
      h("p", { role: "alert" }, error.message), h("p", {}, h("a", { href: "#/" }, carrier.run ? "Overlay" : "All runs"))));
  }
}

/** Links to the screens of the run that is shown. */
function navigate({ screen, run }) {
  const link = (href, text, here) => h("a", { href, "aria-current": here && "page" }, text);
  const tabs = TABS.filter(([name]) => (name !== "messages" || shown?.run?.facts.knows.publications)
    && (carrier.screens?.includes(name) ?? true));
  fill(find, run && shown?.run ? finder(shown.run) : null);
  if (menu?.run !== shown?.name) menu = shown ? new ViewsMenu(shown.name) : null;
  fill(about, menu?.element, aboutFile(shown?.run?.facts));
  fill(nav, carrier.run ? null : link("#/", "Runs", screen === "runs"),
    run && tabs.map(([name, text]) =>
      link(write(run, name), text, name === screen || (screen === "message" && name === "messages"))));
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
    nav,
    h("span", { class: "grow" }), find, about, button),
  body);
onSystemTheme(paint);
paint();
addEventListener("hashchange", route);
route();
