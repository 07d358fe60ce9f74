// A plugin's authentication scheme: its input, its result, and the checks that hold it to the rules of the built-in
// schemes.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { check, sentence } from "../../lib/check.ts";
import { type Authenticate, onlyHeader, unauthorized } from "./credentials.ts";
import { OwnerName, Scope } from "./principal.ts";

/** The head of a request, before its body is read. */
export interface AuthRequest {
  readonly method: string;
  /** The path as the client sent it, without the query. */
  readonly path: string;
  /** The address of the other end of the connection. Behind a gateway, this is the gateway's address. */
  readonly remoteAddress: string | undefined;
  /** Returns the header's value, or undefined if it was not sent. Throws `unauthorized` if it was sent more than once. */
  header(name: string): string | undefined;
}

export interface Identity {
  /** Like `user`, it has 1 to 256 visible characters. */
  readonly tenant: string;
  readonly user: string;
  readonly scopes: readonly Scope[];
  /** The time at which the credentials expire and their event streams end. Default: never. */
  readonly expires?: Date | undefined;
}

export interface OwnScheme {
  /** The name that an operator sets as `auth.scheme`. */
  readonly name: string;
  /**
   * Returns the sender of a request, or undefined if credentials are missing or wrong (401). Called for every request.
   * An error also refuses the request: with 500, or with the status of an `AppError`. `signal` aborts after ten
   * seconds, and the request then gets 503.
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

/** `patienceMs`: the maximum time for `authenticate`. */
export function authenticateBy({ name, authenticate }: OwnScheme, patienceMs = PATIENCE_MS): Authenticate {
  return async (request) => {
    const signal = AbortSignal.timeout(patienceMs);
    const found = await inTime(async () => authenticate(headOf(request), signal), signal, name);
    if (!found) throw unauthorized("The credentials of this request are missing or wrong.");
    const checked = check(Returned, found);
    if ("faults" in checked)
      throw new AppError("internal", "Something went wrong on the server.", {
        cause: new Error(
          `The authentication scheme \`${name}\` returned an invalid identity: ${checked.faults.map((fault) => sentence(fault)).join("; ")}`,
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

/** Rejects when the signal aborts, even if the scheme ignores the signal. */
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
