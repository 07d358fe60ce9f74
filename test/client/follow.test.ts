// What the client follows across lost connections, silence, expired credentials and reloads.

import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type ClientOptions,
  createClient,
  type ProblemError,
  type StreamEvent,
  type UserEvent,
} from "../../src/client/client.ts";
import { AUDIENCE, ISSUER, issuer, token } from "../server/auth/issuer.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { view } from "../support/sse.ts";

const HEARTBEAT = { streams: { heartbeat: 0.05 } };
/** Tries again soon. */
const SOON = { longestPauseMs: 20 };
/** Only where silence is the point: a slow machine makes one too. */
const QUICK = { ...SOON, silenceMs: 1_000 };

async function proxyBefore({ url }: { url: string }) {
  const proxy = await cuttingProxy(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  return { proxy, url: `http://127.0.0.1:${proxy.port}` };
}

/** Aborts at the end of the test. */
function untilTheEnd(): AbortSignal {
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  return leaving.signal;
}

/** Reads on in the background, without an end. */
function reading<T>(events: AsyncGenerator<T, void, void>, onEvent: (event: T) => unknown = () => {}): T[] {
  const seen: T[] = [];
  void (async () => {
    for await (const event of events) {
      seen.push(event);
      await onEvent(event);
    }
  })().catch(() => {});
  return seen;
}

const ends = (events: readonly StreamEvent[]) => events.filter(({ event }) => event === "done").length;

/** All events of the thread's runs, oldest first, as a viewer at the server itself gets them. */
async function logOf({ url }: TestServer, thread = "t1"): Promise<StreamEvent[]> {
  const { items } = await createClient({ baseUrl: url }).runs.of(thread, { limit: 100 });
  const runs = items.reverse().map(async ({ id }) => {
    return (await view(`${url}/threads/${thread}/runs/${id}/events`)).ended();
  });
  return (await Promise.all(runs)).flat();
}

describe("following a thread", () => {
  test("yields the events of all its runs once, over broken and silent connections", async () => {
    const server = await startServer({ script: () => ({ say: "one two three" }), config: HEARTBEAT });
    const { proxy, url } = await proxyBefore(server);
    const direct = createClient({ baseUrl: server.url });
    for await (const _ of direct.run("t1", { input: "turn 0" }));
    const [first] = (await direct.runs.of("t1")).items;
    // From its first event on, whenever the connection is there.
    const after = await cursorOf(direct, first?.id ?? "");
    const breaks = ["cut", "silence", "cut"];
    const client = createClient({ baseUrl: url, ...QUICK });
    const seen = reading(client.follow("t1", { after }, untilTheEnd()), (event) => {
      if (event.event !== "on_chat_model_start") return;
      if (breaks.pop() === "silence") proxy.silence();
      else proxy.cutAll();
    });
    for (const turn of [1, 2, 3, 4]) {
      await direct.start("t1", { input: `turn ${turn}` });
      await expect.poll(() => ends(seen)).toBe(turn + 1);
    }
    expect(seen).toEqual((await logOf(server)).slice(1));
    expect(breaks).toEqual([]);
    expect(proxy.connections).toBeGreaterThan(3);
  });

  test("continues after a reload from the stored cursor, with each event once", async () => {
    const server = await startServer({ script: () => ({ think: "Hm.", say: "one two three" }) });
    const client = createClient({ baseUrl: server.url });
    for (const input of ["first", "second"]) for await (const _ of client.run("t1", { input }));
    const log = await logOf(server);
    const firstCursor = await cursorOf(client, (await client.runs.of("t1")).items.at(-1)?.id ?? "");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: log.length }), { maxLength: 4 }), async (loads) => {
        let stored = firstCursor;
        const seen: StreamEvent[] = [log[0] as StreamEvent];
        for (const count of [...loads, Number.POSITIVE_INFINITY]) {
          let left = count;
          if (ends(seen) === 2) break;
          const follow = client.follow("t1", { after: stored, onCursor: (cursor) => (stored = cursor) });
          for await (const event of follow) {
            seen.push(event);
            if (--left === 0 || ends(seen) === 2) break;
          }
        }
        expect(seen).toEqual(log);
      }),
      { numRuns: 20 },
    );
  });

  test("ends when the signal aborts, with its reason, and closes the connection", async () => {
    const server = await startServer({ script: () => ({ say: "Hello." }) });
    const { proxy, url } = await proxyBefore(server);
    const client = createClient({ baseUrl: url });
    for await (const _ of client.run("t1", { input: "go" }));
    const signals: AbortSignal[] = [];
    const watched: typeof fetch = (input, init) => {
      if (init?.signal) signals.push(init.signal);
      return fetch(input, init);
    };
    const stop = new AbortController();
    const next = createClient({ baseUrl: url, fetch: watched }).follow("t1", {}, stop.signal).next();
    await expect.poll(() => signals.length).toBe(1);
    await expect.poll(() => proxy.answers).toBeGreaterThan(0);
    stop.abort(new Error("enough"));
    await expect(next).rejects.toThrow("enough");
    expect(signals[0]?.aborted).toBe(true);
  });

  test("ends with an error if the thread is deleted or does not exist", async () => {
    const { url } = await startServer({ script: () => ({ say: "Hello." }) });
    const client = createClient({ baseUrl: url, ...SOON });
    for await (const _ of client.run("t1", { input: "go" }));
    const notFound = { status: 404, code: "not_found" };
    const ended = expect(client.follow("t1", {}).next()).rejects.toMatchObject(notFound);
    await client.threads.delete("t1");
    await ended;
    await expect(client.follow("nowhere", {}).next()).rejects.toMatchObject({ code: "not_found" });
  });

  test("reports expired events and continues with the next ones", async () => {
    const server = await startServer({ script: [{ say: "w ".repeat(25_000) }] });
    const client = createClient({ baseUrl: server.url });
    const { id } = await client.start("t1", { input: "go" });
    for await (const _ of client.runs.events("t1", id));
    let resets = 0;
    const options = { after: `${id}:1-1`, onReset: () => void resets++ };
    const seen = reading(client.follow("t1", options, untilTheEnd()));
    await expect.poll(() => ends(seen)).toBe(1);
    expect(resets).toBe(1);
  });
});

test("reports that events may be missing if the connection is lost before the first event", async () => {
  const server = await startServer();
  const { proxy, url } = await proxyBefore(server);
  const client = createClient({ baseUrl: url, ...SOON });
  await client.threads.create({ id: "t1" });
  const told: string[] = [];
  const options = {
    onReset: () => void told.push("reset"),
    onConnection: (state: string) => void told.push(state),
  };
  const seen = reading(client.follow("t1", options, untilTheEnd()));
  await expect.poll(() => told).toEqual(["live"]);
  proxy.cutAll();
  await expect.poll(() => told).toEqual(["live", "reconnecting", "reset", "live"]);
  await createClient({ baseUrl: server.url }).start("t1", { input: "go" });
  await expect.poll(() => ends(seen)).toBe(1);
  proxy.cutAll();
  await expect.poll(() => told.length).toBe(6);
  expect(told.slice(4)).toEqual(["reconnecting", "live"]);
});

/** The cursor of the first event of a run. */
async function cursorOf(client: ReturnType<typeof createClient>, run: string): Promise<string> {
  let first = "";
  const onCursor = (cursor: string) => {
    first ||= cursor;
  };
  for await (const _ of client.runs.events("t1", run, { onCursor }));
  return first;
}

describe("the state of the connection", () => {
  test("is reported once per change, across everything that is followed", async () => {
    const server = await startServer({ script: () => ({ say: "Hello." }) });
    const { proxy, url } = await proxyBefore(server);
    const states: string[] = [];
    const client = createClient({ baseUrl: url, ...SOON, onConnection: (state) => states.push(state) });
    await client.threads.create({ id: "t1" });
    const signal = untilTheEnd();
    let connected = 0;
    reading(client.follow("t1", {}, signal));
    reading(client.changes(signal, { onConnected: () => void connected++ }));
    await expect.poll(() => connected).toBe(1);
    await expect.poll(() => states).toEqual(["live"]);
    proxy.cutAll();
    await expect.poll(() => connected).toBe(2);
    await expect.poll(() => states).toEqual(["live", "reconnecting", "live"]);
  });
});

describe("the user's changes", () => {
  test("are yielded as they happen, even after the connection was lost", async () => {
    const server = await startServer({ script: () => ({ say: "Hello." }) });
    const { proxy, url } = await proxyBefore(server);
    const client = createClient({ baseUrl: url, ...SOON });
    let connected = 0;
    const seen: UserEvent[] = reading(client.changes(untilTheEnd(), { onConnected: () => void connected++ }));
    const renamed = () => seen.filter(({ event }) => event === "thread_changed").length;
    await expect.poll(() => connected).toBe(1);
    await client.threads.create({ id: "t1" });
    await expect.poll(renamed).toBe(1);
    proxy.cutAll();
    await expect.poll(() => connected).toBe(2);
    await client.threads.rename("t1", "New");
    await expect.poll(renamed).toBe(2);
    expect(seen.at(-1)).toEqual({
      event: "thread_changed",
      data: { thread_id: "t1", change: "updated" },
    });
  });
});

describe("an expiring token", () => {
  const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
  const seconds = () => Math.floor(Date.now() / 1000);

  async function withTokens() {
    const { tool, open, entered } = gate();
    const { url: jwks_url } = await issuer();
    const config = {
      auth: { scheme: "jwt", jwt: { jwks_url, issuer: ISSUER, audience: AUDIENCE, clock_tolerance: 1 } },
    };
    const { url } = await startServer({ config, script: gated, tools: [tool], agents: WITH_GATE });
    return { url, open, entered };
  }

  test("is renewed while a thread is followed, and no event is missed or repeated", async () => {
    const { url, open, entered } = await withTokens();
    const long = createClient({ baseUrl: url, headers: bearer(await token()) });
    const { id } = await long.start("t1", { input: "go" });
    await entered;
    let asked = 0;
    const headers = async () => bearer(await token(asked++ === 0 ? { exp: seconds() + 2 } : {}));
    const seen = reading(createClient({ baseUrl: url, headers }).follow("t1", {}, untilTheEnd()));
    await expect.poll(() => asked).toBe(2);
    open();
    await expect.poll(() => ends(seen)).toBe(1);
    const events: StreamEvent[] = [];
    for await (const event of long.runs.events("t1", id)) events.push(event);
    expect(seen).toEqual(events);
  });

  test("is renewed for any request that the server refuses", async () => {
    const { url } = await withTokens();
    const stale = bearer(await token({ exp: seconds() - 60 }));
    const refusals: unknown[] = [];
    const headers = async (refusal?: ProblemError) => {
      if (!refusal) return stale;
      refusals.push(refusal.status);
      return bearer(await token());
    };
    const client = createClient({ baseUrl: url, headers });
    expect((await client.me()).user).toBe("ada");
    await client.threads.create({ id: "t1" });
    expect(refusals).toEqual([401, 401]);
  });

  test("ends a request whose headers do not change", async () => {
    const { url } = await withTokens();
    const stale = bearer(await token({ exp: seconds() - 60 }));
    let sent = 0;
    const counted: typeof fetch = (...request) => {
      sent++;
      return fetch(...request);
    };
    for (const headers of [stale, () => stale]) {
      const client = createClient({ baseUrl: url, headers, fetch: counted });
      await expect(client.me()).rejects.toMatchObject({ status: 401 });
    }
    expect(sent).toBe(2);
  });
});

describe("a start whose response is lost", () => {
  test("is repeated and starts one run", async () => {
    const server = await startServer({ script: () => ({ say: "Hello." }), config: HEARTBEAT });
    const { proxy, url } = await proxyBefore(server);
    proxy.silenceNext();
    const retried: Error[] = [];
    const options: ClientOptions = { baseUrl: url, ...QUICK, onRetry: (reason) => void retried.push(reason) };
    const { id } = await createClient(options).start("t1", { input: "go" });
    expect(retried).not.toEqual([]);
    const { items } = await createClient({ baseUrl: server.url }).runs.of("t1");
    expect(items.map((run) => run.id)).toEqual([id]);
  });
});
