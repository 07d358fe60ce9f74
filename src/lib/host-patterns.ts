// Patterns for hosts: a name, an address, or `*.` and a name for all names below it. Only compares names.

import { isIP } from "node:net";
import { z } from "zod";

const NAME = /^(\*\.)?[^\s:/?#@[\]\\,*]{1,253}$/;

export const HostPattern = z
  .string()
  .refine(
    (text) => text === "*" || NAME.test(text) || isIP(text) === 6,
    "must be a host without a port, such as example.com or *.example.com",
  );

/** Returns a function that checks whether a URL's host matches one of `patterns`. */
export function hostMatcher(patterns: readonly string[]): (url: URL) => boolean {
  const names = new Set<string>();
  const suffixes: string[] = [];
  for (const pattern of patterns) {
    if (pattern === "*") suffixes.push("");
    else if (pattern.startsWith("*.")) suffixes.push(`.${canonical(pattern.slice(2))}`);
    else names.add(canonical(pattern));
  }
  return ({ hostname }) => {
    const host = withoutDot(hostname);
    return names.has(host) || suffixes.some((suffix) => host.endsWith(suffix) && host !== suffix);
  };
}

/** Returns the host in the form used in URLs: lowercase ASCII, with brackets around IPv6 addresses. */
function canonical(host: string): string {
  const url = URL.parse(`http://${isIP(host) === 6 ? `[${host}]` : host}`);
  return withoutDot(url?.hostname ?? host);
}

/** A name can end with a dot, which represents the root. */
const withoutDot = (host: string) => host.replace(/\.$/, "");
