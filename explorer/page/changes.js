/** The overlay of a run that has grown, from what the page has of it and the changes since
 * (explorer/changes.py). */

const KEYS = { peer: ["peer"], subscriber: ["subscriber"], pair: ["src", "dst"] };

/** The arrays of the new answer; those of the old one stay as they are. */
export function merge(old, changes) {
  const times = new Float64Array(changes.same[0] + changes.times.length);
  times.set(old.times.subarray(0, changes.same[0]));
  times.set(changes.times, changes.same[0]);
  const merged = { times };
  for (const [kind, keys] of Object.entries(KEYS)) {
    if (!(keys[0] in changes)) continue;
    const [removed, added] = [changes[`${kind}_removed`], changes[`${kind}_added`]];
    const rows = old[keys[0]].length - removed.length + added.length;
    const from = sources(rows, removed, added);
    for (const name of [...keys, `${kind}_begin`, `${kind}_end`]) {
      merged[name] = new old[name].constructor(rows);
      for (let row = 0; row < rows; row++) {
        merged[name][row] = from[row] < 0 ? changes[name][-from[row] - 1] : old[name][from[row]];
      }
    }
    // An open end is the rank after all others.
    const ends = merged[`${kind}_end`];
    for (let row = 0; row < rows; row++) {
      if (from[row] >= 0 && ends[row] === old.times.length) ends[row] = times.length;
    }
  }
  return merged;
}

/** Where each row comes from: its place in the old answer, or -1 - its place among those that are added. */
function sources(rows, removed, added) {
  const from = new Int32Array(rows);
  let place = 0, dropped = 0, taken = 0;
  for (let row = 0; row < rows; row++) {
    if (added[taken] === row) {
      from[row] = -1 - taken++;
      continue;
    }
    for (; removed[dropped] === place; dropped++) place++;
    from[row] = place++;
  }
  return from;
}
