// The hosts that a sandbox may reach. An entry is a name, optionally with a port. A leading `*.` stands for all
// names below it.

import { z } from "zod";

/** The ports of an entry without a port: HTTPS and HTTP. */
const USUAL_PORTS: readonly number[] = [443, 80];
const MAX_ENTRIES = 256;
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/** Also matches `127.1` and `0x7f.1`, which systems read as addresses. */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const ENTRY = /^(\*$|\*(?=:)|(?:\*\.)?[^*:]+)(?::(\d{1,5}))?$/;

/**
 * Returns the name in lower case without a final dot. Returns undefined if it is an address or not a valid
 * name.
 */
export function hostName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, "");
  return name.length <= 253 && NAME.test(name) && !ENDS_IN_NUMBER.test(name) ? name : undefined;
}

interface Entry {
  /** The name without `*.`. Empty for `*`. */
  readonly name: string;
  readonly isWildcard: boolean;
  readonly port: number | undefined;
}

function entryOf(text: string): Entry | undefined {
  const [, host = "", digits] = ENTRY.exec(text) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  if (host === "*") return { name: "", isWildcard: true, port };
  const isWildcard = host.startsWith("*.");
  const name = hostName(isWildcard ? host.slice(2) : host);
  return name === undefined ? undefined : { name, isWildcard, port };
}

const Host = z
  .string()
  .refine(
    (text) => entryOf(text) !== undefined,
    "must be the name of a host, such as api.example.com, *.example.com or api.example.com:8443; addresses are not allowed",
  );

export const AllowedHosts = z.array(Host).min(1).max(MAX_ENTRIES);

/** True if one of `hosts` allows everything that `entry` allows. False for `*`. */
export function isCovered(entry: string, hosts: readonly string[]): boolean {
  const inner = entryOf(entry);
  if (!inner || inner.name === "") return false;
  return hosts.some((host) => {
    const outer = entryOf(host);
    if (!outer) return false;
    const isPort =
      outer.port === inner.port ||
      (outer.port === undefined && inner.port !== undefined && USUAL_PORTS.includes(inner.port));
    if (!outer.isWildcard) return isPort && !inner.isWildcard && inner.name === outer.name;
    const isBelow = outer.name === "" || inner.name.endsWith(`.${outer.name}`);
    return isPort && (isBelow || (inner.isWildcard && inner.name === outer.name));
  });
}

/** Returns the name in an entry, with `*.` but without a port. */
export const nameIn = (entry: string) => entry.replace(/:\d+$/, "").toLowerCase();

/** Returns true if the host, as returned by `hostName`, may be reached on the port. */
export type Allows = (host: string, port: number) => boolean;

/** Creates the check for a list of hosts. Skips entries that `AllowedHosts` refuses. */
export function allowing(hosts: readonly string[]): Allows {
  const entries = hosts.flatMap((host) => entryOf(host) ?? []);
  return (host, port) =>
    entries.some(
      (entry) =>
        (entry.port === undefined ? USUAL_PORTS.includes(port) : entry.port === port) &&
        (entry.isWildcard ? entry.name === "" || host.endsWith(`.${entry.name}`) : host === entry.name),
    );
}
