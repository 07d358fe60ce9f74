// JSON-RPC 2.0 over HTTP, for the wires that use it, with one message per request.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError, type ErrorCode } from "../agent/core/errors.ts";
import { check, sentence } from "../lib/check.ts";
import { refuse, sendProblem } from "../server/http/errors.ts";

export const RpcId = z.union([z.string().max(256), z.int()]);
export type RpcId = z.infer<typeof RpcId>;

const RpcRequest = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: RpcId.optional(),
  method: z.string().max(256),
  params: z.record(z.string(), z.unknown()).optional(),
});

/** A call or, if it has no id, a notification. */
export type RpcRequest = z.infer<typeof RpcRequest>;

export const RPC = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

interface RpcErrorOptions {
  readonly data?: unknown;
  readonly status?: number;
}

/** A refusal with a code from the protocol, which replaces the code derived from its `AppError` code. */
export class RpcError extends AppError {
  readonly rpcCode: number;
  readonly data: unknown;
  /** The HTTP status of the response to a call. Default: 200. */
  readonly status: number;

  constructor(rpcCode: number, message: string, { data, status = 200 }: RpcErrorOptions = {}) {
    super("invalid_request", message);
    this.rpcCode = rpcCode;
    this.data = data;
    this.status = status;
  }
}

export const unknownMethod = (method: string, known: readonly string[], options: RpcErrorOptions = {}) =>
  new RpcError(
    RPC.unknownMethod,
    `There is no method \`${method}\`. Use one of: ${known.map((name) => `\`${name}\``).join(", ")}.`,
    options,
  );

/** Throws `RpcError` if the body is neither a request nor a notification. */
export function readRequest(body: unknown): RpcRequest {
  const checked = check(RpcRequest, body);
  if ("value" in checked) return checked.value;
  throw new RpcError(RPC.invalidRequest, `Invalid JSON-RPC request: ${faultsIn(checked.faults)}.`);
}

/** Returns the parameters of a call. Throws `RpcError` if they do not match the schema. */
export function readParams<S extends z.ZodType>(schema: S, params: unknown): z.output<S> {
  const checked = check(schema, params ?? {});
  if ("value" in checked) return checked.value;
  throw new RpcError(RPC.invalidParams, `Invalid parameters: ${faultsIn(checked.faults)}.`);
}

const MAX_FAULTS = 5;

const faultsIn = (faults: readonly Parameters<typeof sentence>[0][]) =>
  faults
    .slice(0, MAX_FAULTS)
    .map((fault) => sentence(fault))
    .join(", ");

export interface ErrorCodes {
  /** Default: invalid parameters for a status below 500, otherwise an internal error. */
  readonly codes: Partial<Record<ErrorCode, number>>;
  /** Returns an error's data, in addition to its code and message. */
  readonly dataOf: (code: number, error: Error) => unknown;
}

/**
 * Sends an error as the response to a call, with status 200. The error keeps its own status if no call was read, if it
 * is 401 or 403, or if the request is not a call.
 */
export function rpcErrors({ codes, dataOf }: ErrorCodes) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply) => {
    const isBefore = error instanceof AppError && isBeforeCalls(error);
    if (isBefore || request.method !== "POST") return sendProblem(error, request, reply);
    const { code, detail, status } = refuse(error, request, reply);
    const id = idIn(request.body);
    const isParse = "code" in error && error.code === "FST_ERR_CTP_INVALID_JSON_BODY";
    const otherwise = status >= 500 ? RPC.internal : id === null ? RPC.invalidRequest : RPC.invalidParams;
    const rpcCode =
      error instanceof RpcError
        ? error.rpcCode
        : isParse
          ? RPC.parse
          : (codes[code as ErrorCode] ?? otherwise);
    const data = dataOf(rpcCode, error);
    if (id !== null) reply.code(error instanceof RpcError ? error.status : 200);
    return reply.type("application/json").send(
      JSON.stringify({
        jsonrpc: "2.0",
        id,
        error: { code: rpcCode, message: detail, ...(data === undefined ? {} : { data }) },
      }),
    );
  };
}

/** Returns the error response to one of several calls. The other calls have their own responses. */
export const rpcFailure = (id: RpcId, error: AppError) => ({
  jsonrpc: "2.0" as const,
  id,
  error: {
    code: error instanceof RpcError ? error.rpcCode : RPC.invalidParams,
    message: error.message,
  },
});

/** Returns true if the whole request is refused. */
export const isBeforeCalls = (error: AppError) => BEFORE.has(error.code);

const BEFORE: ReadonlySet<ErrorCode> = new Set([
  "unauthorized",
  "credentials_expired",
  "credentials_revoked",
  "forbidden",
]);

const WithId = z.looseObject({ id: RpcId });

const idIn = (body: unknown): RpcId | null => WithId.safeParse(body).data?.id ?? null;

/** Returns the response to a call. */
export const rpcResult = (id: RpcId, result: object) => ({ jsonrpc: "2.0" as const, id, result });

/** Yields the response to a call as JSON, with a result in parts. */
export async function* rpcResultParts(
  id: RpcId,
  result: AsyncIterable<string>,
): AsyncGenerator<string, void, void> {
  yield `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  yield* result;
  yield "}";
}
