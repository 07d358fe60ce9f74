// Returns true for touch input, where the on-screen keyboard takes half of the screen.

export const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;
