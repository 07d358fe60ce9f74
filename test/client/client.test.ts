import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { type ClientOptions, createClient, type StreamEvent } from "../../src/client/client.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { names, textSeen } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { view } from "../support/sse.ts";
import { unlessStalled } from "../support/stalls.ts";

/** Heartbeats come twenty times as often. */
const SILENCE = { silenceMs: 1_000, longestPauseMs: 20 };
const HEARTBEAT = { streams: { heartbeat: 0.05 } };

async function proxyBefore(url: string) {
  const proxy = await cuttingProxy(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  return { proxy, url: `http://127.0.0.1:${proxy.port}` };
}

async function all(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const seen: StreamEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

async function runsOf(url: string): Promise<{ id: string }[]> {
  return ((await (await fetch(`${url}/threads/t1/runs`)).json()) as { items: { id: string }[] }).items;
}

/** All events of the one run of thread `t1`, as a viewer at the server itself gets them. */
async function eventsAt(url: string): Promise<StreamEvent[]> {
  const runs = await runsOf(url);
  expect(runs).toHaveLength(1);
  return (await view(`${url}/threads/t1/runs/${runs[0]?.id}/events`)).ended();
}

describe("a silent connection", () => {
  test("is closed, and the run is followed from where it broke", async () => {
    const { tool, open, entered } = gate();
    const server = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config: HEARTBEAT });
    const { proxy, url } = await proxyBefore(server.url);
    const seen: StreamEvent[] = [];
    for await (const event of createClient({ baseUrl: url, ...SILENCE }).run("t1", { input: "go" })) {
      seen.push(event);
      if (event.event !== "on_tool_start") continue;
      await entered;
      proxy.silence();
      open();
    }
    expect(proxy.connections).toBeGreaterThan(1);
    expect(checkGrammar(seen)).toEqual([]);
    expect(seen).toEqual(await eventsAt(server.url));
  });

  test("before the first response starts no second run", async () => {
    const server = await startServer({ config: HEARTBEAT });
    const { proxy, url } = await proxyBefore(server.url);
    proxy.silenceNext();
    const seen = await all(createClient({ baseUrl: url, ...SILENCE }).run("t1", { input: "go" }));
    expect(proxy.connections).toBeGreaterThan(1);
    expect(seen).toEqual(await eventsAt(server.url));
  });

  test("ends a request other than a run with an error", async () => {
    const server = await startServer();
    const { proxy, url } = await proxyBefore(server.url);
    proxy.silenceNext();
    const client = createClient({ baseUrl: url, silenceMs: 50 });
    await expect(client.interrupts("t1")).rejects.toThrow("The server sent nothing for 50 ms.");
  });

  test("is not assumed if events are handled slowly", async () => {
    await unlessStalled(async () => {
      const { tool, open } = gate();
      const server = await startServer({
        script: gated,
        tools: [tool],
        agents: WITH_GATE,
        config: HEARTBEAT,
      });
      const { proxy, url } = await proxyBefore(server.url);
      const client = createClient({ baseUrl: url, ...SILENCE, silenceMs: 3_000 });
      for await (const event of client.run("t1", { input: "go" })) {
        if (event.event !== "on_tool_start") continue;
        // Heartbeats of twice the time.
        const { answers } = proxy;
        await expect.poll(() => proxy.answers).toBeGreaterThan(answers + 120);
        open();
      }
      expect(proxy.connections).toBe(1);
    });
  });
});

describe("an unavailable server", () => {
  test("is retried until it returns, and the run continues", async () => {
    const dir = await temporaryFolder();
    const words = { script: [{ say: "one two three", delay_ms: 600_000 }] };
    const config = { store: "sqlite", listen: { port: await freePort() } };
    const first = await startServer({ ...words, dir, config });
    let retries = 0;
    const isTriedOften = Promise.withResolvers<void>();
    const client = createClient({
      ...{ baseUrl: first.url, longestPauseMs: 20 },
      onRetry: () => ++retries === 30 && isTriedOften.resolve(),
    });
    const seen: StreamEvent[] = [];
    // A failed test must not leave a client that retries without end.
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    const following = (async () => {
      for await (const event of client.run("t1", { input: "go" }, leaving.signal)) seen.push(event);
    })();
    following.catch(() => {});
    await expect.poll(() => names(seen)).toContain("on_chat_model_start");
    await first.app.close();
    await isTriedOften.promise;
    const second = await startServer({ script: [{ say: "Back again." }], dir, config });
    await following;
    expect(names(seen)).toContain("run_resumed");
    expect(textSeen(seen)).toContain("Back again.");
    expect(checkGrammar(seen)).toEqual([]);
    expect(seen).toEqual(await eventsAt(second.url));
  });

  test("is no longer retried once the caller's signal aborts, with its reason", async () => {
    const { url, app } = await startServer();
    await app.close();
    const stop = new AbortController();
    const onRetry = (_reason: Error, attempt: number) => attempt === 3 && stop.abort(new Error("enough"));
    const states: string[] = [];
    const onConnection = (state: string) => void states.push(state);
    const client = createClient({ baseUrl: url, longestPauseMs: 2_000_000, onRetry, onConnection });
    await expect(client.run("t1", { input: "go" }, stop.signal).next()).rejects.toThrow("enough");
    expect(states).toEqual(["reconnecting"]);
  });
});

describe("a slow request", () => {
  test("is not abandoned while its response arrives piece by piece", async () => {
    const slowly = (response: ServerResponse) => {
      const pieces = [...JSON.stringify({ items: [] })];
      response.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => {
        response.write(pieces.shift());
        if (pieces.length > 0) return;
        clearInterval(timer);
        response.end();
      }, 300);
    };
    await unlessStalled(async () => {
      const { url } = await answering(slowly);
      expect(await createClient({ baseUrl: url, silenceMs: 2_500 }).agents.list()).toEqual([]);
    });
  });

  test("is not abandoned during a long upload, at the slowest pace that servers accept", async () => {
    const late = (response: ServerResponse) => {
      const send = () => response.writeHead(204).end();
      setTimeout(send, 500);
    };
    const result = "x".repeat(4 * 60_000);
    await unlessStalled(async () => {
      const { url } = await answering(late);
      const { tools } = createClient({ baseUrl: url, silenceMs: 100 });
      expect(await tools.deliver("token", { result })).toBeUndefined();
    });
  });
});

/** A server that gives these answers in turn, and the requests that it got. */
async function answering(...answers: ((response: ServerResponse) => void)[]) {
  const requests: { method: string; key: unknown; cursor: unknown }[] = [];
  const server = createServer((request, response) => {
    const { method = "", headers } = request;
    requests.push({ method, key: headers["idempotency-key"], cursor: headers["last-event-id"] });
    answers[requests.length - 1]?.(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address() as AddressInfo; // of a port that is listened on
  return { url: `http://127.0.0.1:${address.port}`, requests };
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    response.writeHead(code, headers).end(JSON.stringify({ code: "refused", detail: "Not now." }));
const events = (body: string) => (response: ServerResponse) =>
  response
    .writeHead(200, { "content-type": "text/event-stream", location: "/threads/t1/runs/r/events" })
    .end(body);
const START = 'id: r:1-1\nevent: run_start\ndata: {"event":"run_start"}\n\n';
const DONE = 'id: r:1-2\nevent: done\ndata: {"event":"done"}\n\n';

const followed = (url: string, options: Partial<ClientOptions> = {}) =>
  all(createClient({ baseUrl: url, longestPauseMs: 5, ...options }).run("t1", { input: "go" }));

describe("a response that is not an event stream", () => {
  test.each([429, 502, 503, 504])(
    "%i leads to a retry with the same key and the same cursor",
    async (code) => {
      const { url, requests } = await answering(status(code), events(START), status(code), events(DONE));
      expect(await followed(url)).toEqual([{ event: "run_start" }, { event: "done" }]);
      const key = requests[0]?.key;
      expect(key).toEqual(expect.any(String));
      expect(requests).toEqual([
        { method: "POST", key },
        { method: "POST", key },
        { method: "GET", cursor: "r:1-1" },
        { method: "GET", cursor: "r:1-1" },
      ]);
    },
  );

  test.each([
    ["seconds", () => "1", 1_000],
    ["a date", () => new Date(Date.now() + 30_000).toUTCString(), 1_000],
  ])("leads to a wait for the time in `Retry-After`, in %s", async (_name, value, least) => {
    const { url } = await answering(status(503, { "retry-after": value() }), events(START + DONE));
    const leave = new AbortController();
    const onRetry = (_reason: unknown, _attempt: number, delayMs: number) => leave.abort(delayMs);
    const { signal } = leave;
    const run = createClient({ baseUrl: url, onRetry }).run("t1", { input: "go" }, signal);
    await all(run).catch(() => {});
    expect(signal.reason).toBeGreaterThanOrEqual(least);
  });

  test.each([400, 401, 404, 409, 410, 500])("%i is thrown immediately", async (code) => {
    const { url, requests } = await answering(status(code));
    await expect(followed(url)).rejects.toMatchObject({
      name: "ProblemError",
      status: code,
      code: "refused",
    });
    expect(requests).toHaveLength(1);
  });

  test("is thrown if the limit ends in hours, with the time", async () => {
    const { url } = await answering(status(429, { "retry-after": "7200" }));
    await expect(followed(url)).rejects.toMatchObject({ status: 429, retryAfterMs: 7_200_000 });
  });

  test("is thrown if it is a page", async () => {
    const { url } = await answering((response) =>
      response.writeHead(200, { "content-type": "text/html" }).end(),
    );
    await expect(followed(url)).rejects.toThrow("The response is `text/html`, not an event stream.");
  });

  test("throws the signal's reason if the signal aborts while reading it", async () => {
    const stop = new AbortController();
    const { url } = await answering((response) => response.writeHead(400).write("{"));
    const abortsLater: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      setImmediate(() => stop.abort(new Error("enough")));
      return response;
    };
    const client = createClient({ baseUrl: url, fetch: abortsLater });
    await expect(client.run("t1", { input: "go" }, stop.signal).next()).rejects.toThrow("enough");
  });

  test("is closed without being read if it is a page", async () => {
    const { url } = await answering((response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
    );
    let signal: AbortSignal | null | undefined;
    const watched: typeof fetch = (input, init) => {
      signal = init?.signal;
      return fetch(input, init);
    };
    await expect(followed(url, { fetch: watched })).rejects.toThrow("not an event stream");
    expect(signal?.aborted).toBe(true);
  });
});

test("a run whose start is repeated is reported once", async () => {
  const { url, requests } = await answering(events(""), events(START + DONE));
  const started: string[] = [];
  const onStarted = (run: string) => void started.push(run);
  const client = createClient({ baseUrl: url, longestPauseMs: 5 });
  await all(client.run("t1", { input: "go" }, undefined, { onStarted }));
  expect(requests.map(({ method }) => method)).toEqual(["POST", "POST"]);
  expect(started).toEqual(["r"]);
});

test("pauses grow randomly up to the longest one, and start over after an event", async () => {
  const refusals = Array.from({ length: 12 }, () => status(503));
  const { url } = await answering(...refusals, events(START), events(DONE));
  const retries: { attempt: number; delayMs: number }[] = [];
  const onRetry = (_reason: Error, attempt: number, delayMs: number) => retries.push({ attempt, delayMs });
  await followed(url, { longestPauseMs: 50, onRetry });
  expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1]);
  for (const { delayMs } of retries) expect(delayMs).toBeLessThanOrEqual(50);
  expect(new Set(retries.map(({ delayMs }) => delayMs)).size).toBeGreaterThan(10);
});

test.each([
  [{ baseUrl: "somewhere" }, /`baseUrl` `somewhere`/],
  [{ baseUrl: "http://localhost", headers: { "a b": "c" } }, /header is invalid/],
  [{ baseUrl: "http://localhost", silenceMs: Number.POSITIVE_INFINITY }, /`silenceMs` is Infinity/],
  [{ baseUrl: "http://localhost", longestPauseMs: 0 }, /`longestPauseMs` is 0/],
])("a client refuses invalid options: %j", (options, message) => {
  expect(() => createClient(options)).toThrow(message);
});
