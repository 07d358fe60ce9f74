// The Enter key in a field.

/** In Safari the Enter that ends a composition comes after it, with this code. */
const COMPOSED = 229;

/** Whether Enter sends what is written: not with Shift, and not when it chooses what an input method offers. */
export const isSendingEnter = (event: KeyboardEvent): boolean =>
  event.key === "Enter" && !event.shiftKey && !isComposing(event);

export const isComposing = ({ isComposing, keyCode }: KeyboardEvent): boolean =>
  isComposing || keyCode === COMPOSED;
