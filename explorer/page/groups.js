/** Peers by the values of an attribute: a group for each of the most common values, one for all others. */

import { theme } from "./colours.js";

const ANOTHER = "another value";

/** The value that stands for a group, by its place, which is after the last one for another value. */
export const groupText = (groups, place) => (Number.isNaN(place) ? "–" : groups[place] ?? ANOTHER);

/** A column of groups at a time, with the numbers of `peers` in each and of those without a value. */
export function grouped({ name, groups }, values, peers) {
  const counts = new Array(groups.length + 1).fill(0);
  let unknown = 0;
  for (const peer of peers) {
    if (Number.isNaN(values[peer])) unknown++;
    else counts[Math.min(values[peer], groups.length)]++;
  }
  return { name, values, groups, counts, unknown };
}

/** Columns of groups of two runs as columns of common groups, with the numbers of peers of both. */
export function withCommonGroups(sides) {
  const groups = [...new Set(sides.flatMap((of) => of.groups))].slice(0, theme().groups.length);
  const counts = Array.from({ length: groups.length + 1 }, () => [0, 0]);
  const moved = sides.map((of) => [...of.groups, null].map((value) =>
    (groups.includes(value) ? groups.indexOf(value) : groups.length)));
  sides.forEach((of, side) => of.counts.forEach((count, place) => (counts[moved[side][place]][side] += count)));
  return sides.map(({ name, values }, side) => ({
    name, groups, counts, unknown: sides.map((of) => of.unknown),
    values: values.map((place) => (Number.isNaN(place) ? NaN : moved[side][place] ?? groups.length)),
  }));
}

/** Rows of a legend: [colour, text, number of peers] of each group that has peers. */
export function groupRows({ groups, counts, unknown }) {
  const { groups: colours, others, unknown: none } = theme();
  const rows = counts.map((count, place) => [place < groups.length ? colours[place] : others, groupText(groups, place), count]);
  return [...rows, [none, "unknown", unknown]].filter(([, , count]) => [count].flat().some(Boolean));
}
