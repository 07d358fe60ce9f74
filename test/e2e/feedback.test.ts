// What a user thinks of an agent's answers: who may say it, of what, and how long it is kept.

import { expect, onTestFinished, test } from "vitest";
import { type AssistantMessage, assistantMessage } from "../../src/agent/core/message.ts";
import { createClient } from "../../src/client/client.ts";
import { rate } from "../../src/engine/runs/feedback.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { startServer } from "../support/server.ts";

async function served() {
  const { url } = await startServer({
    config: { auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] } },
    script: [{ say: "An answer." }, { say: "Another." }],
  });
  const as = (user: string, scopes = "read,run,admin") =>
    createClient({
      baseUrl: url,
      headers: { "x-skein-tenant": "acme", "x-skein-user": user, "x-skein-scopes": scopes },
    });
  const ada = as("ada");
  const { id } = await ada.start("trip", { input: "Where to?" });
  for await (const _ of ada.runs.events("trip", id));
  const { items } = await ada.threads.messages("trip");
  const [question = "", answer = ""] = items.map(({ id }) => id);
  return { url, as, ada, question, answer };
}

test("a user can rate an answer with a comment, change the rating and remove it; other users and readers cannot", async () => {
  const { as, ada, question, answer } = await served();
  const rated = await ada.feedback.put("trip", answer, { rating: "down", comment: "  Too short.  " });
  expect(rated).toEqual({
    ...{ message_id: answer, rating: "down", comment: "Too short." },
    updated_at: expect.any(String),
  });
  expect(await ada.feedback.of("trip")).toEqual([rated]);
  await ada.feedback.put("trip", answer, { rating: "up" });
  expect(await ada.feedback.of("trip")).toMatchObject([{ message_id: answer, rating: "up" }]);
  expect(await as("ada", "read").feedback.of("trip")).toHaveLength(1);

  const up = { rating: "up" } as const;
  const refused = [
    [404, () => as("bob").feedback.put("trip", answer, up)],
    [404, () => as("bob").feedback.of("trip")],
    [404, () => as("bob").feedback.remove("trip", answer)],
    [403, () => as("ada", "read").feedback.put("trip", answer, up)],
    [404, () => ada.feedback.put("trip", "msg_unknown", up)],
    [400, () => ada.feedback.put("trip", question, up)],
    [400, () => ada.feedback.put("trip", answer, { rating: "up", comment: "x".repeat(2_001) })],
  ] as const;
  for (const [status, ask] of refused) await expect(ask()).rejects.toMatchObject({ status });

  await ada.feedback.remove("trip", answer);
  expect(await ada.feedback.of("trip")).toEqual([]);
  await expect(ada.feedback.remove("trip", answer)).rejects.toMatchObject({ status: 404 });
});

test("at most 100 answers of a thread can be rated, and a rating can then still be changed", async () => {
  const stores = createMemoryStores();
  onTestFinished(() => stores.close());
  const owner = { tenant: "acme", user: "ada" };
  const messages = Array.from({ length: 101 }, () => assistantMessage("An answer."));
  await stores.threads.create(owner, { id: "t", metadata: {}, messages });
  const change = ({ id: message }: { id: string }, rating: "up" | "down") =>
    rate(stores, owner, { thread: "t", message }, { rating });
  const [last, first, ...others] = messages as [AssistantMessage, AssistantMessage];
  for (const each of [first, ...others]) await change(each, "down");
  await expect(change(last, "up")).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(await change(first, "up")).toMatchObject({ rating: "up" });
});

test("ratings are part of a user's export, and are deleted with the messages and the thread", async () => {
  const { url, ada, answer } = await served();
  await ada.feedback.put("trip", answer, { rating: "down", comment: "Too short." });
  const exported = await fetch(`${url}/admin/tenants/acme/users/ada/export`, {
    headers: { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "admin" },
  });
  expect(await exported.text()).toContain("Too short.");
  await ada.threads.clear("trip");
  expect(await ada.feedback.of("trip")).toEqual([]);
  await ada.threads.delete("trip");
  await expect(ada.feedback.of("trip")).rejects.toMatchObject({ status: 404 });
});
