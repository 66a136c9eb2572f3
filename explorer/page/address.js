/** What is shown, in the address: `#/run/lab/overlay?t=50&topic=3&colour=degree&sel=17`. */

const number = (plain = null, most = Infinity) => ({
  plain,
  read: (given) => (/^\d{1,16}$/.test(given[0] ?? "") ? Math.min(Number(given[0]), most) : plain),
});
/** Of a clock: the speed, null = that of its scale; and whether it begins again at the end. */
const pace = () => ({
  speed: { plain: null, read: ([text]) => (/^\d{1,6}(\.\d{1,17})?$/.test(text) ? Number(text) : null) }, loop: number(0, 1),
});
const text = (plain = "") => ({ plain, read: (given) => given[0] ?? plain });
const names = () => ({
  plain: null, joined: true,
  read: (given) => (given.length ? given[0].split(",").filter(Boolean) : null),
});
const numbers = (key) => ({
  plain: [], key, read: (given) => given.filter((text) => /^\d{1,9}$/.test(text)).map(Number),
});
const one = (...known) => ({
  plain: known[0], read: (given) => (known.includes(given[0]) ? given[0] : known[0]),
});

/** What each screen holds, and what an address means that says nothing of it. Numbers are of peers,
 * topics and messages; t is a tick; at is a place of the screen's own clock; with, peer and of are
 * names, which two runs share. */
const SCREENS = {
  overlay: {
    t: number(), how: one("any", "all"), colour: text("degree"), size: text(),
    scale: one("run", "interval"), layout: one("force", "circle"), sel: number(), ego: number(0, 3),
    to: number(), view: one("picture", "table"),
    layers: { plain: null, key: "layer", read: (given) => (given.length ? given : null) },
    topics: numbers("topic"), relays: number(0, 1), window: number(0), least: number(), most: number(),
    component: number(0, 1), pins: numbers("pin"), hidden: numbers("hide"), only: numbers("only"), curves: names(),
    from: number(), until: number(), ...pace(), intervals: { plain: null, read: ([text]) => (/^\d{1,9}-\d{1,9}$/.test(text) ? text : null) },
  },
  compare: {
    with: text(), at: number(), by: one("time", "interval"), later: number(0), of: text(), peer: text(),
    colour: text("degree"), size: text(), scale: one("run", "interval"), layout: one("force", "circle"),
    relays: number(0, 1), window: number(0), least: number(), most: number(), component: number(0, 1),
    curves: names(), from: number(), until: number(), ...pace(),
  },
  messages: {
    topic: number(), publisher: number(), text: text(), by: text("message"), down: number(0, 1),
    first: number(0), along: one("delay", "hop"),
  },
  tables: {
    table: text("metrics/overlay"), by: text(), down: number(0, 1), first: number(0), text: text(),
    peer: number(), other_end: number(), topic: number(), message: number(), interval: number(), columns: names(),
  },
  peer: { peer: number(0), interval: number() },
  topic: { topic: number(0), interval: number() },
  link: { src: number(0), dst: number(0), interval: number() },
  message: {
    m: number(0), by: one("delay", "hop"), at: number(), layout: one("hops", "delay", "race"),
    sel: number(), copies: one("all", "first"), view: one("picture", "table"), ...pace(),
  },
};

/** The screen and its state. */
export function read(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [, kind, name, screen] = path.split("/");
  if (kind !== "run" || !name) return { screen: "runs" };
  const given = new URLSearchParams(query);
  const shown = Object.hasOwn(SCREENS, screen) ? screen : "overlay";
  return { screen: shown, run: decoded(name), state: stateOf(shown, given) };
}

const stateOf = (screen, given) => Object.fromEntries(Object.entries(SCREENS[screen]).map(
  ([name, { key = name, read: meant }]) => [name, meant(given.getAll(key))]));

function decoded(coded) {
  try {
    return decodeURIComponent(coded);
  } catch {
    return coded;
  }
}

/** The address of a screen of a run in a state; what is plain is left out. */
export function write(run, screen, state = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const { plain, key = name, joined } = SCREENS[screen][name];
    // A list may have nothing but the name "null".
    if (String(value) === String(plain) && Array.isArray(value) === Array.isArray(plain)) continue;
    for (const part of joined ? [value.join(",")] : [value].flat()) query.append(key, part);
  }
  return `#/run/${encodeURIComponent(run)}/${screen}${query.size ? `?${query}` : ""}`;
}

/** The address of the page of a "peer", "topic" or "message", by its number. */
export const page = (run, kind, place) => write(run, kind, { [kind === "message" ? "m" : kind]: place });

/** Go to an address that Back leaves again. */
export function push(address) {
  if (address === location.hash) return;
  history.pushState(null, "", address);
  dispatchEvent(new Event("addresschange"));
}

let latest = null, replaced = null, replacing = null;

/** Change the address in its place. Browsers refuse too many changes; the last one counts. */
export function replace(address) {
  latest = address;
  replaced = location.hash;
  replacing ??= setTimeout(() => {
    replacing = null;
    if (location.hash !== replaced) return; // a later address is there
    history.replaceState(null, "", latest);
    dispatchEvent(new Event("addresschange"));
  }, 150);
}

/** Forget what has not been replaced yet: another screen is shown. */
export function settle() {
  clearTimeout(replacing);
  replacing = null;
}
