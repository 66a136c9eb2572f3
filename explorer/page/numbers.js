/** Numbers as text. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A value as people read it: four digits that count; a dash = unknown. */
export function number(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Number.isInteger(value)) return WHOLE.format(value);
  const size = Math.abs(value);
  if (size >= 10000) return WHOLE.format(value);
  return size < 0.001 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** 1, "peer" → "1 peer"; 2, "peer" → "2 peers"; `many` where it does not end in s. */
export const amount = (count, noun, many = `${noun}s`) =>
  `${WHOLE.format(count)} ${count === 1 ? noun : many}`;

/** A name of a metric or attribute for people: 'in_degree' → 'in degree'. */
export const title = (name) => name.replace(/^(gauge|attribute):/, "").replaceAll("_", " ");

/** A long name by its ends, as everything shows it: `shorten` of vizpub.model.wording. */
export function short(name, most = 24) {
  const characters = [...name];
  if (characters.length <= most) return name;
  const head = Math.min(4, Math.floor(most / 3));
  return `${characters.slice(0, head).join("")}…${characters.slice(head + 1 - most).join("")}`;
}
