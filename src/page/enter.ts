// Handles the Enter key in a field.

/** Safari sends this code for the Enter key that ends a composition. */
const COMPOSED = 229;

/** Returns whether Enter sends the text: not with Shift, and not while it selects a suggestion of an input method. */
export const isSendingEnter = (event: KeyboardEvent): boolean =>
  event.key === "Enter" && !event.shiftKey && !isComposing(event);

export const isComposing = ({ isComposing, keyCode }: KeyboardEvent): boolean =>
  isComposing || keyCode === COMPOSED;
