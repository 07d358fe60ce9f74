// Finds keys in a URL. A page can mislead a model into writing a secret into a URL, which every host on the way can read.

/**
 * Forms of secrets that cannot be confused with other texts. AWS key ids are not included, because signed URLs contain them.
 */
const FORMS: readonly (readonly [what: string, form: RegExp])[] = [
  ["an Anthropic API key", /\bsk-ant-[\w-]{20}/],
  ["an API key", /\b(?:sk|rk)[-_][\w-]{20}/],
  ["a token of GitHub", /\b(?:gh[pousr]_[A-Za-z0-9]{30}|github_pat_\w{30})/],
  ["a token of GitLab", /\bglpat-[\w-]{20}/],
  ["a token of Slack", /\bxox[a-z]-[\w-]{20}/],
  ["a Google API key", /\bAIza[\w-]{35}/],
  ["an npm token", /\bnpm_[A-Za-z0-9]{36}/],
  ["a webhook secret", /\bwhsec_[\w+/-]{20}/],
  ["a private key", /-----BEGIN [A-Z ]{0,20}PRIVATE KEY/],
];

/** A URL may be encoded within another URL, so decoding is repeated. */
const ROUNDS = 4;

/** Returns the kind of secret that a URL contains, even if it is percent-encoded. */
export function secretIn(address: string): string | undefined {
  let text = address;
  for (let round = 0; round < ROUNDS; round++) {
    const found = FORMS.find(([, form]) => form.test(text));
    if (found) return found[0];
    const next = decoded(text);
    if (next === text) return undefined;
    text = next;
  }
  return undefined;
}

/** Decodes every escape separately, because an invalid one must not hide the others. */
const decoded = (text: string) =>
  text
    .replaceAll("+", " ")
    .replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
