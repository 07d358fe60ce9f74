// The words that answer an approval. They are the same for people and for front ends.

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
 * Returns the decision that a word or a boolean expresses, or undefined for anything else. Ignores case, surrounding
 * space, and one final full stop or exclamation mark.
 */
export function decisionIn(said: unknown): "approve" | "deny" | undefined {
  if (typeof said !== "string" && typeof said !== "boolean") return undefined;
  const word = String(said).trim().toLowerCase().replace(/[.!]$/, "");
  if (APPROVING.has(word)) return "approve";
  return DENYING.has(word) ? "deny" : undefined;
}
