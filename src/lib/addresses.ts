// IP addresses and networks as operators write them. Names are never resolved.

import { BlockList, isIP } from "node:net";
import { z } from "zod";

/** By the text alone: of names none but `localhost` counts. */
export function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? host.toLowerCase() === "localhost" : LOOPBACK(host);
}

/** One address, `10.0.0.5` or `fd00::5`, or a network, `10.0.0.0/8` or `fd00::/8`; not one of all addresses. */
export const Network = z.string().refine((text) => parse(text) !== undefined, {
  error:
    "must be an IP address or a network, such as 10.0.0.5, 10.0.0.0/8 or fd00::/8, and not all addresses there are",
});

/** Tells whether an address is in one of `networks`. An IPv4 address may be written as an IPv6 one (`::ffff:…`). */
export function within(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const network = parse(text);
    if (network) list.addSubnet(network.address, network.bits, network.family);
  }
  return (address) => {
    // A link-local address carries the name of its interface.
    const [bare = ""] = address.split("%");
    const version = isIP(bare);
    return version !== 0 && list.check(bare, FAMILIES[version === 4 ? 4 : 6]);
  };
}

const FAMILIES = { 4: "ipv4", 6: "ipv6" } as const;
const WIDTHS = { ipv4: 32, ipv6: 128 };

function parse(text: string) {
  const [, address = "", length] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return undefined;
  const family = FAMILIES[version === 4 ? 4 : 6];
  const bits = length === undefined ? WIDTHS[family] : Number(length);
  return bits > 0 && bits <= WIDTHS[family] ? { address, family, bits } : undefined;
}

const LOOPBACK = within(["127.0.0.0/8", "::1"]);
