// Prevents half characters in the output. Some providers split pieces between the two halves of an emoji.

/**
 * Returns a function that delays half a character at the end of a piece until the next piece completes
 * it.
 */
export function wholeCharacters(): (piece: string) => string {
  let half = "";
  return (piece) => {
    const text = half + piece;
    half = isFirstHalf(text.charCodeAt(text.length - 1)) ? text.slice(-1) : "";
    return (half === "" ? text : text.slice(0, -1)).toWellFormed();
  };
}

const isFirstHalf = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
