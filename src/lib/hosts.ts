// Parses and compares IP addresses, networks, hosts and origins in the notations that operators use. Does not resolve
// names.

import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { z } from "zod";

/** Does not resolve names. The only accepted name is `localhost`. */
export function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? host.toLowerCase() === "localhost" : LOOPBACK(host);
}

/**
 * An address (`10.0.0.5`, `fd00::5`) or a network (`10.0.0.0/8`, `fd00::/8`). Refuses a network that contains all
 * addresses.
 */
export const Network = z.string().refine((text) => parse(text) !== undefined, {
  error:
    "must be an IP address or a network, such as 10.0.0.5, 10.0.0.0/8 or fd00::/8, but not a network of all addresses",
});

/**
 * Returns a function that checks whether an address is in one of `networks`. An IPv4 address can be written as an IPv6
 * address (`::ffff:…`).
 */
export function within(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const network = parse(text);
    if (network) list.addSubnet(network.address, network.bits, network.family);
  }
  return isIn(list);
}

const isIn = (list: BlockList) => (address: string) => {
  // A link-local address ends with the name of its network interface.
  const [bare = ""] = address.split("%");
  const version = isIP(bare);
  return version !== 0 && list.check(bare, FAMILIES[version === 4 ? 4 : 6]);
};

/**
 * Returns the part of an address that identifies one subscriber: an IPv4 address, even if written as IPv6, or the first
 * 64 bits of an IPv6 address.
 */
export function subscriberNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? `${parsed.parts.slice(0, 4).map(hex).join(":")}::/64`
    : parsed.toString();
}

const hex = (part: number) => part.toString(16);

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

const LOOPBACK_LIST = new BlockList();
// Node's pattern for IPv6 addresses takes 4 ms to compile. Adding a known address avoids that cost at startup.
LOOPBACK_LIST.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK_LIST.addAddress("::1", "ipv6");
const LOOPBACK = isIn(LOOPBACK_LIST);

/** Returns true if the host of `url` is on an operator's comma-separated list of `host` or `host:port`. */
export type HostList = (url: URL) => boolean;

const ENTRY = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::(\d{1,5}))?$/i;

/** Throws a `SyntaxError` whose message completes "The list …". */
export function hostList(text: string): HostList {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map(parsed);
  return (url) =>
    entries.some(({ host, port }) => host === url.hostname && (port === undefined || port === portOf(url)));
}

function parsed(entry: string): { host: string; port: number | undefined } {
  const [, host = "", digits] = ENTRY.exec(entry) ?? [];
  const url = host === "" ? null : URL.parse(`http://${host}`);
  const port = digits === undefined ? undefined : Number(digits);
  if (!url || (port !== undefined && (port < 1 || port > 65_535)))
    throw new SyntaxError(
      `contains \`${entry}\`, which must be a host or host:port, such as tools.internal:9100 or [fd00::5]:9100`,
    );
  return { host: url.hostname, port };
}

const portOf = ({ port, protocol }: URL) => Number(port) || (protocol === "https:" ? 443 : 80);

/** The name or address of a host, without a port. */
export const HostName = z
  .string()
  .refine(
    (text) => /^[^\s:/?#@[\]\\,*]{1,253}$/.test(text) || isIP(text) === 6,
    "must be a host name or an IP address without a port, such as skein.example.com",
  );

/** The origin of a web page in the form that browsers send, without a path, a default port or a wildcard. */
export const Origin = z
  .string()
  .refine(
    (text) => /^https?:\/\/[^*]+$/.test(text) && URL.parse(text)?.origin === text,
    "must be the origin of a web page as browsers write it, such as https://app.example.com or http://localhost:3000",
  );
