// Runs that name no thread, as a program starts them over HTTP.

import { describe, expect, test } from "vitest";
import type { RunRecord } from "../../src/agent/core/records.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { postJson, threadsOf } from "../support/native.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";

const WHOLE = { accept: "application/json" };

async function started(options: ServerOptions = {}) {
  const { url, app } = await startServer({ script: () => ({ say: "Hello." }), ...options });
  const ids = async () => (await threadsOf(url)).map(({ id }) => id);
  const post = (body: object, headers: Record<string, string> = {}, path = "/runs") =>
    postJson(url + path, { input: "hello", ...body }, headers);
  /** In the background. */
  const begin = async (body: object, headers?: Record<string, string>) => {
    const response = await post({ background: true, ...body }, headers);
    expect(response.status).toBe(202);
    return (await response.json()) as RunRecord;
  };
  const ended = async ({ thread_id, id }: RunRecord) =>
    (await fetch(`${url}/threads/${thread_id}/runs/${id}/events`)).text();
  return { url, app, ids, post, begin, ended };
}

const codeOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

describe("a run without a thread", () => {
  test("gets a new one, which is kept", async () => {
    const { url, ids, post, begin, ended } = await started();
    const stream = await post({});
    const [, thread, run] =
      /^\/threads\/(\w+)\/runs\/(\w+)\/events$/.exec(stream.headers.get("location") ?? "") ?? [];
    expect(await stream.text()).toContain("event: done");
    const whole = (await (await post({}, WHOLE)).json()) as RunRecord & { messages: unknown[] };
    expect(whole).toMatchObject({
      status: "success",
      messages: [{ content: "hello" }, { content: "Hello." }],
    });
    const later = await begin({});
    await ended(later);
    expect((await ids()).sort()).toEqual([thread, whole.thread_id, later.thread_id].sort());
    expect((await fetch(`${url}/threads/${thread}/runs/${run}`)).status).toBe(200);
  });

  test("with `keep_thread: false` leaves no thread behind once its client has read the answer", async () => {
    const { ids, post } = await started();
    expect(await (await post({ keep_thread: false })).text()).toContain("event: done");
    const whole = await post({ keep_thread: false }, WHOLE);
    expect(await whole.json()).toMatchObject({ status: "success" });
    await expect.poll(ids).toEqual([]);
  });

  test("without a reader is kept for `retention.temporary_threads` and no longer", async () => {
    const { url, ids, begin, ended } = await started({
      config: { retention: { temporary_threads: "0.2s" } },
    });
    const { begin: other, ended: itsEnd, ids: others } = await started();
    const [short, long] = [await begin({ keep_thread: false }), await other({ keep_thread: false })];
    await ended(short);
    await itsEnd(long);
    await expect.poll(ids).toEqual([]);
    expect((await fetch(`${url}/threads/${short.thread_id}`)).status).toBe(404);
    expect(await others()).toEqual([long.thread_id]);
  });

  test("keeps its thread until its question is answered, and is deleted after that", async () => {
    const agents = "agents: { assistant: { model: 'scripted:test', tools: [] } }";
    const tools = [{ name: "ask_me", description: "Asks.", parameters: { type: "object" } }];
    const { url, ids, post } = await started({
      agents,
      config: { retention: { temporary_threads: "0.2s" } },
      script: [{ call: [{ tool: "ask_me", id: "call_1" }] }, { say: "Thanks." }],
    });
    const asked = (await (await post({ keep_thread: false, tools }, WHOLE)).json()) as RunRecord;
    expect(asked.status).toBe("interrupted");
    expect(await ids()).toEqual([asked.thread_id]);
    const { items } = (await (await fetch(`${url}/interrupts`)).json()) as { items: { id: string }[] };
    const answers = items.map(({ id }) => ({ id, decision: "respond", message: "yes" }));
    const path = `${url}/threads/${asked.thread_id}/runs/${asked.id}/resume`;
    const resumed = await postJson(path, { answers }, WHOLE);
    expect(await resumed.json()).toMatchObject({ status: "success" });
    await expect.poll(ids).toEqual([]);
  });

  test("is not started again with its key after its thread is deleted", async () => {
    let asked = 0;
    const { ids, post, begin } = await started({
      script: () => ({ say: `Answer ${++asked}.` }),
      config: { retention: { temporary_threads: "0.2s" } },
    });
    const key = { "idempotency-key": "k1" };
    await begin({ keep_thread: false }, key);
    await expect.poll(ids).toEqual([]);
    expect(await codeOf(await post({ keep_thread: false }, key))).toEqual([410, "events_expired"]);
    expect(await ids()).toEqual([]);
    expect(asked).toBe(1);
  });

  test("can be read again with its key even after its client has read it", async () => {
    const { post } = await started();
    const again = { ...WHOLE, "idempotency-key": "k1" };
    const runs = [];
    for (let nth = 0; nth < 2; nth++)
      runs.push(((await (await post({ keep_thread: false }, again)).json()) as RunRecord).id);
    expect(runs[1]).toBe(runs[0]);
  });

  test("is refused for options that need an existing thread, and for a cursor without a key", async () => {
    const { post } = await started();
    for (const body of [
      { on_busy: "enqueue" },
      { replaces: "msg_1" },
      { input: undefined, continue: true },
      { input: undefined },
    ])
      expect(await codeOf(await post(body))).toEqual([400, "invalid_request"]);
    expect(await codeOf(await post({}, { "last-event-id": "run_1:1-1" }))).toEqual([400, "invalid_request"]);
  });

  test("counts towards `limits.temporary_threads` until it is deleted, unless it was refused", async () => {
    const { ids, post, begin } = await started({ config: { limits: { temporary_threads: 1 } } });
    const away = { keep_thread: false };
    expect(await codeOf(await post({ ...away, agent: "unknown" }))).toEqual([400, "invalid_request"]);
    await begin(away);
    expect(await codeOf(await post(away))).toEqual([429, "limit_exceeded"]);
    await begin({});
    expect(await ids()).toHaveLength(2);
  });

  test("does not count as a thread while the key of its deleted thread is remembered", async () => {
    const { ids, begin, post } = await started({
      config: { limits: { temporary_threads: 1 }, retention: { temporary_threads: "0.2s" } },
    });
    const key = { "idempotency-key": "k1" };
    await begin({ keep_thread: false }, key);
    await expect.poll(ids).toEqual([]);
    await expect.poll(async () => (await post({ keep_thread: false })).status).toBe(200);
    expect(await codeOf(await post({ keep_thread: false }, key))).toEqual([410, "events_expired"]);
  });
});

describe("a batch", () => {
  interface Answer {
    readonly run?: RunRecord;
    readonly error?: { readonly code: string };
  }
  const answersTo = async (response: Response) => ((await response.json()) as { items: Answer[] }).items;

  test("starts each run on its own thread, and returns results in order", async () => {
    const { url, ended } = await started();
    const runs = ["one", "two", "three"].map((input) => ({ input, metadata: { input } }));
    const response = await postJson(`${url}/runs/batch`, { runs }, { "idempotency-key": "k1" });
    const items = await answersTo(response);
    expect(items.map(({ run }) => run?.metadata.input)).toEqual(["one", "two", "three"]);
    expect(new Set(items.map(({ run }) => run?.thread_id)).size).toBe(3);
    for (const { run } of items) if (run) expect(await ended(run)).toContain("event: done");
    const again = await answersTo(await postJson(`${url}/runs/batch`, { runs }, { "idempotency-key": "k1" }));
    expect(again.map(({ run }) => run?.id)).toEqual(items.map(({ run }) => run?.id));
  });

  test("explains each refusal, and starts the other runs", async () => {
    const { url, ids } = await started({ config: { quotas: { user: { threads: 2 } } } });
    const runs = [
      { input: "one" },
      { input: "two", agent: "unknown" },
      { input: "three" },
      { input: "four" },
    ];
    const items = await answersTo(await postJson(`${url}/runs/batch`, { runs }));
    expect(items.map(({ run, error }) => error?.code ?? run?.agent)).toEqual([
      "assistant",
      "invalid_request",
      "assistant",
      "limit_exceeded",
    ]);
    expect(await ids()).toHaveLength(2);
  });

  test("has 1 to 100 runs, and no run streams", async () => {
    const { url } = await started();
    for (const runs of [[], Array(101).fill({ input: "a" }), [{ input: "a", background: false }]])
      expect(await codeOf(await postJson(`${url}/runs/batch`, { runs }))).toEqual([400, "invalid_request"]);
  });
});

test("a thread that a server leaves behind is deleted by the next one", async () => {
  const dir = await temporaryFolder();
  const config = { store: "sqlite", retention: { temporary_threads: "0.1s" } };
  const { tool, entered } = gate();
  const one = await started({ dir, config, script: gated, agents: WITH_GATE, tools: [tool] });
  await one.begin({ keep_thread: false });
  const kept = await one.begin({});
  await entered;
  await one.app.close();
  const other = await started({
    dir,
    config,
    script: () => ({ say: "Over." }),
    agents: WITH_GATE,
    tools: [tool],
  });
  await expect.poll(other.ids).toEqual([kept.thread_id]);
});

test("no data about temporary threads outlives their user", async () => {
  const { url } = await startServer({
    script: () => ({ say: "Hello." }),
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      retention: { temporary_threads: "0.1s" },
    },
  });
  const as = (scopes: string, user = "ada") => ({
    ...{ "x-skein-tenant": "acme", "x-skein-user": user, "x-skein-scopes": scopes },
  });
  const ada = { ...as("read,run"), ...WHOLE, "idempotency-key": "k1" };
  const ask = () => postJson(`${url}/runs`, { input: "hello", keep_thread: false }, ada);
  expect((await ask()).status).toBe(200);
  await expect.poll(() => threadsOf(url, ada)).toEqual([]);
  expect((await ask()).status).toBe(410);
  const deleting = await fetch(`${url}/admin/tenants/acme/users/ada`, {
    method: "DELETE",
    headers: as("admin", "root"),
  });
  expect(await deleting.json()).toMatchObject({ complete: true });
  expect((await ask()).status).toBe(200);
});
