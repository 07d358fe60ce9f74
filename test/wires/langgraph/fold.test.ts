// The fold of the LangGraph wire alone: its stock client can read every run.

import { MessageTupleManager } from "@langchain/langgraph-sdk/ui";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { endOf, type InitialThread, project, textOf } from "../../../src/wires/langgraph/table.ts";
import { arbitraryRun, RUN } from "../../support/arbitrary-run.ts";

/** An answer of spaces alone, or of thoughts, is no message of the thread. */
const isBlank = ({ id, content }: { id?: string | undefined; content: unknown }, whole: { id: string }[]) =>
  `${content}`.trim() === "" && !whole.some((message) => message.id === id);

test("LangGraph's client assembles the pieces of any run into the messages of its last state", () => {
  const modes = new Set(["values", "messages-tuple", "messages", "updates", "tools", "custom"]);
  const framesOf = (events: readonly StreamEvent[], texts: InitialThread["texts"] = []) => {
    const fold = project({ modes, subgraphs: true }, { calls: [], texts, state: {} });
    return events.flatMap((event) =>
      fold(event, RUN).map((frame) => {
        const text = frame.text();
        return { event: frame.event, text: typeof text === "string" ? text : [...text.parts].join("") };
      }),
    );
  };
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      const frames = framesOf(events);
      expect(framesOf(events)).toEqual(frames);
      expect(frames[0]?.event).toBe("metadata");
      expect(frames.findIndex(({ event }) => event === "end")).toBe(frames.length - 1);
      const pieces = new MessageTupleManager();
      const ids = new Set<string>();
      for (const { event, text } of frames)
        if (event === "messages") {
          const [piece, meta] = JSON.parse(text) as [
            Parameters<typeof pieces.add>[0],
            Record<string, unknown>,
          ];
          const id = pieces.add(piece, meta);
          if (id !== null) ids.add(id);
        }
      const last = frames.findLast(({ event }) => event === "values")?.text ?? "{}";
      const { messages } = JSON.parse(last) as { messages: { id: string; type: string; content: string }[] };
      const whole = messages.filter(({ type }) => type === "ai" || type === "tool");
      const put = [...ids].flatMap((id) => {
        const chunk = pieces.get(id)?.chunk;
        const isGone = chunk === undefined || chunk.type === "remove" || isBlank(chunk, whole);
        return isGone ? [] : [[id, chunk.content]];
      });
      expect(put).toEqual(whole.map(({ id, content }) => [id, content]));
      // A thread that already has the run's messages shows them once.
      const own = events.flatMap((each) =>
        each.event === "on_message" && !each.path ? [textOf(each.data.message)] : [],
      );
      expect(framesOf(events, own).findLast(({ event }) => event === "values")?.text ?? "{}").toBe(last);
    }),
  );
});

test("a run whose events are no longer kept ends with the reason why it stopped", () => {
  const limit = { limit: "max_iterations", message: "It was enough." };
  const frames = endOf({ ...RUN, status: "error", stop_reason: "max_iterations", details: limit });
  expect(frames.map((frame) => [frame.event, frame.text()])).toEqual([
    ["error", JSON.stringify({ error: "max_iterations", message: "It was enough." })],
    ["end", "null"],
  ]);
});
