/** Answers from the kernel of a notebook, through the widget around the page (widget.js). */

import { carrier } from "./data.js";
import { saveLinks } from "./saving.js";

const { port, state } = globalThis.notebook;
const waiting = new Map();
let asked = 0;

/** As `fetch`. */
carrier.fetch = (path, { signal } = {}) => new Promise((resolve, reject) => {
  const id = asked++;
  signal?.addEventListener("abort", () => {
    waiting.delete(id);
    reject(signal.reason);
  });
  waiting.set(id, resolve);
  port.postMessage({ id, path });
});

port.onmessage = ({ data }) => {
  if (data.state === undefined) {
    const { id, status, headers, content } = data;
    waiting.get(id)?.(new Response(content, { status, headers }));
    waiting.delete(id);
  } else if (data.state !== location.hash) {
    location.hash = data.state;
  }
};

history.replaceState(null, "", state);
for (const name of ["hashchange", "addresschange"]) {
  addEventListener(name, () => port.postMessage({ state: location.hash }));
}

saveLinks(async (path) => {
  const answer = await carrier.fetch(path);
  const [, name] = answer.headers.get("content-disposition").split("''");
  return { name: decodeURIComponent(name), blob: await answer.blob() };
});
