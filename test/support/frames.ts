// What each reader of events makes of the recorded logs, event by event.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import type { RunRecord } from "../../src/agent/core/records.ts";
import { createFold } from "../../src/client/fold.ts";
import type { StreamEvent as ClientEvent } from "../../src/client/wire.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import type { Frame, LongFrame } from "../../src/server/http/sse.ts";
import { renderer } from "../../src/skein/cli/render.ts";
import { OLDER } from "../../src/wires/a2a/dialect.ts";
import { project as taskUpdates } from "../../src/wires/a2a/table.ts";
import { project as acpUpdates } from "../../src/wires/acp/table.ts";
import { project as aguiEvents } from "../../src/wires/ag-ui/table.ts";
import { project as uiChunks } from "../../src/wires/ai-sdk/table.ts";
import { project as protocolEvents } from "../../src/wires/langgraph/protocol/table.ts";
import { project as langgraphFrames } from "../../src/wires/langgraph/table.ts";
import { project as mcpMessages, type QuestionMode } from "../../src/wires/mcp/table.ts";
import { project as chatChunks, collect } from "../../src/wires/openai/chat/table.ts";
import { project as responseEvents } from "../../src/wires/openai/responses/table.ts";
import { type ToldRun, waits } from "./arbitrary-run.ts";

const folder = (name: string) => fileURLToPath(new URL(`../fixtures/${name}/`, import.meta.url));
const LOGS = folder("logs");
export const FRAMES = folder("frames");

/** Reads one event, and returns what it sends. */
type Read = (event: StreamEvent, run: RunRecord, seq: number) => unknown;
interface Reader {
  readonly read: Read;
  /** What it makes of all of it, in the end. */
  end?(run: RunRecord): unknown;
}
interface Recorded {
  /** `last`: the newest run of the stream. */
  begin(last: RunRecord): Reader;
  /** A stream shows one run, or a turn up to the run that does not wait for a deferred result. Default: a whole turn. */
  readonly shows?: "run" | "answer";
}

const textOf = ({ data }: Frame | LongFrame) => (typeof data === "string" ? data : [...data.parts].join(""));
const framed = (fold: (event: StreamEvent, run: RunRecord) => readonly (Frame | LongFrame)[]): Reader => ({
  read: (event, run) => fold(event, run).map((frame) => ({ ...frame, data: textOf(frame) })),
});

const aiSdk = (version: 5 | 6 | 7): Recorded => ({
  shows: "answer",
  begin: () => framed(uiChunks({ messageId: "a_msg", version })),
});
const agui = (isCurrent: boolean, version?: number): Recorded => ({
  shows: "run",
  begin: () =>
    framed(
      aguiEvents({
        ...{ threadId: "t", runId: "r", isCurrent, messages: [], state: {}, showsMessages: isCurrent },
        ...(version === undefined ? {} : { version }),
      }),
    ),
});
const mcp = (asking: QuestionMode): Recorded => ({
  begin: () =>
    framed(
      mcpMessages({
        ...{ id: 1, progressToken: 7, asking, namesType: true, cursorOf: ({ id }) => id },
        shows: { forms: asking !== "never", addresses: false },
      }).fold,
    ),
});
const a2a = (resultOf?: (result: object) => object): Recorded => ({
  begin: () =>
    framed(
      taskUpdates({
        ...{ id: 1, ref: { taskId: "task", contextId: "context" } },
        ...(resultOf ? { resultOf } : {}),
      }),
    ),
});

/** By the name of the file that holds what it made of the logs. */
export const READERS: Readonly<Record<string, Recorded>> = {
  "ai-sdk-5": aiSdk(5),
  "ai-sdk-6": aiSdk(6),
  "ai-sdk-7": aiSdk(7),
  "ai-sdk-7-resumed": {
    begin: ({ id }) => framed(uiChunks({ messageId: "a_msg", version: 7, asked: [], at: id })),
  },
  "ag-ui": agui(true),
  "ag-ui-older": agui(false, 40),
  chat: {
    shows: "run",
    begin: () => framed(chatChunks({ model: "assistant", includesUsage: true, outputOnly: false })),
  },
  "chat-whole": {
    shows: "run",
    begin() {
      const { see, error, completion } = collect({ model: "assistant", outputOnly: false });
      return { read: see, end: (run) => [error(), completion(run)] };
    },
  },
  responses: {
    shows: "answer",
    begin() {
      const { see, response } = responseEvents({});
      return { ...framed(see), end: response };
    },
  },
  a2a: a2a(),
  "a2a-older": a2a(OLDER.resultOf),
  "mcp-form": mcp("within"),
  "mcp-result": mcp("as_result"),
  "mcp-silent": mcp("never"),
  langgraph: {
    shows: "run",
    begin() {
      const modes = new Set(["values", "updates", "messages-tuple", "messages", "custom", "tools"]);
      const fold = langgraphFrames({ modes, subgraphs: true }, { calls: [], texts: [], state: {} });
      return {
        read: (event, run) =>
          fold(event, run).map((frame) => {
            const text = frame.text();
            return [frame.event, typeof text === "string" ? text : [...text.parts].join("")];
          }),
      };
    },
  },
  "langgraph-protocol": {
    shows: "run",
    begin() {
      const fold = protocolEvents({ messages: [], state: {}, isPast: false });
      return { read: (event, run, seq) => fold(event, { epoch: 1, seq }, run) };
    },
  },
  acp: {
    begin() {
      const fold = acpUpdates({ contextWindow: 1000, shows: { notices: true, compaction: true } });
      return { read: (event) => fold.updatesOf(event), end: () => fold.closing() };
    },
  },
  terminal: {
    begin() {
      const render = renderer((style, text) => `<${style}>${text}`);
      return { read: (event) => render(event) };
    },
  },
  client: {
    begin() {
      const { page, apply } = createFold({ touch: () => {}, now: () => 0 });
      return {
        read(event) {
          apply(event as ClientEvent);
          return page;
        },
      };
    },
  },
};

export const recordedLogs = (): readonly (readonly [name: string, log: readonly ToldRun[]])[] =>
  readdirSync(LOGS)
    .toSorted()
    .map((file) => [
      file.replace(/\.json$/, ""),
      JSON.parse(readFileSync(`${LOGS}${file}`, "utf8")) as ToldRun[],
    ]);

/** One line an event: what the reader sent. */
export function framesOf({ begin, shows }: Recorded, log: readonly ToldRun[]): string[] {
  return streamsOf(log, shows).flatMap((stream) => {
    const last = stream.at(-1)?.run;
    if (!last) return [];
    const { read, end } = begin(last);
    const lines = stream
      .flatMap(({ run, events }) => events.map((event) => ({ run, event })))
      .map(({ run, event }, at) => line(event.event, read(event, run, at + 1)));
    return end ? [...lines, line("end", end(last))] : lines;
  });
}

function streamsOf(log: readonly ToldRun[], shows: Recorded["shows"]): ToldRun[][] {
  const streams: ToldRun[][] = [];
  for (const told of log) {
    const stream = streams.at(-1);
    const before = stream?.at(-1);
    const isNext = before !== undefined && told.run.resumes === before.run.id && shows !== "run";
    if (stream && isNext && (shows !== "answer" || waits(before.events))) stream.push(told);
    else streams.push([told]);
  }
  return streams;
}

/** At once: a reader may change what it returns. */
const line = (event: string, made: unknown) => `${event} ${JSON.stringify(made) ?? ""}`;

/** What the reader made of each log when it was recorded. */
export function recordedFrames(reader: string): Readonly<Record<string, readonly string[]>> {
  const text = brotliDecompressSync(readFileSync(`${FRAMES}${reader}.json.br`)).toString();
  return JSON.parse(text) as Record<string, string[]>;
}
