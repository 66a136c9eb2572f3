/** Views of a run that people keep: an address of the page with a name and a note. They are in the
 * browser's storage, and in files that one browser writes and another one reads. */

const MOST = 200; // views of a run
const MOST_LETTERS = 1_000_000; // of a file
/** The texts of a view, and their letters at most. */
export const LENGTHS = { name: 200, note: 2000, address: 4000 };

export class SavedViews {
  /** `fixed` = the text of the views that an exported file brings along, or null. */
  constructor(run, fixed) {
    this.run = run;
    this.fixed = fixed ? readViews(fixed).views : [];
    this._key = `vizpub views ${run}`;
    this._list = [];
    /** False where the browser keeps nothing beyond this page. */
    this.isLasting = true;
    try {
      localStorage.getItem(this._key);
    } catch {
      this.isLasting = false;
    }
  }

  /** The views in the browser, which other pages change too. */
  get list() {
    const text = this.isLasting ? localStorage.getItem(this._key) : null;
    try {
      return text ? readViews(text).views : this._list;
    } catch {
      return []; // another program wrote there
    }
  }

  /** Keep a view in the place of another one, or after all. Raises an error where there is no room. */
  put(view, old = null) {
    const { list } = this;
    const place = list.findIndex((one) => isSame(one, old));
    this._keep(place < 0 ? [...list, view] : list.with(place, view));
  }

  remove(view) {
    this._keep(this.list.filter((one) => !isSame(one, view)));
  }

  /** Take in the views of a file, but those that are here already. Gives their number. */
  add(text) {
    const { run, views } = readViews(text);
    if (run !== this.run) throw new Error(`These are views of the run ${run}, not of ${this.run}.`);
    const { list } = this;
    const added = views.filter((view) => ![...list, ...this.fixed].some((one) => isSame(one, view)));
    this._keep([...list, ...added]);
    return added.length;
  }

  /** The content of a file (explorer/offline/views.py reads it, too). */
  write() {
    return JSON.stringify({ run: this.run, views: [...this.fixed, ...this.list] }, null, 1);
  }

  _keep(list) {
    if (list.length > MOST) throw new Error(`A run has at most ${MOST} views: remove some.`);
    if (this.isLasting) localStorage.setItem(this._key, JSON.stringify({ run: this.run, views: list }));
    this._list = list;
  }
}

const isSame = (view, other) => JSON.stringify(view) === JSON.stringify(other);

/** The `run` and the `views` of a file; each view has texts `name`, `note` and `address`: what follows the
 * run in the page's address. Raises an error for other content. */
function readViews(text) {
  if (text.length > MOST_LETTERS) throw new Error("This file is too large for views.");
  const { run = null, views } = parse(text);
  const isView = (view) => Object.entries(LENGTHS).every(([key, most]) =>
    typeof view?.[key] === "string" && view[key].length <= most);
  if (!Array.isArray(views) || !views.every(isView)) {
    throw new Error("This is no file of views: each has a name, a note and an address.");
  }
  return { run, views: views.map(({ name, note, address }) => ({ name, note, address })) };
}

function parse(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw new Error("This is no file of views: it is not JSON.");
  }
}
