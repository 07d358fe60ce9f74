// Unicode's compatible form (NFKC) in time linear in the text.

/**
 * Marks that follow one another are brought into an order, which takes the square of their number. `U+FF9E` and `U+FF9F` are no
 * marks, and become some.
 */
const MARK = "[\\p{M}\\uff9e\\uff9f]";
/** Longer rows of marks are in no language (UAX 15, Stream-Safe Text Format). */
const MAX_MARKS = 30;
const LONG_ROW = new RegExp(`${MARK}{${MAX_MARKS}}(?=${MARK})`, "gu");

export const hasLongRowOfMarks = (text: string): boolean => text.search(LONG_ROW) !== -1;

/** A long row of marks is parted by U+034F, which cannot be seen and ends a row. */
export const compatibleForm = (text: string): string =>
  text.replaceAll(LONG_ROW, "$&\u034f").normalize("NFKC");
