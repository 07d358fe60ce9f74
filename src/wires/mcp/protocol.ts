// The revisions of MCP: the client's declarations, sent once per session or with each request, and the cursor with
// which it reconnects.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { randomId } from "../../lib/random-id.ts";
import { firstChars } from "../../lib/text.ts";
import { Id } from "../../protocol/ids.ts";
import { RpcError, RpcId } from "../json-rpc.ts";
import type { Shows } from "./elicitation.ts";
import type { QuestionMode } from "./table.ts";

/** Every request describes its client completely, and closing the connection cancels the call. */
const STATELESS = "2026-07-28";
/** The only revision with batches, and the default for a client that does not declare a revision. */
export const BATCHES = "2025-03-26";

/** The revisions with sessions that start with `initialize`, newest first. */
const WITH_SESSIONS = ["2025-11-25", "2025-06-18", BATCHES] as const;
export const VERSIONS: readonly string[] = [STATELESS, ...WITH_SESSIONS];

/** Starting with this revision, clients accept an event that has an id and no data. */
const COMES_BACK = "2025-11-25";

export interface ClientOfCall {
  /** Undefined if the client cancels a call by closing the connection. */
  readonly session: string | undefined;
  readonly asking: QuestionMode;
  readonly shows: Shows;
  readonly comesBack: boolean;
  readonly namesType: boolean;
}

const Capabilities = z.looseObject({
  elicitation: z
    .looseObject({ form: z.looseObject({}).optional(), url: z.looseObject({}).optional() })
    .optional(),
});

/** A client that supports only forms sends an empty object. */
function shownBy(capabilities: unknown): Shows {
  const { elicitation } = Capabilities.safeParse(capabilities).data ?? {};
  if (!elicitation) return SHOWS.plain;
  const { form, url } = elicitation;
  const forms = form !== undefined || Object.keys(elicitation).length === 0;
  return { forms, addresses: url !== undefined };
}

/** The kinds of questions that a client can show, by the first part of its session id. */
const SHOWS = {
  plain: { forms: false, addresses: false },
  forms: { forms: true, addresses: false },
  urls: { forms: false, addresses: true },
  both: { forms: true, addresses: true },
} satisfies Record<string, Shows>;

export const InitializeParams = z.looseObject({
  protocolVersion: z.string().max(64),
  capabilities: z.unknown().optional(),
});

/** Returns the client's revision, or the newest one with sessions if the revision is unknown. */
export const versionFor = (asked: string) => (VERSIONS.includes(asked) ? asked : WITH_SESSIONS[0]);

/** Sessions are not stored. The id encodes what the client can show, and distinguishes the client's calls. */
export function newSession(capabilities: unknown): string {
  const { forms, addresses } = shownBy(capabilities);
  const kind = forms ? (addresses ? "both" : "forms") : addresses ? "urls" : "plain";
  return `${kind satisfies keyof typeof SHOWS}-${randomId()}`;
}

const SESSION = /^(forms|plain|urls|both)-[0-9A-Za-z]{22}$/;

function shownIn(session: string | undefined): Shows {
  const [, kind = "plain"] = SESSION.exec(session ?? "") ?? [];
  // The pattern allows only the keys of `SHOWS`.
  return SHOWS[kind as keyof typeof SHOWS];
}

const Envelope = z.looseObject({
  _meta: z.looseObject({
    "io.modelcontextprotocol/protocolVersion": z.string().max(64),
    "io.modelcontextprotocol/clientCapabilities": z.unknown().optional(),
  }),
});

/** A call as it was sent. */
export interface SentCall {
  readonly method: string;
  readonly params: unknown;
}

/**
 * Throws `RpcError` for an unsupported revision, and for headers that contradict the body, because proxies in front of
 * this server act on the headers.
 */
export function clientOf(request: FastifyRequest, call: SentCall | undefined): ClientOfCall {
  const spoken = headerOf(request, "mcp-protocol-version") ?? "";
  const { _meta } = Envelope.safeParse(call?.params).data ?? {};
  const version = _meta?.["io.modelcontextprotocol/protocolVersion"];
  for (const each of [version, spoken || undefined])
    if (each !== undefined && !VERSIONS.includes(each)) throw unsupported(each);
  if (call && (version !== undefined || spoken === STATELESS)) {
    checkHeaders(request, call, version);
    const { forms } = shownBy(_meta?.["io.modelcontextprotocol/clientCapabilities"]);
    const asking = forms ? "as_result" : "never";
    // Such a client is not notified when its user has finished at a URL.
    const shows = { forms, addresses: false };
    return { session: undefined, asking, shows, comesBack: false, namesType: true };
  }
  const session = sessionOf(request);
  const shows = shownIn(session);
  return {
    session,
    asking: shows.forms || shows.addresses ? "within" : "never",
    shows,
    comesBack: session !== undefined && spoken >= COMES_BACK,
    namesType: false,
  };
}

const UNSUPPORTED_VERSION = -32022;
const HEADER_MISMATCH = -32020;

const unsupported = (requested: string) =>
  new RpcError(
    UNSUPPORTED_VERSION,
    `This server does not support this revision of MCP. Use one of: ${VERSIONS.join(", ")}.`,
    { data: { supported: VERSIONS, requested }, status: 400 },
  );

const NamedParams = z.looseObject({ name: z.string() });

function checkHeaders(
  request: FastifyRequest,
  { method, params }: SentCall,
  version: string | undefined,
): void {
  const expected = {
    "MCP-Protocol-Version": version,
    "Mcp-Method": method,
    ...(method === "tools/call" ? { "Mcp-Name": NamedParams.safeParse(params).data?.name } : {}),
  };
  for (const [name, inBody] of Object.entries(expected)) {
    const sent = plain(headerOf(request, name.toLowerCase()));
    if (sent === inBody) continue;
    const words = sent === undefined ? "is missing" : `is \`${shown(sent)}\``;
    const said = inBody === undefined ? "the body has none" : `the body has \`${shown(inBody)}\``;
    throw new RpcError(HEADER_MISMATCH, `The header \`${name}\` ${words}, but ${said}.`, { status: 400 });
  }
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

/** Decodes a value that was encoded because a header cannot contain it. */
function plain(value: string | undefined): string | undefined {
  const [, encoded] = ENCODED.exec(value ?? "") ?? [];
  return encoded === undefined ? value : Buffer.from(encoded, "base64").toString();
}

const shown = (text: string) => firstChars(text, 128);

/** Returns the session of a request, or undefined if the text is not a session id. */
export function sessionOf(request: FastifyRequest): string | undefined {
  const session = headerOf(request, "mcp-session-id");
  return session !== undefined && SESSION.test(session) ? session : undefined;
}

function headerOf({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** A call as identified by the ids of its events. */
export interface CallCursor {
  readonly thread_id: string;
  readonly run_id: string;
  readonly id: RpcId;
  readonly progressToken: RpcId | undefined;
}

const CursorParts = z.tuple([Id, Id, RpcId, RpcId.nullable()]);

export const cursorOf = ({ thread_id, run_id, id, progressToken }: CallCursor) =>
  Buffer.from(JSON.stringify([thread_id, run_id, id, progressToken ?? null])).toString("base64url");

const EVENT_ID = /^([A-Za-z0-9_-]{1,4096})\.(\d{1,9})$/;

/** Returns the call that an event id identifies, and how many of its events the client has. Throws `invalid_request`. */
export function readCursor(eventId: string): { readonly call: CallCursor; readonly seen: number } {
  const [, call, seen] = EVENT_ID.exec(eventId) ?? [];
  const parts = CursorParts.safeParse(jsonIn(call ?? "")).data;
  if (!parts)
    throw new AppError("invalid_request", "Last-Event-ID: must be the id of an event that this server sent.");
  const [thread_id, run_id, id, token] = parts;
  return { call: { thread_id, run_id, id, progressToken: token ?? undefined }, seen: Number(seen) };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
}
