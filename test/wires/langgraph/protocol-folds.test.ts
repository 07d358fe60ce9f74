// The fold of LangGraph's streaming protocol alone: a stock client can read every run.

import { MessageAssembler, matchesSubscription } from "@langchain/langgraph-sdk/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Message, NO_USAGE } from "../../../src/agent/core/message.ts";
import { matches } from "../../../src/wires/langgraph/protocol/filter.ts";
import type { ShownThread } from "../../../src/wires/langgraph/protocol/speakers.ts";
import { numberOf } from "../../../src/wires/langgraph/protocol/stream.ts";
import { project as protocolEvents } from "../../../src/wires/langgraph/protocol/table.ts";
import type { LangGraphEvent } from "../../../src/wires/langgraph/protocol/told.ts";
import { arbitraryRun, RUN } from "../../support/arbitrary-run.ts";
import { AT } from "../../support/turns/events.ts";

describe("the events of LangGraph's streaming protocol, of any run", () => {
  type Events = Parameters<ReturnType<typeof protocolEvents>>[0][];
  const START: ShownThread = { messages: [], state: {}, isPast: false };
  const told = (events: Events, options = START, from = 0): LangGraphEvent[] => {
    const fold = protocolEvents(options);
    return events
      .slice(from)
      .flatMap((event, index) => fold(event, { epoch: 1, seq: from + index + 1 }, RUN));
  };
  const ofClient = ({ method, namespace, node, timestamp, data }: LangGraphEvent) => ({
    ...{ type: "event", method },
    params: { namespace: [...namespace], timestamp, data, ...(node ? { node } : {}) },
  });
  /** What the client's own assembler makes of them: the text of each message, by its id. */
  const assembled = (all: readonly LangGraphEvent[]) => {
    const assembler = new MessageAssembler();
    const texts = new Map<string | undefined, string>();
    for (const each of all) {
      if (each.method !== "messages") continue;
      const update = assembler.consume(ofClient(each) as never);
      const blocks = update?.message.blocks ?? [];
      const text = blocks.flatMap((block) => (block.type === "text" ? [String(block.text)] : [])).join("");
      if (update?.kind === "message-finish") texts.set(update.message.id, text);
    }
    return texts;
  };
  const spoken = (events: Events) =>
    new Map(
      events.flatMap((event) =>
        event.event === "on_message" && event.data.message.role === "assistant"
          ? [[event.data.message.id, event.data.message.content] as const]
          : [],
      ),
    );
  const written = (events: Events): Message[] =>
    events.flatMap((event) => (event.event === "on_message" && !event.path ? [event.data.message] : []));
  /** The state as a client has it in the end. */
  const lastValues = (all: readonly LangGraphEvent[]) =>
    all.findLast(({ method, namespace }) => method === "values" && namespace.length === 0)?.data;

  test("begin and end with it, and each snapshot follows its checkpoint", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const all = told(events);
        const root = all.filter(({ method, namespace }) => method === "lifecycle" && namespace.length === 0);
        expect(all[0]).toBe(root[0]);
        expect(root[0]?.data.event).toBe("running");
        expect(root).toHaveLength(2);
        expect(all.at(-1)).toBe(root[1]);
        const numbers = all.map(({ at }) => numberOf(7, at));
        expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
        expect(new Set(numbers).size).toBe(numbers.length);
        for (const [index, { method, isWithdrawal }] of all.entries())
          if (method === "values" && !isWithdrawal) expect(all[index - 1]?.method).toBe("checkpoints");
      }),
    );
  });

  test("give the client's assembler each message as the thread has it", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const texts = assembled(told(events));
        for (const [id, content] of spoken(events)) expect(texts.get(id)).toBe(content);
        const ids = (lastValues(told(events)) as { messages: { id: string }[] }).messages.map(({ id }) => id);
        expect(ids).toEqual(written(events).map(({ id }) => id));
      }),
    );
  });

  test("retract the text of a failed attempt: a snapshot shows it, and the next one does not", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const all = told(events);
        const begun = all.flatMap(({ namespace, data }) =>
          namespace.length === 0 && data.event === "message-start" ? [data.id] : [],
        );
        const shown = new Set(
          all.flatMap(({ method, data }) =>
            method === "values" ? (data.messages as { id: string }[]).map(({ id }) => id) : [],
          ),
        );
        const blank = assembled(all.filter(({ namespace }) => namespace.length === 0));
        const isBlank = (id: unknown) => (blank.get(String(id)) ?? "").trim() === "";
        expect(begun.filter((id) => !shown.has(String(id)) && !isBlank(id))).toEqual([]);
      }),
    );
  });

  test("show the same for a past run, each block at once, without removed messages", () => {
    fc.assert(
      fc.property(arbitraryRun, fc.nat(), (events, cut) => {
        const all = written(events);
        const messages = all.slice(0, cut % (all.length + 1));
        const past = told(events, { messages, state: {}, isPast: true });
        expect(past.some(({ data }) => data.event === "content-block-delta")).toBe(false);
        const live = new Set(told(events).map(({ at }) => JSON.stringify(at)));
        expect(past.filter(({ at }) => !live.has(JSON.stringify(at)))).toEqual([]);
        const kept = new Set(messages.map(({ id }) => id));
        const texts = assembled(past.filter(({ namespace }) => namespace.length === 0));
        for (const [id, content] of spoken(events))
          expect(texts.get(id)).toBe(kept.has(id) ? content : undefined);
        if (messages.length > 0)
          expect((lastValues(past) as { messages: object[] }).messages).toHaveLength(messages.length);
      }),
    );
  });

  test("bring a client to the end of the run from any event, even if earlier ones are no longer kept", () => {
    fc.assert(
      fc.property(arbitraryRun, fc.nat(), (events, cut) => {
        const from = cut % events.length;
        const rest = told(events, { ...START, messages: written(events) }, from);
        expect(rest[0]?.data.event).toBe("running");
        const ids = (lastValues(rest) as { messages: { id: string }[] }).messages.map(({ id }) => id);
        expect(ids).toEqual(written(events).map(({ id }) => id));
        const texts = assembled(rest);
        for (const [id, content] of spoken(events.slice(from))) expect(texts.get(id)).toBe(content);
      }),
    );
  });

  test("show all of the thread after a run that changes only its state", () => {
    const messages: Message[] = [{ id: "m1", created_at: AT, role: "user", content: "Hi" }];
    const events: Events = [
      { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
      { event: "on_state", data: { key: "todos", value: [] } },
      { event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE } },
    ];
    expect(lastValues(told(events, { ...START, messages }))).toMatchObject({ messages: [{ id: "m1" }] });
  });

  test("are filtered as the client filters them", () => {
    const part = fc.constantFrom("tools", "tools:call_0_0_child", "tools:call_1_0_child", "agent", "x:y");
    const filter = fc.record(
      {
        channels: fc.array(
          fc.constantFrom(
            ...["values", "checkpoints", "lifecycle", "input", "messages", "tools"],
            ...["custom", "custom:warning", "custom:other", "updates"],
          ),
          { minLength: 1 },
        ),
        namespaces: fc.array(fc.array(part, { maxLength: 2 }), { maxLength: 3 }),
        depth: fc.nat(2),
      },
      { requiredKeys: ["channels"] },
    );
    fc.assert(
      fc.property(arbitraryRun, filter, (events, wanted) => {
        for (const each of told(events))
          expect(matches(wanted, each)).toBe(matchesSubscription(ofClient(each) as never, wanted as never));
      }),
    );
  });
});
