// Whether an address is a gateway of the operator's own, or a provider's: the trace of a run goes no further than to the operator.

import { PROVIDERS } from "./providers.ts";

/** `openai.com` of `api.openai.com`. */
const domainOf = (url: string) => new URL(url).hostname.split(".").slice(-2).join(".");

/** Ollama, which is asked in the clear, runs where its user says. */
const DOMAINS: ReadonlySet<string> = new Set(
  Object.values(PROVIDERS)
    .map(({ baseUrl }) => (typeof baseUrl === "string" ? baseUrl : baseUrl({})))
    .filter((url) => url.startsWith("https:"))
    .map(domainOf),
);

export const isGateway = (baseUrl: string): boolean => !DOMAINS.has(domainOf(baseUrl));
