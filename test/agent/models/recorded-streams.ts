// Streams as servers really send them, with the reply that each must become: test/fixtures/streams, one file for each server.

import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import type { AppError } from "../../../src/agent/core/errors.ts";
import type { ModelReply } from "../../../src/agent/core/model.ts";
import { anthropicReply } from "../../../src/agent/models/anthropic/reply.ts";
import { failureOf } from "../../../src/agent/models/failure.ts";
import { openaiReply } from "../../../src/agent/models/openai/reply.ts";
import { framesTo } from "../../../src/agent/models/reading/frames.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { bedrock } from "../../support/fake-provider/bedrock.ts";

const FOLDER = new URL("../../fixtures/streams/", import.meta.url);

const Call = z.strictObject({
  name: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
  /** Left out: any. */
  id: z.string().optional(),
  malformed: z.string().optional(),
});

const Reply = z.strictObject({
  content: z.string().default(""),
  thought: z.string().default(""),
  calls: z.array(Call).default([]),
  stop: z.string(),
  /** Its code. */
  remark: z.string().optional(),
  /** Input and output. */
  usage: z.tuple([z.number(), z.number()]).optional(),
  cached: z.number().optional(),
});

const Recording = z.strictObject({
  name: z.string(),
  type: z.string().default("text/event-stream"),
  body: z.string().optional(),
  /** Of AWS's frames. */
  events: z.array(z.unknown()).optional(),
  reply: Reply.optional(),
  /** The code of the error that it must become. */
  failure: z.string().optional(),
});

const File = z.strictObject({
  dialect: z.enum(["openai", "anthropic"]),
  streams: z.array(Recording).min(1),
});

export interface Recorded {
  readonly server: string;
  readonly name: string;
  readonly dialect: "openai" | "anthropic";
  readonly type: string;
  readonly bytes: Buffer;
  readonly expected: { readonly reply: z.output<typeof Reply> } | { readonly failure: string };
}

export const RECORDED: readonly Recorded[] = readdirSync(FOLDER).flatMap((file) => {
  const { dialect, streams } = File.parse(parse(readFileSync(new URL(file, FOLDER), "utf8")));
  return streams.map(({ name, type, body, events, reply, failure = "" }) => ({
    ...{ server: file.replace(".yaml", ""), name, dialect, type },
    bytes: events
      ? Buffer.concat(events.map((event) => Buffer.from(bedrock.rawFrame?.(JSON.stringify(event)) ?? "")))
      : Buffer.from(body ?? ""),
    expected: reply ? { reply } : { failure },
  }));
});

/** What comes of a stream in the same form as a recording says it. */
export type Outcome =
  | { readonly reply: ModelReply; readonly events: readonly StreamEvent[] }
  | { readonly failure: AppError };

/** Reads a body that arrives in these pieces, as the model's client does. */
export function readPieces({ dialect, type }: Recorded, pieces: readonly Buffer[]): Outcome {
  const reader = dialect === "openai" ? openaiReply() : anthropicReply();
  const events: StreamEvent[] = [];
  const frames = framesTo(
    {
      get ended() {
        return reader.ended;
      },
      event: (event) => reader.take(event, events),
      close: () => reader.close(),
    },
    type,
  );
  try {
    for (const piece of pieces) frames.push(piece);
    frames.end();
    return { reply: reader.finish(events), events };
  } catch (error) {
    return { failure: failureOf(error, { model: "x:y" }) };
  }
}
