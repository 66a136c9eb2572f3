/** The menu of saved views: keep what is shown with a note, and come back to it. */

import { read, write } from "./address.js";
import { copy } from "./commands.js";
import { carrier } from "./data.js";
import { fill, h, labelled } from "./dom.js";
import { amount } from "./numbers.js";
import { saveFile } from "./saving.js";
import { LENGTHS, SavedViews } from "./savedviews.js";

/** Folded away; `run` is the name of the run that is shown. */
export class ViewsMenu {
  constructor(run) {
    this.run = run;
    this._root = write(run, "");
    this._status = h("p", { class: "quiet", role: "status" });
    this._body = h("div", { class: "views" });
    this._summary = h("summary", {}, "Views");
    this.element = h("details", {
      class: "chooser file", ontoggle: () => this.element.open && this._open(),
      onkeydown: (event) => event.key === "Escape" && this._close(event),
    }, this._summary, h("div", { class: "menu" }, this._body, this._status));
  }

  async _open() {
    this._views ??= new SavedViews(this.run, await carrier.views());
    this._say(this._views.isLasting ? "" : "This browser keeps nothing here: export your views before you leave.");
    this._show();
  }

  _close(event) {
    event.stopPropagation(); // which clears the selection
    this.element.open = false;
    this._summary.focus();
  }

  _say(text) {
    this._status.textContent = text;
  }

  /** Change the views, and say what became of it. */
  _change(change, success) {
    try {
      const count = change();
      this._say(success(count));
    } catch (error) {
      this._say(error.message);
    }
    this._show();
    this._body.querySelector("input").focus();
  }

  _show() {
    const { fixed, list } = this._views, isEmpty = !fixed.length && !list.length;
    const file = h("input", { type: "file", accept: ".json", hidden: true, onchange: async () => {
      const text = await file.files[0].text().catch(() => ""); // it was changed or removed meanwhile
      this._change(() => this._views.add(text), (count) => `Imported ${amount(count, "view")}.`);
    } });
    const part = (title, views, canChange) => views.length > 0 && [h("h3", {}, title),
      h("ul", {}, views.map((view) => this._item(view, canChange)))];
    fill(this._body,
      this._fields({ name: "", note: "" }, (view) => this._views.put({ ...view, address: this._shown() })),
      part("In this file", fixed, false), part("In this browser", list, true),
      isEmpty && h("p", { class: "quiet" }, "No views of this run are saved."),
      h("div", { class: "buttons" },
        small("Export", () => saveFile(new Blob([this._views.write()], { type: "application/json" }), `${this.run} views.json`),
          { disabled: isEmpty }),
        small("Import …", () => file.click()), file));
  }

  /** What follows the run in the address of what is shown. */
  _shown() {
    const { screen, state } = read(location.hash);
    return write(this.run, screen, state).slice(this._root.length);
  }

  _item(view, canChange) {
    const address = this._root + view.address;
    const isHere = carrier.screens?.includes(read(address).screen) ?? true;
    const item = h("li", {},
      isHere ? h("a", { href: address, onclick: () => (this.element.open = false) }, view.name)
        : h("span", { class: "quiet" }, `${view.name} (not in this file)`),
      view.note && h("p", { class: "note" }, view.note),
      h("div", { class: "buttons" },
        isHere && small("Copy link", (event) => copy(event.target, linkTo(address)), named("Copy link", view)),
        canChange && small("Edit", () => {
          fill(item, this._fields(view, (changes) => this._views.put({ ...view, ...changes }, view)));
          item.querySelector("input").focus();
        }, named("Edit", view)),
        canChange && small("Remove", () => this._change(() => this._views.remove(view), () => `Removed ${view.name}.`),
          named("Remove", view))));
    return item;
  }

  /** Fields for a name and a note; `keep` gets both. A frame of a notebook has no forms. */
  _fields({ name, note }, keep) {
    const ofName = h("input", { type: "text", maxlength: LENGTHS.name, value: name, autocomplete: "off",
      onkeydown: (event) => event.key === "Enter" && save() });
    const ofNote = h("textarea", { rows: 2, maxlength: LENGTHS.note }, note);
    const save = () => {
      const view = { name: ofName.value.trim() || document.title.slice(0, LENGTHS.name), note: ofNote.value.trim() };
      this._change(() => keep(view), () => `Saved ${view.name}.`);
    };
    return h("div", { class: "fields", role: "group", "aria-label": name ? `Edit ${name}` : "Save what is shown" },
      labelled("Name", ofName), labelled("Note", ofNote), small("Save", save));
  }
}

const small = (text, onclick, attributes = {}) => h("button", { type: "button", class: "small", onclick, ...attributes }, text);

const named = (verb, { name }) => ({ "aria-label": `${verb}: ${name}` });

/** Pages in a frame have no address of their own. */
const linkTo = (address) => (location.href.startsWith("about:") ? address : new URL(address, location.href).href);
