// The model requests of a run, stored along with the thread if the server's settings enable this. A message that was
// sent unchanged is stored as its id, which keeps long conversations small. System blocks, tools and messages changed
// by hooks are stored completely, because no log contains them.

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { type Collection, change, type Documents } from "../../agent/core/documents.ts";
import { Message, Role } from "../../agent/core/message.ts";
import { type ModelRequest, ModelSettings } from "../../agent/core/model.ts";
import type { ModelCallInfo } from "../../agent/core/run.ts";
import type { RunKey } from "../../agent/core/stores.ts";
import { fitted } from "../../lib/fitted.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";

/**
 * The maximum number of calls per thread, and the maximum size of these calls in bytes. When either limit is exceeded,
 * the oldest calls are removed.
 */
const MAX_CALLS = 100;
const MAX_BYTES = 4 * 1024 * 1024;
/** The maximum size of one call in bytes, as JSON. Parts beyond the limit are omitted. */
const MAX_CALL_BYTES = 256 * 1024;
const MAX_MESSAGES = 1000;
const MAX_TOOLS = 500;

const LEFT_OUT = "Absent if it did not fit into the record.";

export const SentRequest = z
  .object({
    number: z.int().describe("Number of the model call within the run, counted from 1."),
    message_id: z.string().describe("Id of the answer."),
    sent_at: z.iso.datetime(),
    model: z.string(),
    settings: ModelSettings.describe("Settings of the run that override the model's own."),
    output_limit: z
      .int()
      .optional()
      .describe("Maximum number of tokens that a budget allowed for the answer."),
    system: z
      .array(
        z.object({
          id: z.string(),
          cache: z.enum(["static", "semi", "dynamic"]),
          text: z.string().optional().describe(LEFT_OUT),
        }),
      )
      .describe("Blocks of the system prompt, in order."),
    tools: z.array(
      z.object({
        name: z.string(),
        description: z.string().optional().describe(LEFT_OUT),
        parameters: z.record(z.string(), z.unknown()).optional().describe(LEFT_OUT),
      }),
    ),
    messages: z
      .array(
        z.object({
          id: z.string(),
          role: Role,
          in_thread: z.boolean().describe("True if the message was sent exactly as it is in the thread."),
          message: Message.optional().describe(
            `The message as it was sent, if that differs from the thread. ${LEFT_OUT}`,
          ),
        }),
      )
      .describe(`The most recent ${MAX_MESSAGES} messages, oldest first.`),
    is_whole: z.boolean().describe("True if nothing was omitted."),
  })
  .meta({ id: "SentRequest" });
export type SentRequest = z.infer<typeof SentRequest>;

export interface SentRequests {
  /** Stores a request and removes the thread's oldest requests. Throws `unavailable`. */
  record(run: RunKey, number: number, request: ModelRequest, call: ModelCallInfo): Promise<void>;
  /** Returns undefined if the request was removed or never stored. Throws `unavailable`. */
  read(run: RunKey, number: number): Promise<SentRequest | undefined>;
}

/** The stored requests, oldest first. */
const Index = z.array(z.object({ key: z.string(), bytes: z.int(), version: z.string() }));
const INDEX = "index";

export function createSentRequests(documents: Documents): SentRequests {
  return {
    async record(run, number, request, call) {
      const [collection, key] = placeOf(run, number);
      const body = JSON.stringify(sentRequest(number, request, call));
      await change(
        documents,
        { collection, keys: [INDEX, key] },
        ({ found: [index, before], exists, version }) => {
          // The thread was deleted in the meantime.
          if (!exists) return { result: undefined };
          const kept = index ? Index.parse(JSON.parse(index.body)).filter((each) => each.key !== key) : [];
          const all = [...kept, { key, version, bytes: Buffer.byteLength(body) }];
          const forgotten = all.slice(0, tooMany(all));
          const writes = [
            { key, seen: before?.version, body },
            { key: INDEX, seen: index?.version, body: JSON.stringify(all.slice(forgotten.length)) },
            ...forgotten.map((each) => ({ key: each.key, seen: each.version, body: undefined })),
          ];
          return { writes, result: undefined };
        },
      );
    },

    async read(run, number) {
      const [collection, key] = placeOf(run, number);
      const [found] = (await documents.read(collection, [key])).found;
      return found && fitted(SentRequest, JSON.parse(found.body)).value;
    },
  };
}

const placeOf = ({ owner, thread_id, run_id }: RunKey, number: number): [Collection, key: string] => [
  { owner, of: { thread: thread_id }, kind: "sent" },
  `${run_id}/${number}`,
];

/** Returns how many of the oldest requests must be removed. The newest request is always kept. */
function tooMany(all: readonly { readonly bytes: number }[]): number {
  let bytes = all.reduce((sum, each) => sum + each.bytes, 0);
  let first = Math.max(0, all.length - MAX_CALLS);
  for (const each of all.slice(0, first)) bytes -= each.bytes;
  for (; first < all.length - 1 && bytes > MAX_BYTES; first++) bytes -= all[first]?.bytes ?? 0;
  return first;
}

function sentRequest(number: number, request: ModelRequest, { id, thread }: ModelCallInfo): SentRequest {
  const { model, settings, outputLimit } = request;
  const room = { bytes: MAX_CALL_BYTES, isWhole: true };
  const own = new Map(thread.map((message) => [message.id, message]));
  const newest = request.messages.slice(-MAX_MESSAGES);
  const tools = request.tools.slice(0, MAX_TOOLS);
  room.isWhole = newest.length === request.messages.length && tools.length === request.tools.length;
  const sent = {
    number,
    message_id: id,
    sent_at: new Date().toISOString(),
    model: model.name,
    settings,
    ...omitUndefined({ output_limit: outputLimit }),
    system: request.system.map(({ id, cache, text }) => ({ id, cache, ...fitting({ text }, room) })),
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      ...fitting({ description, parameters }, room),
    })),
    messages: newest.map((message) => {
      const { id, role } = message;
      const in_thread = isSame(message, own.get(id));
      return { id, role, in_thread, ...(in_thread ? {} : fitting({ message }, room)) };
    }),
  };
  return { ...sent, is_whole: room.isWhole };
}

const isSame = (message: Message, other: Message | undefined) =>
  message === other || isDeepStrictEqual(message, other);

/** Returns the part if it fits into `room`, and reduces the room by its size. Otherwise, returns nothing. */
function fitting<T extends object>(part: T, room: { bytes: number; isWhole: boolean }): Partial<T> {
  const bytes = Buffer.byteLength(JSON.stringify(part));
  room.isWhole &&= bytes <= room.bytes;
  if (bytes > room.bytes) return {};
  room.bytes -= bytes;
  return part;
}
