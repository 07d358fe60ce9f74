// Writes tables as CSV (RFC 4180).

/** The first row contains the column names. */
export const csvOf = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map(fieldOf).join(",")}\r\n`).join("");

function fieldOf(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets treat text that begins with one of these characters as a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
