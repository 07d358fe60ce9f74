// The words that answer an approval. They are the same wherever a person or a front end writes one.

const APPROVING: ReadonlySet<string> = new Set([
  "approve",
  "approved",
  "accept",
  "accepted",
  "yes",
  "y",
  "ok",
  "okay",
  "true",
]);
const DENYING: ReadonlySet<string> = new Set(["deny", "denied", "reject", "rejected", "no", "n", "false"]);

/**
 * Returns the decision that a word or a boolean expresses. Undefined for everything else. Ignores case, surrounding
 * space, and one final full stop or exclamation mark.
 */
export function decisionIn(said: unknown): "approve" | "deny" | undefined {
  if (typeof said !== "string" && typeof said !== "boolean") return undefined;
  const word = String(said).trim().toLowerCase().replace(/[.!]$/, "");
  if (APPROVING.has(word)) return "approve";
  return DENYING.has(word) ? "deny" : undefined;
}
