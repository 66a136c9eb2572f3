/** Answers from the kernel of a notebook, through the widget around the page (widget.js). */

import { carrier } from "./data.js";

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

/** Links to files ask the kernel, too. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[download]");
  const path = link?.getAttribute("href");
  if (!path?.startsWith("api/")) return;
  event.preventDefault();
  const answer = await carrier.fetch(path);
  const [, name] = answer.headers.get("content-disposition").split("''");
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await answer.blob());
  file.download = decodeURIComponent(name);
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
});
