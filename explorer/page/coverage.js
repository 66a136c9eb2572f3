/** How messages reached their eligible peers: a curve of one, or bands of many. */

import { h, svg } from "./dom.js";
import { amount, number } from "./numbers.js";
import { nice, ticks } from "./time.js";

const HEIGHT = 100, WIDTH = 1000;
const y = (share) => 96 - 92 * share;

const percent = (share) => `${number(Number((100 * share).toPrecision(4)))} %`;

/** The steps of a share along an axis: M…H…V…; it goes on to the end. */
function steps(at, shares, x) {
  let d = "";
  at.forEach((place, i) => {
    d += d ? `H${x(place).toFixed(2)}V${y(shares[i]).toFixed(2)}` : `M${x(place).toFixed(2)} ${y(shares[i]).toFixed(2)}`;
  });
  return d && `${d}H${WIDTH}`;
}

const drawing = (...parts) => svg("svg", {
  viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "curve", "aria-hidden": "true",
}, ...parts);

const rule = (share) => svg("path", { d: `M0 ${y(share)}H${WIDTH}`, class: "rule" });

/** The row of the clock with the curve of one message, and marks where shares are reached. */
export function coverageRow(clock, way, said, text) {
  const { at, delivered } = way.reached, { eligible } = way.message.facts.figures;
  const x = (place) => WIDTH * clock.share(place);
  const shown = h("strong", {});
  const known = at.length > 0 && eligible > 0;
  const marks = way.marks().filter(([, place]) => place !== null);
  const picture = drawing(
    rule(1),
    ...marks.map(([, place]) => svg("path", { d: `M${x(place)} 0V${HEIGHT}`, class: "mark" })),
    ...(known ? [svg("path", { d: steps(at, Array.from(delivered, (count) => count / eligible), x), class: "line" })] : []),
  );
  // Marks at the same place share a label, or it could not be read.
  const labels = new Map();
  marks.forEach(([share, place]) => labels.set(place, [...(labels.get(place) ?? []), percent(share)]));
  const row = h("div", { class: "row coverage" },
    h("div", { class: "gutter", id: text }, h("span", { class: "name" }, "Coverage"), shown,
      h("span", { class: "quiet" }, known ? `of ${amount(eligible, "eligible peer")}` : said)),
    clock.track([picture, [...labels].map(([place, texts], i, all) => {
      const at = clock.share(place), next = all[i + 1] ? clock.share(all[i + 1][0]) : 2;
      const left = at > 0.93 || (next - at < 0.05 && at > 0.05);
      return h("span", { class: left ? "at left" : "at", style: `left:${100 * at}%` }, texts.join(", "));
    })],
    { "aria-labelledby": text }));
  return { row, show: (count) => (shown.textContent = known && count !== null ? percent(count / eligible) : "–") };
}

/** The list of where shares of the eligible peers were reached. */
export const markList = (way, placed) =>
  way.marks().map(([share, place]) => [percent(share), place === null ? "never" : placed(place)]);

/** A chart of many messages: bands of quantiles, the median, and lines where there are few. */
export function coverageChart({ meta, at, quantiles, start, line_at, line_share }, elapsed, axis) {
  const last = at.length ? at[at.length - 1] || 1 : 1;
  const x = (place) => (WIDTH * place) / last;
  const of = (row) => quantiles.subarray(row * at.length, (row + 1) * at.length);
  const band = (low, high, kind) => {
    const up = steps(at, of(high), x);
    const back = [...at.keys()].reverse().map((i) => `L${x(at[i]).toFixed(2)} ${y(of(low)[i]).toFixed(2)}`);
    return svg("path", { d: `${up}${back.join("")}Z`, class: `band ${kind}` });
  };
  const lines = meta.names.map((_, i) => svg("path", {
    d: steps(line_at.subarray(start[i], start[i + 1]), line_share.subarray(start[i], start[i + 1]), x),
    class: "one",
  }));
  const text = `Coverage of ${amount(meta.messages, "message")}: the share of eligible peers that they reached, ${axis}.`;
  return h("figure", { class: "chart" },
    h("div", { class: "plot" },
      h("div", { class: "scale", "aria-hidden": "true" }, [1, 0.5, 0].map((share) => h("span", {}, percent(share)))),
      h("div", { class: "area", role: "img", "aria-label": text },
        drawing(rule(1), rule(0.5), rule(0), band(0, 4, "outer"), band(1, 3, "inner"), ...lines,
          svg("path", { d: steps(at, of(2), x), class: "line" })))),
    h("div", { class: "below", "aria-hidden": "true" }, ticks(0, last, Math.max(nice(last / 7), 1)).map((place) =>
      h("span", { class: place > 0.95 * last && "end", style: `left:${(100 * place) / last}%` }, elapsed(place)))),
    h("figcaption", {}, [
      ["outer", `middle 90 % of ${amount(meta.sampled, "message")}`], ["inner", "middle 50 %"], ["median", "median"],
      ...(lines.length ? [["one", "each message"]] : []),
    ].map(([kind, meaning]) => h("span", {}, h("i", { class: `swatch ${kind}` }), meaning))));
}

/** Words for what a chart leaves out; empty where it is nothing. */
export function leftOut({ messages, left_out, sampled }) {
  const some = left_out
    ? `${amount(left_out, "message")} left out: refused by a peer, without eligible peers, or of unknown time.` : "";
  const part = sampled < messages ? `The bands are of ${number(sampled)} messages, evenly spread among the ${number(messages)}.` : "";
  return [some, part].filter(Boolean).join(" ");
}
