// While a newer release is rolled out, an older one shows what the newer one does: it passes over events that it does not know.

import fc from "fast-check";
import { expect, test } from "vitest";
import { createFold } from "../../src/client/fold.ts";
import type { StreamEvent as ClientEvent } from "../../src/client/wire.ts";
import { trackTurn } from "../../src/engine/runs/turn.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { trackPhase } from "../../src/protocol/phase.ts";
import { readSpans } from "../../src/protocol/span-reader.ts";
import { renderer } from "../../src/skein/cli/render.ts";
import { project as taskUpdates } from "../../src/wires/a2a/table.ts";
import { project as acpUpdates } from "../../src/wires/acp/table.ts";
import { project as aguiEvents } from "../../src/wires/ag-ui/table.ts";
import { project as uiChunks } from "../../src/wires/ai-sdk/table.ts";
import { project as protocolEvents } from "../../src/wires/langgraph/protocol/table.ts";
import { project as langgraphFrames } from "../../src/wires/langgraph/table.ts";
import { project as mcpMessages } from "../../src/wires/mcp/table.ts";
import { project as chatChunks } from "../../src/wires/openai/chat/table.ts";
import { project as responseEvents } from "../../src/wires/openai/responses/table.ts";
import { arbitraryRun, RUN } from "../support/arbitrary-run.ts";

const newer = (shape: object) => shape as StreamEvent;

/** Between the first event of a run and its last one. */
const arbitraryNews = fc.array(
  fc.record({
    place: fc.nat(),
    event: fc.constantFrom(
      newer({ event: "on_plan", data: { steps: [{ title: "Look", call_id: "call_1" }] } }),
      newer({
        event: "on_checkpoint",
        name: "m",
        data: { message_id: "msg_user", message: { role: "judge" } },
      }),
      newer({ event: "on_chat_model_stream", data: { certainty_delta: 0.9 } }),
      newer({ event: "on_chat_model_pause", run_id: "run_1", data: { delta: "x" } }),
    ),
  }),
  { minLength: 1, maxLength: 4 },
);

const run = arbitraryRun.map((events) => events.map((event, index) => ({ event, seq: index + 1 })));
type Log = readonly { readonly event: StreamEvent; readonly seq: number }[];

/** What each reader makes of a whole run. */
const READERS: Readonly<Record<string, (log: Log) => unknown>> = {
  "AI SDK": (log) => shown(log, uiChunks({ messageId: "a_msg", version: 7 })),
  "AG-UI": (log) => {
    const reader = {
      threadId: "t",
      runId: "r",
      isCurrent: true,
      messages: [],
      state: {},
      showsMessages: true,
    };
    return shown(log, aguiEvents(reader));
  },
  "OpenAI's chat": (log) =>
    shown(log, chatChunks({ model: "assistant", includesUsage: true, outputOnly: false })),
  "OpenAI's responses": (log) => shown(log, responseEvents({}).see),
  A2A: (log) => shown(log, taskUpdates({ id: 1, ref: { taskId: "thread.run_1", contextId: "thread" } })),
  MCP: (log) => {
    const options = {
      id: 1,
      progressToken: 7,
      asking: "within",
      shows: { forms: true, addresses: false },
      namesType: true,
      cursorOf: undefined,
    } as const;
    return shown(log, mcpMessages(options).fold);
  },
  LangGraph: (log) => {
    const modes = new Set(["values", "messages-tuple", "messages", "updates", "tools", "custom"]);
    const fold = langgraphFrames({ modes, subgraphs: true }, { calls: [], texts: [], state: {} });
    return log.flatMap(({ event }) => fold(event, RUN).map((frame) => [frame.event, frame.text()]));
  },
  "LangGraph's protocol": (log) => {
    const fold = protocolEvents({ messages: [], state: {}, isPast: false });
    return log.flatMap(({ event, seq }) => fold(event, { epoch: 1, seq }, RUN));
  },
  "the editor's protocol": (log) => {
    const fold = acpUpdates({ contextWindow: 1000, shows: { notices: true, compaction: true } });
    return [...log.flatMap(({ event }) => fold.updatesOf(event)), ...fold.closing()];
  },
  "the terminal": (log) => {
    const render = renderer((_, text) => text);
    return log.map(({ event }) => render(event)).join("");
  },
  "the page": (log) => {
    const { page, apply } = createFold({ touch: () => {}, now: () => 0 });
    for (const { event } of log) apply(event as ClientEvent);
    return page;
  },
  phases: (log) => {
    const track = trackPhase();
    return log.map(({ event }) => track(event)).at(-1);
  },
  spans: (log) => {
    const spans = readSpans({});
    for (const { event } of log) spans.see(event);
    return spans.open();
  },
  turns: (log) => {
    const isOver = trackTurn();
    return log.map(({ event }) => isOver(event)).at(-1);
  },
};

const shown = (log: Log, fold: (event: StreamEvent, run: typeof RUN) => unknown) =>
  log.flatMap(({ event }) => fold(event, RUN));

test.each(Object.entries(READERS))("%s shows a newer release's run without the new parts", (_, read) => {
  fc.assert(
    fc.property(run, arbitraryNews, (log, news) => {
      const mixed = [...log];
      for (const { place, event } of news) {
        const at = 1 + (place % (mixed.length - 1));
        const { event: before = event, seq = 1 } = mixed[at - 1] ?? {};
        const { path } = before;
        if (event.event === "on_chat_model_stream" && before.event !== event.event) continue;
        // Next to what a subagent does it is the subagent's.
        mixed.splice(at, 0, { event: path ? { ...event, path } : event, seq });
      }
      expect(read(mixed)).toEqual(read(log));
    }),
  );
});

test.each(Object.entries(READERS))("%s reads events with new fields", (_, read) => {
  const withMore = ({ event, seq }: Log[number]) => ({
    event: newer({ ...event, later: { a: 1 }, data: { ...event.data, later: ["b"] } }),
    seq,
  });
  fc.assert(
    fc.property(run, (log) => {
      const [known, more] = [read(log), read(log.map(withMore))];
      if (Array.isArray(known)) expect(more).toHaveLength(known.length);
    }),
  );
});
