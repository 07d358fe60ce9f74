// The folds of the wires over whole turns: a stream continues while its turn waits for a deferred result, and ends once.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunRecord } from "../../src/agent/core/records.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import type { Frame, LongFrame } from "../../src/server/http/sse.ts";
import { project as taskUpdates } from "../../src/wires/a2a/table.ts";
import { project as aguiEvents } from "../../src/wires/ag-ui/table.ts";
import { project as uiChunks } from "../../src/wires/ai-sdk/table.ts";
import { project as langgraphFrames } from "../../src/wires/langgraph/table.ts";
import { project as mcpMessages } from "../../src/wires/mcp/table.ts";
import { project as chatChunks } from "../../src/wires/openai/chat/table.ts";
import { project as responseEvents } from "../../src/wires/openai/responses/table.ts";
import { arbitraryStream, arbitraryTurn, waits } from "../support/arbitrary-run.ts";

test("every run of these turns is valid, and names the one that it resumes", () => {
  fc.assert(
    fc.property(arbitraryTurn, (turn) => {
      expect(turn.flatMap(({ events }) => checkGrammar(events))).toEqual([]);
      const ids = turn.map(({ run }) => run.id);
      expect(turn.map(({ run }) => run.resumes)).toEqual([undefined, ...ids.slice(0, -1)]);
      for (const { events } of turn.slice(0, -1))
        expect(events.at(-1)).toMatchObject({ data: { status: "interrupted", stop_reason: "tool_use" } });
    }),
  );
});

test("these turns match the logs of servers", () => {
  const events = fc
    .sample(arbitraryTurn, { numRuns: 1000, seed: 1 })
    .flatMap((turn) => turn.flatMap((told) => told.events));
  const held = new Set(events.flatMap(kindsOf));
  const RESUMED = ["approve", "deny", "edit", "respond"].map((decision) => `on_resume ${decision}`);
  const ASKED = ["approval", "question", "tool", "by a subagent"].map((kind) => `on_interrupt ${kind}`);
  const LEFT = ["completed", "interrupted", "running"].map((status) => `on_subagent_end ${status}`);
  const ENDS = ["success end_turn", "success refusal", "success max_tokens", "interrupted tool_use"];
  const MORE = ["interrupted interrupt", "cancelled cancelled", "error max_iterations"];
  for (const kind of [
    ...[...RESUMED, ...ASKED, ...LEFT, ...[...ENDS, ...MORE].map((end) => `done ${end}`)],
    ...["run_resumed", "message_discard", "warning", "error", "on_tool_end interrupted"],
    ...["on_state deletes a file", "on_state todos", "on_state closes an interrupt"],
    ...["on_message incomplete", "on_message without a start"],
  ])
    expect(held).toContain(kind);
});

function kindsOf(event: StreamEvent): string[] {
  const kinds: string[] = [event.event];
  switch (event.event) {
    case "on_resume":
      kinds.push(`on_resume ${event.data.decision}`);
      break;
    case "on_interrupt":
      kinds.push(`on_interrupt ${event.data.asked_by ? "by a subagent" : event.data.kind}`);
      break;
    case "on_subagent_end":
      kinds.push(`on_subagent_end ${event.data.status}`);
      break;
    case "done":
      kinds.push(`done ${event.data.status} ${event.data.stop_reason}`);
      break;
    case "on_tool_end":
      if (event.data.interrupted) kinds.push("on_tool_end interrupted");
      break;
    case "on_state": {
      const { key, patch = {} } = event.data;
      const deletes = Object.values(patch).includes(null);
      kinds.push(`on_state ${key}`);
      if (deletes) kinds.push(key === "files" ? "on_state deletes a file" : "on_state closes an interrupt");
      break;
    }
    case "on_message": {
      const { message } = event.data;
      if (message.role === "assistant" && message.incomplete) kinds.push("on_message incomplete");
      if (message.role === "tool" && message.error?.startsWith("Not run"))
        kinds.push("on_message without a start");
      break;
    }
  }
  return kinds;
}

type Fold = (event: StreamEvent, run: RunRecord) => readonly (Frame | LongFrame)[];

interface Wire {
  begin(): Fold;
  /** Whether a frame is the last one of a stream. */
  isLast(frame: Frame | LongFrame): boolean;
}

/** A stream of these is a turn's. */
const WIRES_OF_TURNS: Readonly<Record<string, Wire>> = {
  "AI SDK": {
    begin: () => uiChunks({ messageId: "a_msg", version: 7 }),
    isLast: ({ data }) => data === "[DONE]",
  },
  "OpenAI's responses": {
    begin: () => responseEvents({}).see,
    isLast: ({ data }) => isTyped(data, ["response.completed", "response.incomplete", "response.failed"]),
  },
  A2A: {
    begin: () => taskUpdates({ id: 1, ref: { taskId: "t", contextId: "c" } }),
    isLast: ({ data }) => {
      const { result } = parsed(data) as { result: { statusUpdate?: { status: { state: string } } } };
      const state = result.statusUpdate?.status.state;
      return state !== undefined && state !== "TASK_STATE_WORKING";
    },
  },
  MCP: {
    begin: () =>
      mcpMessages({
        ...{ id: 1, progressToken: 7, asking: "never", namesType: true, cursorOf: undefined },
        shows: { forms: false, addresses: false },
      }).fold,
    isLast: ({ data }) => "result" in parsed(data),
  },
};

/** A stream of these is a run's. */
const WIRES_OF_RUNS: Readonly<Record<string, Wire>> = {
  "AG-UI": {
    begin: () =>
      aguiEvents({
        ...{ threadId: "t", runId: "r", isCurrent: true },
        ...{ messages: [], state: {}, showsMessages: false },
      }),
    isLast: ({ data }) => isTyped(data, ["RUN_FINISHED", "RUN_ERROR"]),
  },
  "OpenAI's chat": {
    begin: () => chatChunks({ model: "assistant", includesUsage: true, outputOnly: false }),
    isLast: ({ data }) => data === "[DONE]" || "error" in parsed(data),
  },
  LangGraph: {
    begin: () => {
      const start = { calls: [], texts: [], state: {} };
      const fold = langgraphFrames({ modes: new Set(["values"]), subgraphs: true }, start);
      return (event, run) => fold(event, run).map((frame) => ({ event: frame.event, data: "" }));
    },
    isLast: ({ event }) => event === "end",
  },
};

function parsed(data: Frame["data"] | LongFrame["data"]): { type?: string } {
  return JSON.parse(typeof data === "string" ? data : [...data.parts].join("")) as { type?: string };
}

const isTyped = (data: Frame["data"] | LongFrame["data"], types: readonly string[]) =>
  types.includes(parsed(data).type ?? "");

test.each(Object.entries(WIRES_OF_TURNS))(
  "%s ends a stream with the last run of its turn, but not while it waits for a deferred result",
  (_, { begin, isLast }) => {
    fc.assert(
      fc.property(arbitraryStream, (turn) => {
        const fold = begin();
        const frames = turn.flatMap(({ run, events }) => events.flatMap((event) => fold(event, run)));
        const isOver = !waits(turn.at(-1)?.events ?? []);
        expect(frames.map(isLast)).toEqual(frames.map((_, at) => isOver && at === frames.length - 1));
      }),
    );
  },
);

test.each(Object.entries(WIRES_OF_RUNS))("%s ends a stream with its run", (_, { begin, isLast }) => {
  fc.assert(
    fc.property(arbitraryTurn, (turn) => {
      for (const { run, events } of turn) {
        const fold = begin();
        const frames = events.flatMap((event) => fold(event, run));
        expect(frames.map(isLast)).toEqual(frames.map((_, at) => at === frames.length - 1));
      }
    }),
  );
});
