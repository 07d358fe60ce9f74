// How a person points: with a finger the keyboard is on the screen, and takes half of it.

export const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;
