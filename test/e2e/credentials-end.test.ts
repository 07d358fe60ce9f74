import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { json as parsed } from "node:stream/consumers";
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createClient, ProblemError } from "../../src/client/client.ts";
import { issueApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { openApiKeys } from "../../src/skein/app/stores.ts";
import { AUDIENCE, ISSUER, issuer, token } from "../server/auth/issuer.ts";
import { names } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";
import { cast } from "../support/team.ts";

const redis = await startRedis("--databases", "10");
afterAll(() => redis?.close());

const MIB = 1024 * 1024;
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
const json = { accept: "application/json", "content-type": "application/json" };

interface KeyOptions extends Pick<ServerOptions, "script" | "tools" | "agents" | "now"> {
  readonly count?: number;
  readonly auth?: object;
}

/** Servers on one store whose agent waits at a gate, and keys of one user of them. */
async function withKeys(store: object, { count = 1, auth = {}, ...options }: KeyOptions = {}) {
  const dir = await temporaryFolder();
  const { tool, open, entered } = gate();
  const config = { ...store, data_dir: `${dir}/data`, auth: { scheme: "api_key", ...auth } };
  const start = () =>
    startServer({ dir, config, script: gated, tools: [tool], agents: WITH_GATE, ...options });
  const urls = [];
  for (let n = 0; n < count; n++) urls.push((await start()).url);
  const { keys, close } = await openApiKeys(ServerConfig.parse(config));
  onTestFinished(() => close());
  const about = { tenant: "acme", user: "ada", scopes: ["read" as const, "run" as const], name: "" };
  const issue = (expires_at?: string) => issueApiKey(keys, { ...about, ...(expires_at && { expires_at }) });
  return { urls: urls as [string, ...string[]], keys, issue, open, entered };
}

/** The code with which a stream said that its credentials ended. */
async function endOf(viewer: Viewer): Promise<unknown> {
  await viewer.ended();
  const [, name, data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(viewer.others.at(-1) ?? "") ?? [];
  return name === "credentials_ended" && JSON.parse(data).data.code;
}

async function ticketed(url: string, path: string, headers: Record<string, string>) {
  const body = JSON.stringify({ path });
  const made = await fetch(`${url}/tickets`, { method: "POST", body, headers: { ...json, ...headers } });
  return `${url}${path}?ticket=${((await made.json()) as { ticket: string }).ticket}`;
}

async function statusesOf(url: string, key: string) {
  const answer = await fetch(`${url}/threads/t1/runs`, { headers: bearer(key) });
  return ((await answer.json()) as { items: { status: string }[] }).items.map(({ status }) => status);
}

async function revoke(store: object, options: KeyOptions = {}) {
  const { urls, keys, issue, open, entered } = await withKeys(store, options);
  const [revoked, kept] = [await issue(), await issue()];
  const [first, last] = [urls[0], urls.at(-1) ?? urls[0]];
  const headers = bearer(revoked.key);
  const run = await post(`${first}/threads/t1/runs`, { input: "go" }, headers);
  await entered;
  const events = run.headers.get("location") ?? "";
  const path = "/threads/t1/events";
  const ticket = await ticketed(last, path, headers);
  const streams = [
    run,
    await view(last + events, { headers }),
    await view(last + path, { headers }),
    await view(`${first}/events`, { headers }),
    await view(ticket),
  ];
  const others = await view(last + events, { headers: bearer(kept.key) });
  const waiting = fetch(`${first}/threads/t1/runs`, {
    method: "POST",
    headers: { ...json, ...headers },
    body: JSON.stringify({ input: "and", on_busy: "enqueue" }),
  });
  waiting.catch(() => {});
  await expect.poll(() => streams.slice(0, 4).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  await expect.poll(() => statusesOf(first, kept.key)).toContain("pending");
  await keys.revoke(revoked.record.id);
  expect(await Promise.all(streams.map(endOf))).toEqual(streams.map(() => "credentials_revoked"));
  const answer = await waiting;
  expect([answer.status, await answer.json()]).toMatchObject([401, { code: "credentials_revoked" }]);
  expect((await fetch(ticket)).status).toBe(401);
  open();
  // By default the run continues.
  expect((await others.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
}

afterEach(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
/** Credentials expire when the test says so, and not while it is still being set up. */
const clock = () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  return { inAnHour: Date.now() + HOUR_MS, strike: () => vi.setSystemTime(Date.now() + HOUR_MS) };
};

describe("a revoked key ends its streams and long answers, and no others", () => {
  test.each(["sqlite", "memory"])("with STORE=%s", (store) => revoke({ store }));

  needing(redis, "redis-server").test("on every replica", () =>
    revoke({ store: "redis", redis: { url: `${redis?.url}/0` } }, { count: 2 }),
  );
});

test("a revoked key ends a response that its client has not read", async () => {
  const { urls, keys, issue, open } = await withKeys({ store: "memory" });
  open();
  const { key, record } = await issue();
  const part = { type: "image", media_type: "image/png", data: Buffer.alloc(MIB / 2).toString("base64") };
  for (let n = 0; n < 24; n++) {
    const messages = [{ role: "user", content: [part] }];
    const run = await fetch(`${urls[0]}/threads/t1/runs`, {
      ...{ method: "POST", headers: { ...json, ...bearer(key) } },
      body: JSON.stringify({ messages }),
    });
    expect(((await run.json()) as { messages: object[] }).messages).not.toEqual([]);
  }
  const answer = await fetch(`${urls[0]}/threads/t1/state`, { headers: bearer(key) });
  const reader = answer.body?.getReader();
  await reader?.read();
  const stream = await view(`${urls[0]}/events`, { headers: bearer(key) });
  await keys.revoke(record.id);
  expect(await endOf(stream)).toBe("credentials_revoked");
  const readOn = async () => {
    while (!(await reader?.read())?.done);
  };
  await expect(readOn()).rejects.toThrow();
});

test("a revoked key pauses the schedules and crons that were made with it, and no others", async () => {
  let late = 0;
  const { urls, keys, issue, open } = await withKeys({ store: "memory" }, { now: () => Date.now() + late });
  open();
  const [revoked, kept] = [await issue(), await issue()];
  const put = async (method: string, path: string, { key }: { key: string }, more: object) => {
    const body = JSON.stringify({ input: "go", ...more });
    const answer = await fetch(urls[0] + path, { method, body, headers: { ...json, ...bearer(key) } });
    expect(answer.status).toBe(200);
  };
  const line = "* * * * *";
  await put("PUT", "/schedules/revoked", revoked, { cron: line });
  await put("PUT", "/schedules/kept", kept, { cron: line });
  const input = { messages: [{ role: "user", content: "go" }] };
  await put("POST", "/langgraph/runs/crons", revoked, { schedule: line, assistant_id: "assistant", input });
  await keys.revoke(revoked.record.id);
  late = 90_000;
  const paused = async () => {
    const answer = await fetch(`${urls[0]}/schedules`, { headers: bearer(kept.key) });
    const { items } = (await answer.json()) as { items: { id: string; pause?: { reason: string } }[] };
    return items.map(({ id, pause }) => [id.split("_")[0], pause?.reason]);
  };
  const ended = "credentials_ended";
  await expect.poll(paused).toEqual([
    ["cron", ended],
    ["kept", undefined],
    ["revoked", ended],
  ]);
});

test("a revoked key ends the upload of a file, and nothing of it is kept", async () => {
  const agents = "version: 1\nagents:\n  assistant: { model: scripted:test, backend: { type: local } }\n";
  const { urls, keys, issue } = await withKeys({ store: "memory" }, { agents });
  const [revoked, kept] = [await issue(), await issue()];
  const headers = bearer(revoked.key);
  const upload = request(`${urls[0]}/backend/files/big.txt`, {
    method: "PUT",
    headers: { ...headers, expect: "100-continue" },
  });
  const answered = once(upload, "response");
  // The request has arrived.
  await once(upload, "continue");
  upload.write("begun");
  await view(`${urls[0]}/events`, { headers });
  await keys.revoke(revoked.record.id);
  const [answer] = (await answered) as [IncomingMessage];
  expect([answer.statusCode, await parsed(answer)]).toMatchObject([401, { code: "credentials_revoked" }]);
  upload.destroy();
  const listed = await fetch(`${urls[0]}/backend/files`, { headers: bearer(kept.key) });
  expect(await listed.json()).toEqual({ items: [] });
});

test("a key that expires ends its streams", async () => {
  const { inAnHour, strike } = clock();
  const { urls, issue } = await withKeys({ store: "memory" });
  const { key } = await issue(new Date(inAnHour).toISOString());
  const ticket = await ticketed(urls[0], "/events", bearer(key));
  const streams = [await view(`${urls[0]}/events`, { headers: bearer(key) }), await view(ticket)];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  strike();
  expect(await Promise.all(streams.map(endOf))).toEqual(["credentials_expired", "credentials_expired"]);
});

test("with on_revoked: cancel, a key that expires ends neither active nor waiting runs", async () => {
  const { inAnHour, strike } = clock();
  const { urls, issue, open, entered } = await withKeys(
    { store: "memory" },
    {
      auth: { on_revoked: "cancel" },
      script: ({ messages }) =>
        messages.at(-1)?.role === "tool" ? { say: "Through." } : { call: [{ tool: "gate" }] },
    },
  );
  const [expiring, kept] = [await issue(new Date(inAnHour).toISOString()), await issue()];
  const headers = bearer(expiring.key);
  const run = await post(`${urls[0]}/threads/t1/runs`, { input: "go" }, headers);
  await entered;
  await fetch(`${urls[0]}/threads/t1/runs`, {
    ...{ method: "POST", headers: { ...json, ...headers } },
    body: JSON.stringify({ input: "and", on_busy: "enqueue", background: true }),
  });
  strike();
  expect(await endOf(run)).toBe("credentials_expired");
  open();
  await expect.poll(() => statusesOf(urls[0], kept.key)).toEqual(["success", "success"]);
});

describe("a token that expires", () => {
  /** A server that believes an issuer of tokens, and runs that wait at a gate. */
  async function withTokens() {
    const { inAnHour, strike } = clock();
    const { tool, open, entered } = gate();
    const { url: jwks_url } = await issuer();
    const jwt = { jwks_url, issuer: ISSUER, audience: AUDIENCE, clock_tolerance: 1 };
    const config = { auth: { scheme: "jwt", jwt } };
    const { url } = await startServer({ config, script: gated, tools: [tool], agents: WITH_GATE });
    const short = () => token({ exp: Math.floor(inAnHour / 1000) - 1 });
    return { url, short, open, entered, strike };
  }

  test("ends its streams, and the run continues", async () => {
    const { url, short, open, entered, strike } = await withTokens();
    const run = await post(
      `${url}/threads/t1/runs`,
      { input: "go", on_disconnect: "cancel" },
      bearer(await short()),
    );
    await entered;
    strike();
    expect(await endOf(run)).toBe("credentials_expired");
    open();
    const headers = { ...bearer(await token()), "last-event-id": run.seen.at(-1)?.id ?? "" };
    const rest = await view(url + run.headers.get("location"), { headers });
    expect(names(await rest.ended()).at(-1)).toBe("done");
  });

  test("is replaced by the client with a new one, and no event is missed or repeated", async () => {
    const { url, short, open, strike } = await withTokens();
    let asked = 0;
    const headers = async () => {
      if (asked++ === 0) return bearer(await short());
      open();
      return bearer(await token());
    };
    const retried: Error[] = [];
    const client = createClient({ baseUrl: url, headers, onRetry: (reason) => void retried.push(reason) });
    const seen = [];
    for await (const event of client.run("t1", { input: "go" })) {
      seen.push(event);
      if (event.event === "on_tool_start") strike();
    }
    expect(retried).toMatchObject([{ code: "credentials_expired" }]);
    const long = { headers: bearer(await token()) };
    const runs = (await (await fetch(`${url}/threads/t1/runs`, long)).json()) as { items: { id: string }[] };
    expect(runs.items).toHaveLength(1);
    const whole = await view(`${url}/threads/t1/runs/${runs.items[0]?.id}/events`, long);
    expect(seen).toEqual(await whole.ended());
  });

  test("ends a client whose headers do not change", async () => {
    const { url, short, entered, strike } = await withTokens();
    const client = createClient({ baseUrl: url, headers: bearer(await short()) });
    const run = async () => {
      for await (const _ of client.run("t1", { input: "go" }));
    };
    const ended = run().catch((error: unknown) => error);
    await entered;
    strike();
    expect(await ended).toBeInstanceOf(ProblemError);
    expect(await ended).toMatchObject({ status: 401, code: "credentials_expired" });
  });
});

test("with on_revoked: cancel, a revoked key ends its runs and their subagents, and no others", async () => {
  const { tool } = gate();
  const asked: string[] = [];
  const gateOf = (name: string) => () => {
    asked.push(name);
    return { call: [{ tool: "gate" }] };
  };
  const started = { call: [{ tool: "start_task", args: { agent: "coder", task: "Wait", context: "" } }] };
  const { urls, keys, issue } = await withKeys(
    { store: "sqlite" },
    {
      auth: { on_revoked: "cancel" },
      tools: [tool],
      agents: `
agents:
  lead: { model: "scripted:test", system_prompt: I am lead, subagents: [coder] }
  coder: { model: "scripted:test", system_prompt: I am coder, description: Waits, tools: [gate] }
  waiting: { model: "scripted:test", system_prompt: I am waiting, tools: [gate] }
  kept: { model: "scripted:test", system_prompt: I am kept, tools: [gate] }
`,
      script: cast({
        lead: [started, { say: "It is at work." }],
        coder: gateOf("coder"),
        waiting: gateOf("waiting"),
        kept: gateOf("kept"),
      }),
    },
  );
  const [revoked, kept] = [await issue(), await issue()];
  const begin = async (thread: string, { key }: { key: string }, agent: string) => {
    const body = JSON.stringify({ input: "go", agent, background: true, on_busy: "enqueue" });
    const path = `${urls[0]}/threads/${thread}/runs`;
    const answer = await fetch(path, { method: "POST", body, headers: { ...json, ...bearer(key) } });
    expect(answer.status).toBe(202);
  };
  await begin("lead", revoked, "lead");
  await begin("waiting", revoked, "waiting");
  await begin("waiting", revoked, "waiting");
  await begin("kept", kept, "kept");
  await expect.poll(() => asked.toSorted()).toEqual(["coder", "kept", "waiting"]);
  const runsOf = async (thread: string) => {
    const answer = await fetch(`${urls[0]}/threads/${thread}/runs`, { headers: bearer(kept.key) });
    const { items } = (await answer.json()) as { items: { status: string; stop_reason?: string }[] };
    return items.map(({ status, stop_reason }) => `${status} ${stop_reason ?? ""}`.trim());
  };
  await expect.poll(() => runsOf("lead")).toEqual(["success end_turn"]);
  const messages = await fetch(`${urls[0]}/threads/lead/messages`, { headers: bearer(kept.key) });
  const child = /id (th_\w+)/.exec(await messages.text())?.[1] ?? "";
  await keys.revoke(revoked.record.id);
  const CANCELLED = "cancelled credentials_revoked";
  await expect.poll(() => runsOf("waiting")).toEqual([CANCELLED, CANCELLED]);
  await expect.poll(() => runsOf(child)).toEqual([CANCELLED]);
  expect(await runsOf("lead")).toEqual(["success end_turn"]);
  expect(await runsOf("kept")).toEqual(["running"]);
  // The queued run has called no model.
  expect(asked.toSorted()).toEqual(["coder", "kept", "waiting"]);
});
