// A list of hosts that an operator writes down: `host` or `host:port`, separated by commas.

/** Whether the host of `url`, written as it is there, is on the list, with its port or with any. */
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
      `holds \`${entry}\`, which must be a host or host:port, such as tools.internal:9100 or [fd00::5]:9100`,
    );
  return { host: url.hostname, port };
}

const portOf = ({ port, protocol }: URL) => Number(port) || (protocol === "https:" ? 443 : 80);
