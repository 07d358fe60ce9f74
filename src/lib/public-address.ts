// Which addresses belong to the internet at large: not to this machine, a private network, a provider's inside, or
// some way of writing one of those.

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
