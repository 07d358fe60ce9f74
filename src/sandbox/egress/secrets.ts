// Secrets that a sandbox uses but never contains. Its variables contain placeholders. The proxy replaces them with the
// secrets in the headers of requests to the hosts that may receive the secret. In answers, it replaces the secret with the
// placeholder again.

import { createHash } from "node:crypto";
import type { RefusedHost } from "../../agent/core/backend.ts";
import type { ConnectionAccess, ConnectionKeeper, Connections } from "../../agent/core/connections.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import { type Allows, allowing, nameIn } from "./allowed-hosts.ts";
import { type Authority, newAuthority } from "./authority.ts";
import { knownSecrets } from "./known-secrets.ts";
import { type AnswerMask, BAD_GATEWAY, FORBIDDEN, type Refusal } from "./onward.ts";

/** A variable in the configuration. */
export interface SecretVariable {
  /** The id of the connection that contains the variable's value. */
  readonly vault: string;
  /** The owner of the connection. */
  readonly per: "user" | "tenant";
  readonly hosts: readonly string[];
  /** True if the hosts may receive the secret without encryption. */
  readonly http: boolean;
}

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly isEncrypted: boolean;
}

export type ExchangeResult =
  | { readonly headers: readonly string[] }
  | { readonly refusal: Refusal; readonly reason: RefusedHost["reason"] };

export interface Secrets {
  /** The placeholders, by variable name. */
  readonly environment: Readonly<Record<string, string>>;
  /** The authority whose certificate the sandbox must trust. */
  readonly authority: Authority;
  /** Returns true if the host may receive a secret. */
  isNamed(target: Omit<Destination, "isEncrypted">): boolean;
  /** Replaces all placeholders in headers, or refuses the request. */
  exchange(headers: readonly string[], to: Destination, signal: AbortSignal): Promise<ExchangeResult>;
  /** Returns a mask for the secrets that `exchange` has read, or undefined before that. */
  mask(): AnswerMask | undefined;
}

export interface SecretOptions {
  readonly variables: Readonly<Record<string, SecretVariable>>;
  /** The id of the sandbox. */
  readonly sandbox: string;
  readonly owner: Owner;
  /** Undefined if the server has no vault. */
  readonly connections: Connections | undefined;
  readonly logger: Logger;
}

/**
 * Request headers that would let an answer hide a secret from the mask, because the answer is compressed or
 * split into parts.
 */
export const UNMASKABLE: ReadonlySet<string> = new Set(["accept-encoding", "range", "if-range"]);
export const IDENTITY: readonly string[] = ["Accept-Encoding", "identity"];

/** A placeholder has no meaning outside its sandbox, so it does not have to be secret. */
const PREFIX = "skein_placeholder_";
const PLACEHOLDER = new RegExp(`${PREFIX}[0-9a-f]{32}`, "g");
const MAX_HEADER_CHARS = 64 * 1024;
/** The minimum length of a secret. A shorter value would be masked in unrelated parts of answers. */
const MIN_SECRET_CHARS = 8;
/** The minimum time between two entries in the audit trail about one connection, in ms. */
const NOTED_MS = 60_000;

/**
 * Returns a variable's placeholder. It is the same in all processes and for the lifetime of the sandbox's files,
 * because programs write it into their settings.
 */
export const placeholderOf = (sandbox: string, name: string) =>
  `${PREFIX}${createHash("sha256").update(`${sandbox}/${name}`).digest("hex").slice(0, 32)}`;

interface Variable extends SecretVariable {
  readonly name: string;
  readonly placeholder: string;
  readonly keeper: ConnectionKeeper;
  readonly allows: Allows;
  note(): void;
}

export async function openSecrets(options: SecretOptions): Promise<Secrets> {
  const { variables, sandbox, owner, connections, logger } = options;
  const all = Object.entries(variables).map(([name, variable]): Variable => {
    const keeper = variable.per === "user" ? owner : { tenant: owner.tenant };
    return {
      ...variable,
      ...{ name, keeper, placeholder: placeholderOf(sandbox, name), allows: allowing(variable.hosts) },
      note: atMostEvery<void>(NOTED_MS, () => connections?.used(keeper, variable.vault)),
    };
  });
  const named = new Map(all.map((each) => [each.placeholder, each]));
  const known = knownSecrets();
  const authority = await newAuthority([...new Set(all.flatMap(({ hosts }) => hosts.map(nameIn)))]);

  const currentValue = async (variable: Variable, to: Destination, signal: AbortSignal) => {
    try {
      const access = await connections?.access(variable.keeper, variable.vault, { signal });
      return valueIn(access ?? "none", variable, to);
    } catch (err) {
      signal.throwIfAborted();
      logger.warn(
        { ...owner, sandbox, connection: variable.vault, err },
        "the secret of a sandbox cannot be read",
      );
      return unavailable(variable, "cannot be read now");
    }
  };

  return {
    environment: Object.fromEntries(all.map(({ name, placeholder }) => [name, placeholder])),
    authority,
    isNamed: ({ host, port }) => all.some(({ allows }) => allows(host, port)),
    mask: known.mask,
    async exchange(headers, to, signal) {
      const found = new Set(headers.flatMap((text, at) => (at % 2 === 1 ? placeholdersIn(text) : [])));
      for (const placeholder of found) {
        const variable = named.get(placeholder);
        const refused = variable ? refusalFor(variable, to) : UNKNOWN;
        if (refused) return { refusal: refused, reason: "placeholder" };
      }
      const values = new Map<string, string>();
      // The host may know any of its secrets from an earlier request and repeat it.
      for (const variable of all.filter((each) => !refusalFor(each, to))) {
        const { placeholder } = variable;
        const value = await currentValue(variable, to, signal);
        if (typeof value === "string") {
          values.set(placeholder, value);
          known.add(placeholder, value);
        } else if (found.has(placeholder)) return { refusal: value, reason: "connection" };
      }
      const changed = headers.map((text, at) => (at % 2 === 1 ? exchangedIn(text, values) : text));
      if (changed.reduce((sum, { length }) => sum + length, 0) > MAX_HEADER_CHARS)
        return { refusal: TOO_LONG, reason: "placeholder" };
      for (const placeholder of found) named.get(placeholder)?.note();
      return { headers: changed };
    },
  };
}

const BASIC = /^(basic +)([A-Za-z0-9+/]+={0,2})$/i;
const decoded = (base64: string) => Buffer.from(base64, "base64").toString("latin1");

function placeholdersIn(text: string): string[] {
  const [, , base64 = ""] = BASIC.exec(text) ?? [];
  return (base64 === "" ? text : decoded(base64)).match(PLACEHOLDER) ?? [];
}

function exchangedIn(text: string, values: ReadonlyMap<string, string>): string {
  const exchange = (part: string) =>
    part.replace(PLACEHOLDER, (placeholder) => values.get(placeholder) ?? placeholder);
  const [, scheme = "", base64 = ""] = BASIC.exec(text) ?? [];
  if (base64 === "") return exchange(text);
  const plain = decoded(base64);
  const changed = exchange(plain);
  return changed === plain ? text : scheme + Buffer.from(changed, "latin1").toString("base64");
}

function refusalFor(
  { name, allows, http }: Variable,
  { host, port, isEncrypted }: Destination,
): Refusal | undefined {
  if (!allows(host, port))
    return { status: FORBIDDEN, words: `The secret of ${name} is not for ${host}:${port}.\n` };
  if (isEncrypted || http) return undefined;
  return { status: FORBIDDEN, words: `The secret of ${name} is sent over HTTPS only.\n` };
}

/** Returns the value as bytes for a header, or a refusal with the reason. */
function valueIn(access: ConnectionAccess | "none", variable: Variable, to: Destination): string | Refusal {
  if (access === "none") return unavailable(variable, "does not exist: this server has no vault");
  if (access.state === "absent") return unavailable(variable, "does not exist: connect the account first");
  if (access.state === "ended") return unavailable(variable, `ended, because ${access.reason}`);
  if (access.state === "failed") return unavailable(variable, `could not be renewed: ${access.reason}`);
  if (!mayReceive(access.connection, to)) return unavailable(variable, `is not for ${to.host}`);
  const value = Buffer.from(access.value).toString("latin1");
  if (value.length < MIN_SECRET_CHARS)
    return unavailable(variable, `has fewer than ${MIN_SECRET_CHARS} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not get into a header
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value))
    return unavailable(variable, "contains line breaks, which headers cannot contain");
  return value;
}

const unavailable = ({ name, vault }: Variable, why: string): Refusal => ({
  status: BAD_GATEWAY,
  words: `${name} cannot be sent: the connection \`${vault}\` ${why}.\n`,
});

/** True if the host may receive the secret. The owner of a credential can also restrict the hosts. */
function mayReceive(
  { mcp_server_url, networking }: Extract<ConnectionAccess, { readonly state: "open" }>["connection"],
  { host, port, isEncrypted }: Destination,
): boolean {
  if (mcp_server_url !== undefined) {
    const url = URL.parse(mcp_server_url);
    const own = URL.parse(`${isEncrypted ? "https" : "http"}://${host}:${port}`);
    return url !== null && url.origin === own?.origin;
  }
  if (networking?.type === "unrestricted") return true;
  return (
    networking?.type === "limited" &&
    allowing(networking.allowed_hosts.map((each) => `${each}:${port}`))(host, port)
  );
}

const UNKNOWN: Refusal = {
  status: FORBIDDEN,
  words: "This placeholder does not belong to any secret of this sandbox.\n",
};
const TOO_LONG: Refusal = {
  status: "431 Request Header Fields Too Large",
  words: "The headers are too long.\n",
};
