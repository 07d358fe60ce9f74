// The logo next to the product's name.

import { GROUND, STROKES } from "../mark.ts";

export const Mark = () => (
  <svg class="mark-of-skein" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill={GROUND} />
    {STROKES.map(({ d, width, colour }) => (
      <path key={width} d={d} stroke={colour} stroke-width={width} />
    ))}
  </svg>
);
