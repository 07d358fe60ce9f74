// The addresses that public DNS has for a name. Asked directly: what strangers name must not occupy the few threads
// in which the system looks names up, nor find what is written in this machine's hosts file.

import { Resolver } from "node:dns/promises";

/** For one try of one server; each is asked twice. */
const TIMEOUT_MS = 2000;

/** None when there is no such name, or no server answers. Resolves no later than when `signal` aborts. */
export async function publicNames(host: string, signal: AbortSignal): Promise<string[]> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
