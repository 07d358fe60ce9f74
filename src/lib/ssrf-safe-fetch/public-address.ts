// Decides whether an address is public, in any notation. A public address belongs neither to this machine nor to a
// private network or a cloud's internal services.

import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

/** Global IPv6 unicast. Other ranges are reserved or lead into an IPv4 network. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Addresses in a public range that are internal to a cloud. This one belongs to Azure's services for its virtual
 * machines.
 */
const CLOUD_INTERNAL: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** Returns false for a text that is not an address. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text); // turns IPv4-mapped IPv6 into IPv4
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv6 && !address.match(GLOBAL_IPV6)) return false;
  const plain = address.toString();
  return !CLOUD_INTERNAL.has(plain) && !ownAddresses().has(plain);
}

/** Returns the canonical notation of an address. */
export function plainAddress(text: string): string {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : text;
}

/** This machine's own public addresses, for which its firewall does not apply. */
function ownAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set(all.map(({ address }) => plainAddress(address)));
}

/** The number of milliseconds for one attempt with one DNS server. Each server gets two attempts. */
const TIMEOUT_MS = 2000;

/**
 * Returns the addresses of a name in public DNS, or none if the name is unknown or no server answers. Resolves early if
 * `signal` aborts. Untrusted names must not occupy the system resolver's few threads or match the hosts file.
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
