// Skein's logo: an S of yarn on indigo, whose inner thread has a loose end. It is used on the page, as its icon, and
// for the icons of an installed page.

const YARN =
  "M22 11C21.5 8.2 19.2 6.6 16 6.6c-3.5 0-6.2 1.8-6.2 4.7 0 6.6 12.6 3 12.6 9.6 0 2.9-2.7 4.7-6.4 4.7-3.4 0-5.9-1.6-6.4-4.3";

/** The strokes in a square of 32 units, from bottom to top. */
export const STROKES = [
  { d: YARN, width: 8.2, colour: "#fffefb" },
  { d: YARN, width: 4.8, colour: "#3f35a3" },
  { d: `${YARN}M22 11c.4 2 2.1 2.9 4.7 2`, width: 2.4, colour: "#ff8a66" },
] as const;
export const GROUND = "#3f35a3";

/** The state of a run, shown as a dot in the logo's corner. */
export type Sign = "running" | "waiting" | "done";
const DOTS: Readonly<Record<Sign, string>> = { running: "#ff8a66", waiting: "#f3b950", done: "#5fd08a" };

const strokes = (): string =>
  STROKES.map(({ d, width, colour }) => `<path d="${d}" stroke="${colour}" stroke-width="${width}"/>`).join(
    "",
  );

/** Returns the logo as an element whose size comes from the stylesheet. */
export const markOf = (): string =>
  `<svg class="mark-of-skein" viewBox="0 0 32 32" aria-hidden="true">` +
  `<rect width="32" height="32" rx="8" fill="${GROUND}"/>${strokes()}</svg>`;

/** Returns the logo as an image. `round` is the radius of its corners: 0 for systems that crop icons themselves. */
export function iconOf({ round, sign }: { round: number; sign?: Sign | undefined }): string {
  const dot = sign
    ? `<circle cx="24.5" cy="24.5" r="7" fill="${DOTS[sign]}" stroke="#211c16" stroke-width="2"/>`
    : "";
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke-linecap="round" stroke-linejoin="round">` +
    `<rect width="32" height="32" rx="${round}" fill="${GROUND}"/>${strokes()}${dot}</svg>`
  );
}
