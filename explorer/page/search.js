/** A box in which a peer, or a topic, is found by a part of its name. */

import { fill, h, id } from "./dom.js";
import { amount } from "./numbers.js";

const MOST = 8;

/** `found(number)` is called with the number of the one that is chosen; `kind` is what it is. */
export function search(names, label, found, placeholder = "Name of a peer", kind = "peer") {
  const list = h("ul", { role: "listbox", id: id("found"), "aria-label": "Found", hidden: true });
  const told = h("div", { class: "told quiet", role: "status" });
  const input = h("input", {
    type: "search", role: "combobox", "aria-expanded": "false", "aria-controls": list.id,
    "aria-autocomplete": "list", "aria-label": label, placeholder, autocomplete: "off",
    spellcheck: "false",
  });
  let matches = [], at = -1;
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    told.textContent = "";
  };
  const take = (peer) => {
    input.value = "";
    close();
    found(peer);
  };
  const mark = (place) => {
    at = (place + matches.length) % matches.length;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === at));
    input.setAttribute("aria-activedescendant", list.children[at].id);
  };
  input.addEventListener("input", () => {
    const all = matching(names, input.value);
    matches = all.slice(0, MOST);
    at = -1;
    fill(list, matches.map((peer) => h(
      "li", {
        role: "option", id: id("option"), "aria-selected": "false",
        onpointerdown: (event) => (event.preventDefault(), take(peer)),
      }, names[peer],
    )));
    list.hidden = !matches.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    told.textContent = !input.value ? "" : !all.length ? `No such ${kind}`
      : all.length > MOST ? `${amount(all.length, kind)}: type more of the name` : "";
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.value = "", close();
    else if (!matches.length || list.hidden) return;
    else if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at < 0 ? matches.length - 1 : at - 1);
    else if (event.key === "Enter") take(matches[Math.max(at, 0)]);
    else return;
    event.preventDefault();
  });
  input.addEventListener("blur", close);
  return h("div", { class: "search" }, input, list, told);
}

/** Numbers of the peers with a part of a name; the ones that begin with it, or are it, first. */
export function matching(names, text) {
  if (!text) return [];
  const wanted = text.toLowerCase();
  const exact = [], first = [], rest = [];
  names.forEach((name, peer) => {
    const place = name.toLowerCase().indexOf(wanted);
    if (name === text) exact.push(peer);
    else if (place === 0) first.push(peer);
    else if (place > 0) rest.push(peer);
  });
  return [...exact, ...first, ...rest];
}
