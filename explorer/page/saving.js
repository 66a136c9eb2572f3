/** Saves files that no server sends. */

/** Let the browser save a file; a name of a run may have letters that names of files may not. */
export function saveFile(blob, name) {
  const file = document.createElement("a");
  file.href = URL.createObjectURL(blob);
  file.download = name.replace(/[\p{Cc}/\\:*?"<>|]+/gu, " ");
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
}

/** Let links to files of the page's interface save what `answer(path)` gives: { name, blob }. */
export function saveLinks(answer) {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[download]");
    const path = link?.getAttribute("href");
    if (!path?.startsWith("api/")) return;
    event.preventDefault();
    const { name, blob } = await answer(path);
    saveFile(blob, name);
  });
}
