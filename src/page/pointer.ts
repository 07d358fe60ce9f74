// Returns true for touch input, where the on-screen keyboard covers half of the screen.

export const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;
