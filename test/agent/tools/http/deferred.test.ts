import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { tokenHash } from "../../../../src/agent/core/deferred-calls.ts";
import { replyResult } from "../../../../src/agent/core/delivered-result.ts";
import { AppError } from "../../../../src/agent/core/errors.ts";
import { type Deferral, maskedCalls } from "../../../../src/agent/tools/http/deferral.ts";
import { createHttpTools } from "../../../../src/agent/tools/http/index.ts";
import { play } from "../../../support/agent.ts";
import { type Heard, httpServer, json } from "../../../support/hostile.ts";
import { answerOf, call, fetch, registered } from "./caller.ts";
import { deferredStore } from "./deferred-store.ts";

const LATER = (_: Heard, response: ServerResponse) => response.writeHead(202).end();

function deferring() {
  const store = deferredStore();
  const deferral: Deferral = { store, urlOf: (token) => `https://skein.example/tool-results/${token}` };
  const deliver = (heard: Heard | undefined, reply: Record<string, unknown>) =>
    store.deliver(tokenHash(tokenIn(heard)), reply);
  return { store, deferral, deliver };
}

const tokenIn = (heard: Heard | undefined): string =>
  JSON.parse(heard?.body ?? "{}").result_url.replace("https://skein.example/tool-results/", "");

/** The run that comes after one which waits. */
async function resumed(
  url: string,
  deferral: Deferral,
  { messages }: { messages: Awaited<ReturnType<typeof play>>["messages"] },
  threadId: string,
) {
  const tools = await createHttpTools([await registered(url)], { fetch, deferral });
  return play({ say: null, script: [{ say: "So." }], tools, input: { messages, threadId } });
}

test("a deferred result suspends the run, and the next run continues with it", async () => {
  const { store, deferral, deliver } = deferring();
  const server = await httpServer(LATER);
  const input = { threadId: "th_1" };
  const first = await call(server.url, { services: { deferral }, input });
  expect(first.outcome).toMatchObject({ status: "interrupted", stop_reason: "tool_use" });
  expect(first.answer).toBeUndefined();
  expect(JSON.parse(server.heard[0]?.body ?? "")).toMatchObject({
    result_url: expect.stringMatching(/^https:\/\/skein\.example\/tool-results\/tr_[\w-]{43}$/),
    result_expires_at: expect.any(String),
  });

  const still = await resumed(server.url, deferral, first, "th_1");
  expect(still.outcome).toMatchObject({ status: "interrupted" });
  expect(server.heard).toHaveLength(1);

  const delivered = await deliver(server.heard[0], { result: { degrees: 4 } });
  expect(delivered).toMatchObject({
    ...{ owner: { tenant: "acme", user: "ada" }, thread_id: "th_1", tool: "weather", state: "delivered" },
    run_id: JSON.parse(server.heard[0]?.body ?? "").run_id,
  });
  const last = await resumed(server.url, deferral, first, "th_1");
  expect(last.outcome).toMatchObject({ status: "success" });
  expect(answerOf(last)).toMatchObject({ content: '{"degrees":4}' });
  expect(server.heard).toHaveLength(1);
  expect([...store.calls.values()]).toMatchObject([{ state: "delivered" }]);
});

test("a result that arrives before the answer is the call's result", async () => {
  const { deferral, deliver } = deferring();
  const server = await httpServer(async (heard, response) => {
    await deliver(heard, { error: "No such city." });
    LATER(heard, response);
  });
  const { answer, outcome } = await call(server.url, { services: { deferral } });
  expect(answer).toMatchObject({ error: "No such city." });
  expect(outcome).toMatchObject({ status: "success" });
});

test("a stored result counts as delivered even if the secrets to mask cannot be read", async () => {
  const { store, deferral, deliver } = deferring();
  const server = await httpServer(LATER);
  await call(server.url, { services: { deferral } });
  const get = () => Promise.reject(new Error("The store is away."));
  const calls = maskedCalls({ ...store, due: async () => [] }, { get });
  expect(await calls.deliver(tokenHash(tokenIn(server.heard[0])), { result: 4 })).toBeDefined();
  expect(await deliver(server.heard[0], { result: 5 })).toBeUndefined();
});

test("an address accepts one result", async () => {
  const { deferral, deliver } = deferring();
  const server = await httpServer(LATER);
  await call(server.url, { services: { deferral } });
  const [heard] = server.heard;
  const outcomes = await Promise.all([1, 2, 3].map((result) => deliver(heard, { result })));
  expect(outcomes.filter(Boolean)).toHaveLength(1);
});

test("a reader of the stored call cannot deliver anything", async () => {
  const { store, deferral } = deferring();
  const server = await httpServer(LATER);
  await call(server.url, { services: { deferral } });
  expect(JSON.stringify([...store.calls])).not.toContain(tokenIn(server.heard[0]));
});

test("a callback address is closed once the call has any answer", async () => {
  const stop = new AbortController();
  for (const answer of [json({ result: 1 }), json({}, 500), () => setTimeout(() => stop.abort(), 50)]) {
    const { store, deferral, deliver } = deferring();
    const server = await httpServer(answer);
    await call(server.url, { services: { deferral }, input: { signal: stop.signal } });
    await expect.poll(() => store.calls.size).toBe(0);
    expect(await deliver(server.heard[0], { result: "late" })).toBeUndefined();
  }
});

test("a call whose answer was lost with the process is sent again with a new address", async () => {
  const { store, deferral, deliver } = deferring();
  const server = await httpServer([LATER, json({ result: "again" })]);
  const first = await call(server.url, { services: { deferral }, input: { threadId: "th_1" } });
  // As it was before the server's answer came.
  for (const [id, each] of store.calls) store.calls.set(id, { ...each, state: "sent" });
  const second = await resumed(server.url, deferral, first, "th_1");
  expect(answerOf(second)).toMatchObject({ content: "again" });
  expect(await deliver(server.heard[0], { result: "late" })).toBeUndefined();
});

test("a deferred call whose result does not arrive in time has failed", async () => {
  const { store, deferral } = deferring();
  const server = await httpServer(LATER);
  const first = await call(server.url, { services: { deferral }, input: { threadId: "th_1" } });
  const past = new Date(Date.now() - 1).toISOString();
  for (const [id, each] of store.calls) store.calls.set(id, { ...each, expires_at: past });
  const second = await resumed(server.url, deferral, first, "th_1");
  expect(answerOf(second)?.error).toContain("did not deliver it within 24 hours");
  expect(server.heard).toHaveLength(1);
});

test("a call of another user or thread with the same id is a different call", async () => {
  const { deferral } = deferring();
  const server = await httpServer([LATER, json({ result: "mine" })]);
  const first = await call(server.url, { services: { deferral }, input: { threadId: "th_1" } });
  const other = await resumed(server.url, deferral, first, "th_2");
  expect(answerOf(other)).toMatchObject({ content: "mine" });
});

test("a call of another tool with the same id is a different call", async () => {
  const { deferral } = deferring();
  const server = await httpServer([LATER, json({ result: "other" })]);
  const input = { threadId: "th_1" };
  await call(server.url, { services: { deferral }, input });
  const tools = await createHttpTools([await registered(server.url, { name: "tides" })], { fetch, deferral });
  const script = [{ call: [{ tool: "tides", args: { city: "Oslo" } }] }, { say: "So." }];
  expect(answerOf(await play({ script, tools, input }))).toMatchObject({ content: "other" });
});

test("a callback address stays open if another process takes the run over", async () => {
  const { store, deferral } = deferring();
  const stop = new AbortController();
  const server = await httpServer(() => stop.abort(new AppError("lease_lost", "Taken over.")));
  const called = call(server.url, { services: { deferral }, input: { signal: stop.signal } });
  await expect(called).rejects.toMatchObject({ code: "lease_lost" });
  expect([...store.calls.values()]).toMatchObject([{ state: "sent" }]);
});

test("if no late results are accepted, the call fails", async () => {
  const server = await httpServer(LATER);
  const { answer } = await call(server.url);
  expect(answer?.error).toContain("which this server cannot receive");
  expect(JSON.parse(server.heard[0]?.body ?? "")).not.toHaveProperty("result_url");
});

test.each([null, [], "text", 5, {}, { results: 1 }, { error: "" }])("%j is not a valid reply", (reply) => {
  expect(replyResult(reply)).toBeUndefined();
});
