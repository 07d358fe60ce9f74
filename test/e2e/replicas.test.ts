import { afterAll, expect, test } from "vitest";
import { textSeen } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import type { ServerOptions } from "../support/server.ts";
import { startServer } from "../support/server.ts";
import { SHARED_STORES, type SharedStore } from "../support/shared-stores.ts";
import { post, view } from "../support/sse.ts";

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
      expect(live.seen).toEqual((await started.ended()) && started.seen);
      expect((await view(other.url + location)).status).toBe(200);
      expect(textSeen(events)).toBe("a b c d e f");
      expect(await getJson(`${other.url}/threads/t1`)).toMatchObject({ status: "idle", message_count: 2 });
      // Another server's event may overtake it.
      for (const { others } of users) await expect.poll(() => others.join()).toContain("event: run_ended");
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
      await viewer.ended();
      const { items } = (await getJson(`${one.url}/threads/t1/messages`)) as { items: { content: string }[] };
      expect(items.map(({ content }) => content)).toContain("be quick");
      open();
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
