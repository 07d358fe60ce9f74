// Deliveries that come while their trigger changes: its agent is missing for a time, or its user is deleted.

import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import {
  createTriggers,
  type IncomingDelivery,
  type TriggerServices,
} from "../../../src/engine/triggers/index.ts";
import { TriggerSpec } from "../../../src/engine/triggers/trigger.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import { DEFINITION, managed } from "../runs/managed.ts";
import { ADA } from "../stores/fixture.ts";

const SECRET = "a secret of 16 characters or more";
const MINUTE = 60_000;
const SPEC = TriggerSpec.parse({ agent: "helper", verify: { scheme: "token" }, input: "{{body.text}}" });

async function opened({ request = async () => {} }: Partial<TriggerServices["quotas"]> = {}) {
  let time = 0;
  const state = { isMissing: false };
  const stores = createMemoryStores({ now: () => Date.now() + time });
  const find = () => {
    if (state.isMissing) throw new AppError("not_found", "There is no agent `helper`.");
    return DEFINITION;
  };
  const { runs } = managed(stores, { agents: { find } });
  await runs.open();
  const triggers = createTriggers({
    ...{ documents: stores.documents, runs, logger: SILENT, quotas: { request }, publicUrl: undefined },
    endOfKey: async (key) =>
      key === "key_old" ? new AppError("credentials_revoked", "The API key was revoked.") : undefined,
    limits: { triggers: 10, requestsPerMinute: 100 },
  });
  onTestFinished(() => triggers.close());
  const put = async (input: string, api_key = "key_new", paused = false) => {
    const times = { created_at: new Date(0).toISOString(), updated_at: new Date(0).toISOString() };
    const made = () => ({ ...SPEC, ...times, input, api_key, paused, secret: SECRET });
    return (await triggers.store.put(ADA, "mine", made, () => {})).trigger.address;
  };
  const incoming = (id: string): IncomingDelivery => ({
    headers: { authorization: SECRET, "idempotency-key": id },
    raw: Buffer.from(`{"text": "${id}"}`),
    request_id: id,
    parse: async () => ({ text: id }),
  });
  const outcomeOf = (answer: Promise<unknown>) =>
    answer.then(
      () => "started",
      (error: AppError) => error.code,
    );
  const send = async (address: string, id: string) =>
    outcomeOf(triggers.open(address).then((open) => triggers.receive(open, incoming(id))));
  const pass = (ms: number) => {
    time += ms;
  };
  return { stores, triggers, state, put, send, incoming, outcomeOf, pass };
}

test("a trigger whose agent is missing is paused after ten minutes, unless the agent returns earlier", async () => {
  const { triggers, state, put, send, pass } = await opened();
  const address = await put("{{body.text}}");
  state.isMissing = true;
  expect(await send(address, "one")).toBe("unavailable");
  pass(9 * MINUTE);
  expect(await send(address, "one")).toBe("unavailable");
  state.isMissing = false;
  expect(await send(address, "one")).toBe("started");
  pass(9 * MINUTE);
  state.isMissing = true;
  expect(await send(address, "two")).toBe("unavailable");
  // No one looked for it for hours, in which it may have been back.
  pass(2 * 60 * MINUTE);
  expect(await send(address, "two")).toBe("unavailable");
  pass(11 * MINUTE);
  expect(await send(address, "two")).toBe("not_found");
  expect((await triggers.store.get(ADA, "mine"))?.trigger).toMatchObject({
    paused: true,
    paused_reason: { code: "agent_missing" },
  });
});

test("a trigger that was replaced during one of its deliveries is not paused", async () => {
  const { triggers, put, incoming, outcomeOf } = await opened();
  const before = await triggers.open(await put("{{body.text}}", "key_old"));
  await put("{{body.text}}");
  expect(await outcomeOf(triggers.receive(before, incoming("one")))).toBe("unavailable");
  expect((await triggers.store.get(ADA, "mine"))?.trigger.paused).toBe(false);
});

test("a delivery whose user is deleted meanwhile leaves no run, thread or entry behind", async () => {
  const { stores, triggers, put, send } = await opened({
    async request() {
      await triggers.store.erase(ADA);
    },
  });
  expect(await send(await put("{{body.text}}"), "one")).toBe("not_found");
  await triggers.close();
  expect((await stores.threads.list(ADA, { limit: 10 })).items).toEqual([]);
  for (const kind of ["triggers", "trigger_logs", "trigger_runs"])
    expect(await stores.documents.list({ kind, ...ADA }), kind).toEqual([]);
});

test("an old secret is valid until its time has passed", async () => {
  const { triggers, put, send } = await opened();
  const address = await put("{{body.text}}");
  const rotate = (ms: number) => {
    const previous = { secret: SECRET, until: new Date(Date.now() + ms).toISOString() };
    return triggers.store.change(ADA, "mine", (before) => ({ ...before, secret: "another", previous }));
  };
  await rotate(MINUTE);
  expect(await send(address, "one")).toBe("started");
  await rotate(-1);
  expect(await send(address, "two")).toBe("unauthorized");
});

test("a delivery is remembered for a day, in which others come", async () => {
  const { stores, triggers, put, send, pass } = await opened();
  const address = await put("{{body.text}}");
  expect(await send(address, "one")).toBe("started");
  pass(24 * 60 * MINUTE);
  expect(await send(address, "two")).toBe("started");
  await triggers.close();
  expect(await stores.documents.list({ kind: "trigger_runs", ...ADA })).toHaveLength(2);
});

test("a delivery starts nothing if its trigger is meanwhile paused, deleted or given to another key", async () => {
  const changes = { paused: "not_found", deleted: "not_found", replaced: "unavailable" };
  for (const [change, code] of Object.entries(changes)) {
    const { stores, triggers, put, incoming, outcomeOf } = await opened({
      async request() {
        if (change === "deleted") await triggers.store.delete(ADA, "mine", () => {});
        else await put("{{body.text}}", change === "paused" ? "key_new" : "key_other", change === "paused");
      },
    });
    const open = await triggers.open(await put("{{body.text}}"));
    expect(await outcomeOf(triggers.receive(open, incoming("one"))), change).toBe(code);
    await expect(stores.threads.list(ADA, { limit: 10 }), change).resolves.toMatchObject({ items: [] });
    expect(await stores.documents.list({ kind: "trigger_runs", ...ADA }), change).toEqual([]);
  }
});

test("a delivery whose trigger meanwhile gets another text starts its run", async () => {
  const { triggers, put, incoming, outcomeOf } = await opened({
    async request() {
      await put("Now: {{body.text}}");
    },
  });
  const open = await triggers.open(await put("{{body.text}}"));
  expect(await outcomeOf(triggers.receive(open, incoming("one")))).toBe("started");
});
