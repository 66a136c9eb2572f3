/** What is shown, in the address: `#/run/lab/overlay?t=50&topic=3&colour=degree&sel=17`. */

/** What an address means that says nothing else. Numbers are of peers and topics; t is a tick. */
export const PLAIN = Object.freeze({
  t: null, layers: null, topics: [], how: "any", colour: "degree", size: "", scale: "run",
  layout: "force", sel: null, ego: 0, to: null, curves: null, view: "picture",
});

/** The screen and its state. */
export function read(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [, kind, name] = path.split("/");
  if (kind !== "run" || !name) return { screen: "runs" };
  const given = new URLSearchParams(query);
  const number = (key) => (/^\d{1,16}$/.test(given.get(key) ?? "") ? Number(given.get(key)) : null);
  const one = (key, known) => (known.includes(given.get(key)) ? given.get(key) : PLAIN[key]);
  return {
    screen: "overlay",
    run: decoded(name),
    state: {
      t: number("t"),
      layers: given.has("layer") ? given.getAll("layer") : null,
      topics: given.getAll("topic").filter((topic) => /^\d{1,9}$/.test(topic)).map(Number),
      how: one("how", ["any", "all"]),
      colour: given.get("colour") ?? PLAIN.colour,
      size: given.get("size") ?? PLAIN.size,
      scale: one("scale", ["run", "interval"]),
      layout: one("layout", ["force", "circle"]),
      sel: number("sel"),
      ego: Math.min(number("ego") ?? 0, 3),
      to: number("to"),
      curves: given.has("curves") ? given.get("curves").split(",").filter(Boolean) : null,
      view: one("view", ["picture", "table"]),
    },
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a run's overlay in a state; what is plain is left out. */
export function write(run, state) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key === "layers") value?.forEach((layer) => query.append("layer", layer));
    else if (key === "topics") value.forEach((topic) => query.append("topic", topic));
    else if (key === "curves") value && query.set("curves", value.join(","));
    else if (value !== PLAIN[key]) query.set(key, value);
  }
  const asked = query.size ? `?${query}` : "";
  return `#/run/${encodeURIComponent(run)}/overlay${asked}`;
}
