// A server beside a newer release, which writes into their store what this one does not know.

import { afterAll, expect, test } from "vitest";
import type { UserEvent } from "../../src/agent/core/bus.ts";
import { NO_USAGE, userMessage } from "../../src/agent/core/message.ts";
import { createClient } from "../../src/client/client.ts";
import { createPostgresStores } from "../../src/engine/stores/postgres/index.ts";
import { createRedisStores } from "../../src/engine/stores/redis/index.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { claimed, eventsOf, keyOf, readAll } from "../engine/stores/fixture.ts";
import { needing } from "../support/needing.ts";
import { startServer } from "../support/server.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";
import { post, type Viewer, view } from "../support/sse.ts";

const newer = (shape: object) => shape as StreamEvent;
const ASKED = { ...userMessage("Hello"), mood: "glad" };
const ANSWER = {
  ...{ id: "msg_answer", created_at: ASKED.created_at, role: "assistant", content: "Good day." },
  certainty: 0.9,
};
const PLAN = newer({ event: "on_plan", data: { steps: [{ title: "Greet" }] } });
const RUN: StreamEvent[] = [
  newer({ event: "run_start", data: { agent: "assistant", model: "m", attempt: 1, region: "eu" } }),
  newer({ event: "on_message", data: { message: ASKED } }),
  PLAN,
  newer({ event: "on_chat_model_start", name: "m", data: { message_id: ANSWER.id, model: "m" } }),
  newer({ event: "on_chat_model_stream", data: { delta: "Good day." } }),
  newer({ event: "on_chat_model_stream", data: { certainty_delta: 0.9 } }),
  newer({ event: "on_chat_model_end", name: "m", data: { message_id: ANSWER.id, usage: NO_USAGE } }),
  newer({ event: "on_message", data: { message: ANSWER } }),
  newer({ event: "on_state", data: { key: "plan", value: { steps: 1 } } }),
  newer({ event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE, plan: 1 } }),
];
const isDone = ({ event }: StreamEvent) => event === "done";
/** Without the stamps that a store gives. */
const plain = (events: readonly StreamEvent[]) => events.map(({ event, data }) => ({ event, data }));

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  /** A server, its address, and the stores of the newer release. */
  const both = async () => {
    if (!shared) throw new Error("There was a store a moment ago.");
    const url = await shared.database();
    const server = await startServer({ config: { store: shared.kind, [shared.kind]: { url } } });
    const open = shared.kind === "redis" ? createRedisStores : createPostgresStores;
    const me = (await (await fetch(`${server.url}/me`)).json()) as { tenant: string; user: string };
    return { url: server.url, stores: await open({ url }), owner: { tenant: me.tenant, user: me.user } };
  };

  needing(shared, program).describe(`${program}: an older server`, () => {
    test("shows everything that a newer release writes to viewers of events", async () => {
      const { url, stores, owner } = await both();
      try {
        await stores.threads.create(owner, { id: "t1", agent: "assistant", metadata: {} });
        const live = await view(`${url}/threads/t1/events`);
        const claim = await claimed(stores, "t1", { owner, agent: "assistant" });
        const { run_id } = claim.lease;
        for (const event of RUN) await stores.events.append(claim.lease, [event]);
        const written = eventsOf(await readAll(stores, keyOf(claim)));
        expect(plain(written)).toEqual(plain(RUN));

        await live.until(isDone);
        live.leave();
        expect(live.seen.map(({ event }) => event)).toEqual(written);
        const cursor = live.seen[1]?.id ?? "";
        const events = `${url}/threads/t1/runs/${run_id}/events`;
        expect(await (await view(events)).ended()).toEqual(written);
        const rest = await view(events, { headers: { "last-event-id": cursor } });
        expect(await rest.ended()).toEqual(written.slice(2));

        const client = createClient({ baseUrl: url });
        const read = [];
        for await (const event of client.runs.events("t1", run_id)) read.push(event);
        expect(read).toEqual(written);
      } finally {
        await stores.close();
      }
    });

    test("keeps unknown parts of a thread when it continues it", async () => {
      const { url, stores, owner } = await both();
      try {
        const claim = await claimed(stores, "t1", { owner, agent: "assistant" });
        await stores.events.append(claim.lease, RUN);
        await (await post(`${url}/threads/t1/runs`, { input: "And now?" })).ended();
        expect(await stores.threads.state(owner, "t1")).toMatchObject({ plan: { steps: 1 } });
        const messages = await stores.threads.messages(owner, "t1");
        expect(messages.slice(0, 2)).toEqual([ASKED, ANSWER]);
        expect(messages).toHaveLength(4);
        const log = eventsOf(await readAll(stores, keyOf(claim)));
        expect(plain(log)).toContainEqual(PLAN);
      } finally {
        await stores.close();
      }
    });

    test("passes on a newer release's events to the user", async () => {
      const { url, stores, owner } = await both();
      try {
        const listening = await view(`${url}/events`);
        const told = [
          { event: "plan_changed", data: { thread_id: "t1", plan: { steps: 1 } }, at: 1 },
          { event: "run_started", data: { thread_id: "t1", run_id: "r", agent: "assistant", region: "eu" } },
        ];
        for (const event of told) stores.bus.publish(owner, event as UserEvent);
        await expect.poll(() => framesOf(listening)).toEqual(told);
        listening.leave();
      } finally {
        await stores.close();
      }
    });
  });
}

const framesOf = ({ others }: Viewer): unknown[] =>
  others.flatMap((frame) => {
    const [, data] = /^event: \w+\ndata: (.*)$/.exec(frame) ?? [];
    return data === undefined ? [] : [JSON.parse(data)];
  });
