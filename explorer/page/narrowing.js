/** Links to parts of a run that has more than the page draws. */

import { write } from "./address.js";
import { h } from "./dom.js";
import { number, short } from "./numbers.js";
import { exploreCommand } from "./printed.js";
import { intervalOf } from "./time.js";

const MOST_TOPICS = 3;

/** A span of `count` intervals around the time of a state, as "10-20". */
function around({ clock }, { t }, count) {
  const first = Math.max(Math.min(intervalOf(clock, t) - (count >> 1), clock.last - count + 1), clock.first);
  return `${first}-${first + count - 1}`;
}

const partLink = ({ facts }, state, changes, text) =>
  h("a", { href: write(facts.run, "overlay", { ...state, ...changes }) }, text);

/** The links of `leftOut` are not drawn (overlaydata.js): how many there are, and what leaves fewer. */
export function narrowing(run, state, [count, most, intervals]) {
  const { facts } = run, { topics, layers } = state, chosen = layers ?? facts.counted;
  const span = intervals ? around(run, state, intervals) : null;
  const others = facts.knows.subscriptions && !topics.length ? facts.topics.slice(0, MOST_TOPICS) : [];
  const ways = [
    span && partLink(run, state, { intervals: span }, `intervals ${span.replace("-", " to ")}`),
    ...(chosen.length > 1 ? chosen.map((layer) => partLink(run, state, { layers: [layer] }, `layer ${layer}`)) : []),
    ...others.map((name, topic) => partLink(run, state, { topics: [topic] }, `topic ${short(name)}`)),
    facts.topics.length > others.length && others.length && "other topics on the left",
  ].filter(Boolean);
  return [
    `No links are drawn: there are ${number(count)} validity periods of links, and the page draws ${number(most)} `
      + "at most. Show a part: ",
    ways.flatMap((way, i) => [i ? ", " : "", way]), ".",
    span && h("pre", { tabindex: "0", "aria-label": "The same by command" }, exploreCommand(facts.run, span)),
  ];
}

/** A link to a quarter of the intervals, of a run with too many times of change. */
export function quarter(run, state) {
  const { first, last } = run.clock, span = around(run, state, Math.ceil((last + 1 - first) / 4));
  return partLink(run, state, { intervals: span }, `Show intervals ${span.replace("-", " to ")}`);
}
