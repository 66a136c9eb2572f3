// Runs first in an exported file: unpacks the page's scripts and starts them. It is no module.
(async () => {
  const page = document.getElementById("page");
  const text = (id) => document.getElementById(id).textContent;

  /** Bytes from gzip in base64. */
  async function unpack(coded) {
    const letters = atob(coded);
    const packed = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  if (!globalThis.DecompressionStream) {
    page.textContent = "This browser is too old for this file: it needs Chrome or Edge 113, Firefox 113, Safari 17, "
      + "or a later version.";
    return;
  }
  try {
    const decode = (bytes) => new TextDecoder().decode(bytes);
    const index = JSON.parse(decode(await unpack(text("index"))));
    const data = text("data");
    // Key → the bytes of an answer; `index` has a text for what has no answer, and says why.
    globalThis.exportedRun = { index, read: (key) => unpack(data.slice(...index[key])) };
    for (const key of ["script deck.gl", "script page"]) {
      const script = document.createElement("script");
      script.textContent = decode(await globalThis.exportedRun.read(key));
      document.head.append(script);
    }
  } catch (error) {
    page.textContent = `This file cannot be shown, perhaps because it is damaged: ${error.message}`;
  }
})();
