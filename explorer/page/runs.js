/** The screen Runs: a row for each run of the workspace. */

import { write } from "./address.js";
import { curve } from "./curves.js";
import { runs } from "./data.js";
import { fill, h } from "./dom.js";
import { number } from "./numbers.js";
import { duration } from "./time.js";

/** Show it in an element. */
export async function showRuns(page) {
  document.title = "Runs – vizpub";
  fill(page, h("main", { class: "runs" }, h("h1", {}, "Runs"), h("p", { class: "quiet" }, "Loading…")));
  const { workspace, runs: found } = await runs();
  fill(
    page,
    h(
      "main", { class: "runs" },
      h("h1", {}, "Runs"),
      h("p", { class: "quiet" }, "Workspace ", h("code", {}, workspace)),
      found.length ? table(found) : nothing(),
    ),
  );
}

const nothing = () =>
  h(
    "div", { class: "empty" },
    h("p", {}, "There are no runs yet. Create one, for example with"),
    h("pre", {}, "vizpub demo\nvizpub ingest PATH --run NAME"),
  );

const COLUMNS = [
  ["Run"], ["System"], ["Peers", "n"], ["Topics", "n"], ["Intervals", "n"], ["Length", "n"],
  ["Messages", "n"], ["Hit ratio", "n"], ["Peers through time"],
];

const table = (found) =>
  h(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" },
    h(
      "table", {},
      h("thead", {}, h("tr", {}, COLUMNS.map(([text, kind]) =>
        h("th", { scope: "col", class: kind }, text)))),
      h("tbody", {}, found.map(row)),
    ),
  );

function row(run) {
  const ready = run.state === "complete";
  const name = ready
    ? h("a", { href: write(run.run, "overlay") }, run.run)
    : h("span", {}, run.run);
  const head = h("th", { scope: "row" }, name, run.live ? h("span", { class: "tag" }, "live") : null);
  if (!ready) {
    return h("tr", {}, head, h("td", { colspan: COLUMNS.length - 1, class: "quiet" },
      run.why ? `${run.state}: ${run.why}` : `${run.state}, not complete`));
  }
  const figures = [run.peers, run.topics, run.intervals].map(number);
  const messages = run.messages
    ? h("a", { href: write(run.run, "messages") }, number(run.messages)) : number(run.messages);
  const length = run.interval_us == null ? "–" : duration(run.interval_us);
  return h(
    "tr", {}, head,
    h("td", {}, run.protocol ?? run.source),
    [...figures, length, messages, number(run.hit_ratio)].map((text) => h("td", { class: "n" }, text)),
    h("td", { class: "spark" }, run.curve
      ? curve(run.curve.values.map((value) => value ?? NaN)) : "–"),
  );
}
