// Which addresses belong to the internet at large: not to this machine, a private network, a provider's inside, or
// some way of writing one of those.

import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

/** What of IPv6 is given out at all. The rest is reserved, or leads into an IPv4 network. */
const GIVEN_OUT = ipaddr.IPv6.parseCIDR("2000::/3");

/** Public by their numbers, and yet the inside of a cloud: Azure's own services for a virtual machine. */
const CLOUD_INSIDES: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** False also for what is no address. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text); // an IPv4 address in IPv6 clothes becomes the IPv4 address
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv6 && !address.match(GIVEN_OUT)) return false;
  const plain = address.toString();
  return !CLOUD_INSIDES.has(plain) && !ownAddresses().has(plain);
}

/** The one way to write an address that can be written in several. */
export function plainAddress(text: string): string {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : text;
}

/** A machine's public address leads past the firewall that others meet. */
function ownAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set(all.map(({ address }) => plainAddress(address)));
}

// The addresses that public DNS has for a name. Asked directly: what strangers name must not occupy the few threads
// in which the system looks names up, nor find what is written in this machine's hosts file.
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
