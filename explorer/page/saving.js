/** Saves files that no server sends. */

/** Let links to files of the page's interface save what `answer(path)` gives: { name, blob }. */
export function saveLinks(answer) {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[download]");
    const path = link?.getAttribute("href");
    if (!path?.startsWith("api/")) return;
    event.preventDefault();
    const { name, blob } = await answer(path);
    const file = document.createElement("a");
    file.href = URL.createObjectURL(blob);
    file.download = name;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
  });
}
