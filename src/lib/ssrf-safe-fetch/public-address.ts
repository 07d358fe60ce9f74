// Decides whether an address is public: not of this machine, a private network or a cloud's internal services, in any
// notation.

import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

/** Global IPv6 unicast. The rest is reserved, or leads into an IPv4 network. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");

/** In public ranges, yet internal to a cloud: Azure's services for its virtual machines. */
const CLOUD_INTERNAL: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** False for a text that is not an address. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text); // turns IPv4-mapped IPv6 into IPv4
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv6 && !address.match(GLOBAL_IPV6)) return false;
  const plain = address.toString();
  return !CLOUD_INTERNAL.has(plain) && !ownAddresses().has(plain);
}

/** The canonical notation of an address. */
export function plainAddress(text: string): string {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : text;
}

/** This machine's own public addresses bypass its firewall. */
function ownAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set(all.map(({ address }) => plainAddress(address)));
}

/** For one try of one DNS server; each is tried twice. */
const TIMEOUT_MS = 2000;

/**
 * The addresses of a name in public DNS; none when it is unknown or no server answers. Resolves at the latest when
 * `signal` aborts. Untrusted names must not occupy the system resolver's few threads, nor be found in the hosts file.
 */
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
