/** The widget of a notebook (explorer/notebook.py): shows the page in a frame, and passes its questions
 * to the kernel. Notebooks load this file alone. */

const ask = (view, model, path) => new Promise((resolve) => {
  const id = `${view.name} ${view.asked++}`;
  view.waiting.set(id, resolve);
  model.send({ id, path });
});

/** The bytes of a buffer of a message, in memory of their own. */
const bytes = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);

function unpack(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function render({ model, el }) {
  // Messages reach all views of the widget, in all browsers.
  const view = { name: Math.random().toString(36).slice(2), asked: 0, waiting: new Map() };
  const frame = document.createElement("iframe");
  frame.title = "vizpub";
  frame.sandbox = "allow-scripts allow-downloads";
  frame.allow = "clipboard-write; fullscreen";
  const line = document.createElement("p");
  line.textContent = "Waiting for the kernel. If nothing comes, run the cell again.";
  el.replaceChildren(line);
  let port = null;
  let shown = null; // the address in the frame

  const resize = () => {
    frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0; display: block`;
  };
  const receive = (reply, buffers) => {
    view.waiting.get(reply.id)?.({ ...reply, content: bytes(buffers[0]) });
    view.waiting.delete(reply.id);
  };
  const lead = () => {
    if (model.get("state") === shown) return;
    shown = model.get("state");
    port?.postMessage({ state: shown });
  };
  const connect = () => { // again, when the notebook moves the frame
    const channel = new MessageChannel();
    port?.close();
    port = channel.port1;
    port.onmessage = async ({ data }) => {
      if (data.state !== undefined) {
        shown = data.state;
        model.set("state", shown);
        return model.save_changes();
      }
      const reply = await ask(view, model, data.path);
      channel.port1.postMessage({ ...reply, id: data.id }, [reply.content]);
    };
    shown = model.get("state");
    frame.contentWindow.postMessage({ state: shown }, "*", [channel.port2]);
  };

  resize();
  model.on("change:height", resize);
  model.on("change:state", lead);
  model.on("msg:custom", receive);
  ask(view, model, "page").then(async ({ content }) => {
    frame.srcdoc = await unpack(content);
    frame.addEventListener("load", connect);
    el.replaceChildren(frame);
  });
  return () => {
    port?.close();
    model.off("change:height", resize);
    model.off("change:state", lead);
    model.off("msg:custom", receive);
  };
}

export default { render };
