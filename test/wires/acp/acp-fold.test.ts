// The updates of any run fit the protocol's own schema, and no call stays open on the screen.

import { readFile } from "node:fs/promises";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { historyOf, project } from "../../../src/wires/acp/table.ts";
import { arbitraryRun } from "../../support/arbitrary-run.ts";

const SCHEMA = new URL(import.meta.resolve("@agentclientprotocol/sdk/schema/v1/schema.json"));
const schema = JSON.parse(await readFile(SCHEMA, "utf8")) as object;
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(schema, "acp");
const fits = ajv.compile<SessionUpdate>({ $ref: "acp#/$defs/SessionUpdate" });

const shows = { notices: true, compaction: true };

function updatesOf(events: readonly StreamEvent[]) {
  const fold = project({ contextWindow: 1000, shows });
  const updates = events.flatMap(fold.updatesOf);
  return { updates, closing: fold.closing() };
}

function assertFit(updates: readonly SessionUpdate[]) {
  for (const update of updates) expect(fits(update), JSON.stringify([update, fits.errors])).toBe(true);
}

const assistantText = (updates: readonly SessionUpdate[]) =>
  updates
    .map((each) =>
      each.sessionUpdate === "agent_message_chunk" && each.content.type === "text" ? each.content.text : "",
    )
    .join("");

test("the updates of any run match the protocol's schema, and name each call before they change it", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      const { updates, closing } = updatesOf(events);
      assertFit([...updates, ...closing]);
      const begun = new Set<string>();
      for (const update of [...updates, ...closing]) {
        if (update.sessionUpdate === "tool_call") begun.add(update.toolCallId);
        if (update.sessionUpdate === "tool_call_update") expect(begun).toContain(update.toolCallId);
      }
    }),
  );
});

test("a run that asked nothing leaves no call open at its end", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      fc.pre(!events.some(({ event }) => event === "on_interrupt"));
      const { updates, closing } = updatesOf(events);
      const statuses = new Map<string, unknown>();
      for (const update of [...updates, ...closing])
        if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update")
          if (update.status) statuses.set(update.toolCallId, update.status);
      for (const status of statuses.values()) expect(["completed", "failed"]).toContain(status);
    }),
  );
});

test("a thread that is loaded later has the text of the written messages", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      const messages = events.flatMap((event) =>
        event.event === "on_message" && !event.path ? [event.data.message] : [],
      );
      const history = historyOf(messages, undefined);
      assertFit(history);
      const written = messages.map((message) => (message.role === "assistant" ? message.content : ""));
      expect(assistantText(history)).toBe(written.join(""));
    }),
  );
});

test("an editor that supports no notices and compactions receives none", () => {
  const silent = project({ contextWindow: 1000, shows: { notices: false, compaction: false } });
  const told = project({ contextWindow: 1000, shows });
  const compacted: StreamEvent = {
    event: "warning",
    data: { code: "context_compacted", message: "Compacted." },
  };
  const odd: StreamEvent = { event: "warning", data: { code: "odd", message: "Odd." } };
  expect([compacted, odd].flatMap(silent.updatesOf)).toEqual([]);
  expect([compacted, odd].flatMap(told.updatesOf)).toMatchObject([
    { sessionUpdate: "compaction_update", status: "completed" },
    { sessionUpdate: "notice", title: "Odd." },
  ]);
});
