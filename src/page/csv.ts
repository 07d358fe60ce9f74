// Tables as text that spreadsheets read (RFC 4180).

/** The first row has the names of the columns. */
export const csvOf = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map(fieldOf).join(",")}\r\n`).join("");

function fieldOf(value: string | number): string {
  if (typeof value === "number") return String(value);
  // A spreadsheet takes a text that begins like this for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
