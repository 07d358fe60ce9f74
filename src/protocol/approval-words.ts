// The words that answer an approval: the same wherever a person or a front end writes one.

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
 * What a word or a boolean decides; undefined for everything else. Case, space around the word, and one full stop or
 * exclamation mark after it do not matter.
 */
export function decisionIn(said: unknown): "approve" | "deny" | undefined {
  if (typeof said !== "string" && typeof said !== "boolean") return undefined;
  const word = String(said).trim().toLowerCase().replace(/[.!]$/, "");
  if (APPROVING.has(word)) return "approve";
  return DENYING.has(word) ? "deny" : undefined;
}
