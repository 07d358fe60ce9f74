// Converts text to Unicode's compatibility form (NFKC) in time linear in the text.

/**
 * Normalization sorts consecutive marks in time quadratic in their number. `U+FF9E` and `U+FF9F` are not marks, but
 * they become marks.
 */
const MARK = "[\\p{M}\\uff9e\\uff9f]";
/** The maximum number of consecutive marks. No language has longer sequences (UAX 15, Stream-Safe Text Format). */
const MAX_MARKS = 30;
const LONG_ROW = new RegExp(`${MARK}{${MAX_MARKS}}(?=${MARK})`, "gu");

export const hasLongRowOfMarks = (text: string): boolean => text.search(LONG_ROW) !== -1;

/** Splits long sequences of marks with the invisible character U+034F, which ends a sequence. */
export const compatibleForm = (text: string): string =>
  text.replaceAll(LONG_ROW, "$&\u034f").normalize("NFKC");
