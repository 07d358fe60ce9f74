// A thread that a user shares: who reads it, and for how long.

import { expect, test } from "vitest";
import { createClient, type ProblemError } from "../../src/client/client.ts";
import { addShare, isShared, sharesOf } from "../../src/engine/runs/shares.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { type ServerOptions, startServer } from "../support/server.ts";

const HEADER = { scheme: "header", trusted_proxies: ["127.0.0.0/8"] };

async function served(options: ServerOptions = {}) {
  const { url } = await startServer({
    ...options,
    config: { ...options.config, auth: HEADER },
    script: [{ say: "An answer." }],
  });
  const as = (tenant: string, user: string, scopes = "read,run") =>
    createClient({
      baseUrl: url,
      headers: () => ({ "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": scopes }),
    });
  const ada = as("acme", "ada");
  for (const thread of ["trip", "other"]) {
    const { id } = await ada.start(thread, { input: `About ${thread}` });
    for await (const _ of ada.runs.events(thread, id));
  }
  return { ada, as };
}

const statusOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 200,
    (error: ProblemError) => error.status,
  );

test("users of the tenant can read a shared thread until its owner ends the share; no one else can, and nothing else", async () => {
  const { ada, as } = await served();
  const share = await ada.shares.create("trip", { expires_in: 3600 });
  expect(Date.parse(share.expires_at) - Date.parse(share.created_at)).toBe(3_600_000);
  expect(await ada.shares.of("trip")).toEqual([share]);
  const place = { user: "ada", thread: "trip", share: share.id };

  const bob = as("acme", "bob", "read");
  expect(await bob.shares.get(place)).toMatchObject({ user: "ada", thread_id: "trip" });
  const { items } = await bob.shares.messages(place);
  expect(items.map(({ content }) => content)).toEqual(["About trip", "An answer."]);
  expect(items).toEqual((await ada.threads.messages("trip")).items);

  const mallory = as("other", "ada");
  const refused = [
    mallory.shares.get(place),
    mallory.shares.messages(place),
    bob.shares.get({ ...place, thread: "other" }),
    bob.shares.messages({ ...place, user: "bob" }),
    bob.shares.messages({ ...place, share: `share_${"0".repeat(22)}` }),
    bob.threads.get("trip"),
    bob.shares.of("trip"),
    as("acme", "bob").shares.end("trip", share.id),
  ];
  expect(await Promise.all(refused.map(statusOf))).toEqual(refused.map(() => 404));

  await ada.shares.end("trip", share.id);
  expect(await Promise.all([bob.shares.get(place), bob.shares.messages(place)].map(statusOf))).toEqual([
    404, 404,
  ]);
  expect(await ada.shares.of("trip")).toEqual([]);
  expect(await statusOf(ada.shares.end("trip", share.id))).toBe(404);
});

test("a share ends at its time, and then no longer counts towards those of its thread", async () => {
  const { items, threads } = createMemoryStores();
  const ada = { tenant: "acme", user: "ada" };
  await threads.create(ada, { id: "trip", metadata: {} });
  for (let n = 0; n < 19; n++) await addShare(items, ada, "trip", 60_000);
  const ended = await addShare(items, ada, "trip", 0);
  expect(await isShared(items, ada, "trip", ended.id)).toBe(false);
  const last = await addShare(items, ada, "trip", 60_000);
  expect(await isShared(items, ada, "trip", last.id)).toBe(true);
  expect(await sharesOf(items, ada, "trip")).toHaveLength(20);
});

test("a share ends with its thread, and a thread has at most twenty", async () => {
  const { ada, as } = await served();
  const bob = as("acme", "bob");
  const { id } = await ada.shares.create("other");
  await ada.threads.delete("other");
  expect(await statusOf(bob.shares.messages({ user: "ada", thread: "other", share: id }))).toBe(404);
  for (let n = 0; n < 20; n++) await ada.shares.create("trip");
  expect(await statusOf(ada.shares.create("trip"))).toBe(429);
  expect(await statusOf(ada.shares.create("trip", { expires_in: 1 }))).toBe(400);
  expect(await statusOf(as("acme", "ada", "read").shares.create("trip"))).toBe(403);
});
