// Peers of a ring that report to a collector of vizpub. Node.js 18 or later, without packages.
//
//     vizpub live collect lab --no-token --port 8600
//     node peer.mjs http://127.0.0.1:8600/v1/runs/lab 10 30
//
// The arguments are the URL of the run, the number of peers and of intervals. VIZPUB_TOKEN holds the
// collector's token, if it has one.

const [url, peers = "10", intervals = "30"] = process.argv.slice(2);
const headers = { "content-type": "application/x-ndjson" };
if (process.env.VIZPUB_TOKEN) headers.authorization = `Bearer ${process.env.VIZPUB_TOKEN}`;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Send lines until the collector has them; throws if it refuses all of them. */
async function send(lines) {
  for (let delay = 1000; ; delay = Math.min(2 * delay, 30_000)) {
    let answer;
    try {
      answer = await fetch(`${url}/reports`, { method: "POST", headers, body: lines });
    } catch (error) {
      console.error(`${error.cause?.message ?? error.message}; again in ${delay / 1000} s`);
      await sleep(delay);
      continue;
    }
    if (answer.status === 202) return answer.json();
    if (![408, 429, 502, 503, 504].includes(answer.status)) {
      throw new Error(`${answer.status}: ${await answer.text()}`);
    }
    // A report that is sent twice counts once, so it is safe to send again.
    await sleep(1000 * Number(answer.headers.get("retry-after") ?? delay / 1000));
  }
}

// All peers count intervals from the run's epoch, by the collector's clock.
const answer = await fetch(url, { headers });
if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
const { header } = await answer.json();
const length = header.interval_us / 1000;
const first = Math.floor(header.now_us / header.interval_us);
const start = performance.now() - (header.now_us % header.interval_us) / 1000;

for (let interval = first; interval < first + Number(intervals); interval++) {
  await sleep(start + (interval - first + 1) * length - performance.now());
  const reports = Array.from({ length: Number(peers) }, (_, peer) => ({
    format: "vizpub.report/1",
    peer: `peer-${peer}`,
    interval,
    seq: interval,
    neighbors: [`peer-${(peer + 1) % Number(peers)}`],
    topics: ["news"],
    sent: [],
    received: [],
    left: interval === first + Number(intervals) - 1,
  }));
  const { taken, refused } = await send(reports.map((report) => `${JSON.stringify(report)}\n`).join(""));
  console.log(`interval ${interval}: ${taken} taken, ${refused} refused`);
}
