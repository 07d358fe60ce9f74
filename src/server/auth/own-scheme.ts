// An authentication scheme of a plugin: what it gets, what it returns, and how that is held to the rules of the built-in ones.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { check, sentence } from "../../lib/check.ts";
import { type Authenticate, onlyHeader, unauthorized } from "./credentials.ts";
import { OwnerName, Scope } from "./principal.ts";

/** The head of a request. Its body has not been read. */
export interface AuthRequest {
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** The other end of the connection: a gateway's address, if there is one. */
  readonly remoteAddress: string | undefined;
  /** The header's value; undefined without it. Throws `unauthorized` if it was sent more than once. */
  header(name: string): string | undefined;
}

export interface Identity {
  /** 1 to 256 visible characters, like `user`. */
  readonly tenant: string;
  readonly user: string;
  readonly scopes: readonly Scope[];
  /** When the credentials expire: event streams then end. Default: never. */
  readonly expires?: Date | undefined;
}

export interface OwnScheme {
  /** What `auth.scheme` says to choose it. */
  readonly name: string;
  /**
   * Who sends a request; nothing for credentials that are missing or wrong (401). Called for every request. An error that it
   * throws refuses the request as well: with 500, or the status of an `AppError`. `signal` aborts after ten seconds, and the
   * request gets 503.
   */
  authenticate(
    request: AuthRequest,
    signal: AbortSignal,
  ): Identity | null | undefined | Promise<Identity | null | undefined>;
}

const Returned = z.object({
  tenant: OwnerName,
  user: OwnerName,
  scopes: z.array(Scope),
  expires: z.date().optional(),
});

const PATIENCE_MS = 10_000;

/** `patienceMs`: how long `authenticate` may take. */
export function authenticateBy({ name, authenticate }: OwnScheme, patienceMs = PATIENCE_MS): Authenticate {
  return async (request) => {
    const signal = AbortSignal.timeout(patienceMs);
    const found = await inTime(async () => authenticate(headOf(request), signal), signal, name);
    if (!found) throw unauthorized("The credentials of this request are missing or not accepted.");
    const checked = check(Returned, found);
    if ("faults" in checked)
      throw new AppError("internal", "Something went wrong on the server.", {
        cause: new Error(
          `The authentication scheme \`${name}\` returned an identity that is not valid: ${checked.faults.map((fault) => sentence(fault)).join("; ")}`,
        ),
      });
    const { expires, ...principal } = checked.value;
    return { ...principal, ...(expires ? { expires_at: expires.getTime() } : {}) };
  };
}

function headOf(request: FastifyRequest): AuthRequest {
  const { method, url, raw } = request;
  return {
    method,
    path: url.split("?", 1)[0] ?? "",
    remoteAddress: raw.socket.remoteAddress,
    header: (name) => onlyHeader(request, name.toLowerCase()),
  };
}

/** The request waits no longer than the signal, even for a scheme that does not honour it. */
function inTime<T>(work: () => Promise<T>, signal: AbortSignal, name: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () =>
      reject(
        new AppError("unavailable", "The request could not be authenticated in time. Try again later.", {
          cause: new Error(`The authentication scheme \`${name}\` exceeded its time limit.`),
        }),
      );
    signal.addEventListener("abort", late, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", late));
  });
}
