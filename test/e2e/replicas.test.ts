import { afterAll, expect, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { dataOf, names, textSeen } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import type { ServerOptions } from "../support/server.ts";
import { startServer } from "../support/server.ts";
import { SHARED_STORES, type SharedStore } from "../support/shared-stores.ts";
import { numbers, post, view } from "../support/sse.ts";

const json = { accept: "application/json", "content-type": "application/json" };
const getJson = async (url: string) => (await fetch(url)).json() as Promise<Record<string, unknown>>;
const send = (url: string, body: unknown, headers = json) =>
  fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
const isDelta = ({ event }: { event: string }) => event === "on_chat_model_stream";

/** The settings of servers on one empty database of it. */
async function placeOn(shared: SharedStore | undefined) {
  if (!shared) throw new Error("There was a store a moment ago.");
  return { store: shared.kind, [shared.kind]: { url: await shared.database() } };
}

/** Two servers on one store. */
async function twoReplicasOn(shared: SharedStore | undefined, options: ServerOptions = {}) {
  const config = { ...(await placeOn(shared)), ...options.config };
  const start = () => startServer({ ...options, config });
  return [await start(), await start()] as const;
}

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).describe(`replicas on one ${program}`, () => {
    test("show each other's runs, during and after them, and send their user the same events", async () => {
      const [one, other] = await twoReplicasOn(shared, { script: [{ say: "a b c d e f", delay_ms: 20 }] });
      const users = [await view(`${one.url}/events`), await view(`${other.url}/events`)];
      const started = await post(`${one.url}/threads/t1/runs`, { input: "Hi" });
      await started.until(isDelta);
      const location = started.headers.get("location");
      const live = await view(other.url + location);
      const events = await live.ended();
      expect(checkGrammar(events)).toEqual([]);
      expect(live.seen).toEqual((await started.ended()) && started.seen);
      expect((await view(other.url + location)).status).toBe(200);
      expect(textSeen(events)).toBe("a b c d e f");
      expect(await getJson(`${other.url}/threads/t1`)).toMatchObject({ status: "idle", message_count: 2 });
      // Nothing comes twice, or after it.
      await send(`${other.url}/threads`, { id: "last" });
      const told = users.map(
        ({ others }) =>
          () =>
            others.filter((frame) => frame.startsWith("event: ")),
      );
      for (const frames of told) await expect.poll(() => frames().at(-1)).toContain('"last"');
      expect(told[0]?.()).toEqual(told[1]?.());
      expect(told[0]?.().map((frame) => /^event: (\w+)/.exec(frame)?.[1])).toEqual([
        "run_started",
        "run_ended",
        "thread_changed",
      ]);
      for (const user of users) user.leave();
    });

    test("cancel and steer each other's runs immediately", async () => {
      const { tool, entered, open } = gate();
      const script = [...gated, ...gated];
      const [one, other] = await twoReplicasOn(shared, { script, tools: [tool], agents: WITH_GATE });
      const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go" });
      await entered;
      const run = viewer.headers.get("location")?.replace(/\/events$/, "");
      expect((await send(`${other.url}${run}/messages`, { input: "be quick" })).status).toBe(202);
      const stopped = await send(`${other.url}${run}/cancel`, { mode: "cancel" });
      expect(stopped.status).toBe(200);
      expect(await stopped.json()).toMatchObject({ status: "cancelled" });
      const events = await viewer.ended();
      expect(checkGrammar(events)).toEqual([]);
      const { items } = (await getJson(`${one.url}/threads/t1/messages`)) as { items: { content: string }[] };
      expect(items.map(({ content }) => content)).toContain("be quick");
      open();
    });

    test("recognise a request that was sent to the other before", async () => {
      const [one, other] = await twoReplicasOn(shared, { script: [{ say: "a b c d e f", delay_ms: 20 }] });
      const key = { "idempotency-key": "k1" };
      const first = await post(`${one.url}/threads/t1/runs`, { input: "Hi" }, key);
      await first.until(isDelta);
      first.leave();
      const again = await post(`${other.url}/threads/t1/runs`, { input: "Hi" }, key);
      expect(again.headers.get("location")).toBe(first.headers.get("location"));
      await again.ended();
      expect(numbers(again.seen)).toEqual(again.seen.map((_, index) => index + 1));

      const cursor = again.seen[4]?.id ?? "";
      const back = await post(`${other.url}/threads/t1/runs`, { input: "Hi" }, { "last-event-id": cursor });
      await back.ended();
      expect(numbers(back.seen)[0]).toBe(6);
      expect(((await getJson(`${one.url}/threads/t1/runs`)).items as unknown[]).length).toBe(1);
    });

    test("queue runs of one thread in order, wherever they were sent", async () => {
      const { tool, open, entered } = gate();
      const script = [...gated, { say: "second" }, { say: "third" }];
      const [one, other] = await twoReplicasOn(shared, { script, tools: [tool], agents: WITH_GATE });
      const first = await post(`${one.url}/threads/t1/runs`, { input: "1" });
      await entered;
      expect((await send(`${other.url}/threads/t1/runs`, { input: "no" })).status).toBe(409);
      const second = await post(`${other.url}/threads/t1/runs`, { input: "2", on_busy: "enqueue" });
      const third = await post(`${one.url}/threads/t1/runs`, { input: "3", on_busy: "enqueue" });
      open();
      await Promise.all([first.ended(), second.ended(), third.ended()]);
      const { items } = (await getJson(`${other.url}/threads/t1/messages`)) as {
        items: { role: string; content: string }[];
      };
      expect(items.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual([
        "1",
        "2",
        "3",
      ]);
    });

    test("give way to a run that interrupts on the other", async () => {
      const { tool, entered } = gate();
      // Either server may run the second, so the answer depends on the message, not on the number of calls.
      const script: Script = ({ messages }) => (messages.length > 1 ? { say: "Now." } : gated[0]);
      const [one, other] = await twoReplicasOn(shared, { script, tools: [tool], agents: WITH_GATE });
      const first = await post(`${one.url}/threads/t1/runs`, { input: "1" });
      await entered;
      const second = await post(`${other.url}/threads/t1/runs`, { input: "2", on_busy: "interrupt" });
      expect(dataOf(await first.ended(), "done")[0]?.status).toBe("cancelled");
      expect(names(await second.ended()).at(-1)).toBe("done");
    });

    test("take runs that the other has no slot for, and show the answer where it was requested", async () => {
      const { tool, entered, open } = gate();
      const config = { ...(await placeOn(shared)), limits: { runs: 1 } };
      const full = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
      const first = await post(`${full.url}/threads/t1/runs`, { input: "1" });
      await entered;
      await startServer({ script: () => ({ say: "Mine." }), config });
      for (const thread of ["t2", "t3", "t4"]) {
        const viewer = await post(`${full.url}/threads/${thread}/runs`, { input: "2" });
        expect(textSeen(await viewer.ended())).toBe("Mine.");
      }
      open();
      expect(textSeen(await first.ended())).toContain("Through.");
    });
  });
}
