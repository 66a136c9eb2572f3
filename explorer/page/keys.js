/** Keys of a screen: they work unless the focus is in a field, or on what takes the key itself. */

/** Listen for keys: name → what it does, with the event. Gives what ends it. */
export function listen(does) {
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input:not([type=range]), select, textarea, summary");
    if (typing || (event.key === " " && event.target.closest?.("button, label, a"))) return;
    if (!does[event.key]) return;
    event.preventDefault();
    does[event.key](event);
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}

/** The keys of a clock. */
export const ofClock = (clock) => ({
  " ": () => clock().toggle(),
  ArrowLeft: (event) => (event.shiftKey ? clock().toChange(false) : clock().step(-1)),
  ArrowRight: (event) => (event.shiftKey ? clock().toChange(true) : clock().step(1)),
  Home: () => clock().toStart(),
  End: () => clock().toEnd(),
});

/** The keys of a picture, which may be missing. */
export const ofPicture = (picture) => ({
  "+": () => picture()?.zoom(0.5),
  "-": () => picture()?.zoom(-0.5),
  f: () => picture()?.fit(),
});
