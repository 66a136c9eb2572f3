/** Colours: of values, of what is highlighted, in light and dark. Palettes are safe for the
 * colour-blind: viridis, whose end that stands out most from the ground is the largest value; groups
 * have the colours of Okabe and Ito. */

const VIRIDIS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

const OKABE_ITO = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0],
];

const THEMES = {
  light: {
    ramp: VIRIDIS.slice(0, 8).reverse(), unknown: [176, 184, 194], plain: [47, 111, 222],
    outline: [255, 255, 255], link: [70, 84, 104], chosen: [214, 40, 40], path: [213, 94, 0],
    ink: [24, 33, 46], quiet: [88, 101, 121], grid: [208, 216, 226], missed: [178, 58, 136],
    groups: [...OKABE_ITO, [24, 33, 46]], others: [112, 120, 132],
  },
  dark: {
    ramp: VIRIDIS.slice(1), unknown: [86, 96, 110], plain: [110, 164, 255],
    outline: [16, 20, 27], link: [150, 166, 188], chosen: [255, 107, 107], path: [255, 159, 67],
    ink: [230, 235, 242], quiet: [154, 167, 184], grid: [48, 58, 72], missed: [240, 130, 205],
    groups: [...OKABE_ITO, [240, 228, 66]], others: [150, 160, 174],
  },
};

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The colours of the theme that is chosen, or the system's. */
export const theme = () => THEMES[themeName()];

export const themeName = () =>
  document.documentElement.dataset.theme ?? (DARK.matches ? "dark" : "light");

/** Call when the system changes between light and dark. */
export const onSystemTheme = (changed) => DARK.addEventListener("change", changed);

/** The colour at a share of the way from the least to the largest value. */
export function coloured(ramp, share) {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  return ramp[low].map((part, i) => Math.round(part + (place - low) * (ramp[low + 1][i] - part)));
}

/** The ramp as a background of CSS. */
export const gradient = (ramp) =>
  `linear-gradient(to right, ${ramp.map((c) => `rgb(${c.join(" ")})`).join(", ")})`;

/** 256 colours of the ramp: a look-up is faster than a mixture for each peer. */
export function table(ramp) {
  const found = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) found.set(coloured(ramp, i / 255), 3 * i);
  return found;
}

/** Where a value is between two ends, 0 to 1; in the middle where they are equal. */
export const share = (value, low, high) => (high > low ? (value - low) / (high - low) : 0.5);
