// Sends requests to an authorization server: exchanges a code (RFC 6749, 4.1.3) or a refresh token (6) for tokens, and
// revokes a grant (RFC 7009).

import { z } from "zod";
import { messageOf } from "../../agent/core/errors.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { PublicFetch } from "../../lib/ssrf-safe-fetch/index.ts";
import type { Connection, Secrets } from "./credential.ts";

/** Time limit for the authorization server's answer, in milliseconds. */
export const ISSUER_MS = 15_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** Ten years. A longer lifetime is ignored. */
const MAX_LIFETIME_S = 10 * 365 * 86_400;

export type Refresh = NonNullable<Connection["refresh"]>;
/** The tokens of a grant, and how the server authenticates with them. */
export interface GrantedTokens {
  readonly refresh: Refresh;
  readonly secrets: Secrets;
}
/** How the server authenticates at the token endpoint. */
type Client = Pick<Refresh, "client_id" | "token_endpoint_auth">;

export interface NewTokens {
  readonly access_token: string;
  readonly refresh_token?: string | undefined;
  /** The lifetime in seconds. */
  readonly expires_in?: number | undefined;
  /** The granted scopes, if they differ from those requested. */
  readonly scope?: string | undefined;
}

export type Renewal =
  | { readonly outcome: "renewed"; readonly tokens: NewTokens }
  /** The grant has ended, so a retry would fail too. */
  | { readonly outcome: "refused"; readonly reason: string }
  /** A retry may succeed. */
  | { readonly outcome: "failed"; readonly reason: string };

/** The answer to a person's consent. It can be exchanged only once. */
export interface CodeExchange extends Client {
  readonly token_endpoint: string;
  readonly code: string;
  readonly verifier: string;
  readonly redirect_uri: string;
  readonly resource: string;
}

type ClientSecret = Pick<Secrets, "client_secret">;

export interface Issuer {
  /** Like `renew`, but with the code from a person's consent. */
  exchange(exchange: CodeExchange, secrets: ClientSecret, signal: AbortSignal): Promise<Renewal>;
  /** Never throws. `reason` contains nothing from the issuer except its error code. */
  renew(refresh: Refresh, secrets: Secrets, signal: AbortSignal): Promise<Renewal>;
  /**
   * Revokes both tokens at `url`, the issuer's revocation endpoint. Never throws. Returns undefined if the issuer
   * confirmed it, and otherwise the reason, which contains nothing from the issuer.
   */
  revoke(url: string, { refresh, secrets }: GrantedTokens, signal: AbortSignal): Promise<string | undefined>;
}

const TokenAnswer = z.object({
  access_token: z
    .string()
    .min(1)
    .regex(/^[\x21-\x7e]+$/),
  // Some issuers send `null` or a text.
  refresh_token: z.string().min(1).optional().catch(undefined),
  expires_in: z.coerce.number().min(1).max(MAX_LIFETIME_S).optional().catch(undefined),
  scope: z.string().min(1).max(4096).optional().catch(undefined),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .optional(),
});
const ErrorAnswer = z.object({ error: z.string().regex(/^[a-z_]{1,64}$/) });

/** Returns true for the reason of a renewal whose issuer does not know the client any more. */
export const isClientUnknown = (reason: string) => reason.endsWith("(`invalid_client`)");

/** Errors that end the grant. Others, such as `temporarily_unavailable`, are temporary. */
const OVER = new Set(["invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type"]);

export function createIssuer(fetch: PublicFetch): Issuer {
  const ask = async (
    url: string,
    client: Client,
    secrets: ClientSecret,
    fields: object,
    signal: AbortSignal,
  ) => {
    const { headers, form } = authenticated(client, secrets);
    const body = new URLSearchParams({ ...form, ...fields }).toString();
    const all = AbortSignal.any([signal, AbortSignal.timeout(ISSUER_MS)]);
    await using answer = await fetch(url, { method: "POST", headers, body, signal: all });
    const pieces: Uint8Array[] = [];
    for await (const piece of answer.read(MAX_ANSWER_BYTES)) pieces.push(piece);
    return { status: answer.status, text: Buffer.concat(pieces).toString() };
  };

  const tokens = async (...asked: Parameters<typeof ask>): Promise<Renewal> => {
    try {
      return renewalOf(await ask(...asked));
    } catch (error) {
      return { outcome: "failed", reason: unreachable(error) };
    }
  };

  return {
    exchange({ code, verifier: code_verifier, redirect_uri, resource, ...client }, secrets, signal) {
      const fields = { grant_type: "authorization_code", code, code_verifier, redirect_uri, resource };
      return tokens(client.token_endpoint, client, secrets, fields, signal);
    },
    renew(refresh, secrets, signal) {
      const { resource, scope } = refresh;
      const fields = {
        grant_type: "refresh_token",
        refresh_token: secrets.refresh_token ?? "",
        ...omitUndefined({ resource, scope }),
      };
      return tokens(refresh.token_endpoint, refresh, secrets, fields, signal);
    },
    async revoke(url, { refresh, secrets }, signal) {
      const tokens = [
        { token: secrets.refresh_token, token_type_hint: "refresh_token" },
        { token: secrets.value, token_type_hint: "access_token" },
      ];
      try {
        const answers = await Promise.all(
          tokens.map((fields) => (fields.token ? ask(url, refresh, secrets, fields, signal) : undefined)),
        );
        const refusal = answers.find((answer) => answer !== undefined && answer.status >= 300);
        return refusal && `its issuer answered ${refusal.status}`;
      } catch (error) {
        return unreachable(error);
      }
    },
  };
}

const unreachable = (error: unknown) => `its issuer could not be reached: ${messageOf(error)}`;

function renewalOf({ status, text }: { readonly status: number; readonly text: string }): Renewal {
  const json = parsed(text);
  const tokens = TokenAnswer.safeParse(json);
  if (status < 300 && tokens.success) return { outcome: "renewed", tokens: tokens.data };
  const error = ErrorAnswer.safeParse(json).data?.error;
  const reason = `its issuer answered ${status}${error ? ` (\`${error}\`)` : ""}`;
  const isOver = error !== undefined && OVER.has(error) && status < 500;
  return { outcome: isOver ? "refused" : "failed", reason };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Adds the client's authentication to the header or the form. */
function authenticated({ client_id, token_endpoint_auth }: Client, { client_secret = "" }: ClientSecret) {
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
    "user-agent": "skein",
  };
  if (token_endpoint_auth.type === "none") return { headers, form: { client_id } };
  if (token_endpoint_auth.type === "client_secret_post")
    return { headers, form: { client_id, client_secret } };
  // RFC 6749, 2.3.1: each part is form-encoded first.
  const encoded = [client_id, client_secret].map((each) =>
    new URLSearchParams({ x: each }).toString().slice(2),
  );
  const basic = Buffer.from(encoded.join(":")).toString("base64");
  return { headers: { ...headers, authorization: `Basic ${basic}` }, form: {} };
}
