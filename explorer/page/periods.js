/** Periods of many things, in ranks, as explorer/periods.py has them: columns `key`, `begin` and
 * `end`, ordered by key and begin. Those of one key neither overlap nor touch. */

/** When any of them holds. */
export function united(parts) {
  if (parts.length === 1) return parts[0];
  const [key, begin, end] = ["key", "begin", "end"].map((name) => concatenated(parts.map((of) => of[name])));
  const order = Uint32Array.from(key.keys()).sort((a, b) => key[a] - key[b] || begin[a] - begin[b]);
  const found = { key: [], begin: [], end: [] };
  for (const row of order) {
    const last = found.key.length - 1;
    if (found.key[last] === key[row] && begin[row] <= found.end[last]) {
      found.end[last] = Math.max(found.end[last], end[row]);
    } else {
      found.key.push(key[row]);
      found.begin.push(begin[row]);
      found.end.push(end[row]);
    }
  }
  return typed(found);
}

/** When all of them hold. */
export const shared = ([first, ...others]) =>
  others.reduce((found, part) => common(found, part, (key) => key), first);

/** The parts of periods in which those of a peer hold too; `peerOf(key)` is that peer. */
export function common(periods, ofPeers, peerOf) {
  const first = new Map();
  ofPeers.key.forEach((peer, row) => first.has(peer) || first.set(peer, row));
  const found = { key: [], begin: [], end: [] };
  for (let row = 0; row < periods.key.length; row++) {
    const peer = peerOf(periods.key[row]);
    for (let of = first.get(peer) ?? Infinity; ofPeers.key[of] === peer; of++) {
      const begin = Math.max(periods.begin[row], ofPeers.begin[of]);
      const end = Math.min(periods.end[row], ofPeers.end[of]);
      if (begin >= end) continue;
      found.key.push(periods.key[row]);
      found.begin.push(begin);
      found.end.push(end);
    }
  }
  return typed(found);
}

const typed = ({ key, begin, end }) => ({
  key: Float64Array.from(key), begin: Int32Array.from(begin), end: Int32Array.from(end),
});

function concatenated(arrays) {
  const found = new Float64Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let place = 0;
  for (const array of arrays) {
    found.set(array, place);
    place += array.length;
  }
  return found;
}
