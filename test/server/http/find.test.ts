import { describe, expect, test } from "vitest";
import type { Page } from "../../../src/agent/core/stores.ts";
import { startServer } from "../../support/server.ts";

interface Row {
  readonly id: string;
  readonly thread_id: string;
  readonly created_at: string;
  readonly ended_at?: string;
  readonly updated_at?: string;
  readonly match?: { readonly message_id: string; readonly text: string };
}

async function served(options: Parameters<typeof startServer>[0] = {}) {
  const { url } = await startServer(options);
  const get = async (path: string) => {
    const response = await fetch(url + path);
    return { status: response.status, ...((await response.json()) as Page<Row>) };
  };
  const json = { accept: "application/json", "content-type": "application/json" };
  const send = (path: string, body: object) =>
    fetch(url + path, { method: "POST", headers: json, body: JSON.stringify(body) });
  return { get, send, say: (thread: string, input: string) => send(`/threads/${thread}/runs`, { input }) };
}

/** All pages, one after the other. */
async function all(get: (path: string) => Promise<Page<Row>>, path: string) {
  const items: Row[] = [];
  let cursor: string | undefined;
  do {
    const page = await get(path + (cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`));
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return items;
}

describe("the runs of all threads", () => {
  test("are listed newest first, each once, with pages of any size", async () => {
    const { get, say } = await served({ script: () => ({ say: "Done." }) });
    for (const thread of ["a", "b", "a", "c", "b", "a", "c", "a"]) await say(thread, "go");
    const runs = await all(get, "/runs?limit=100");
    expect(runs.map(({ thread_id }) => thread_id)).toEqual(["a", "c", "a", "b", "c", "a", "b", "a"]);
    for (const limit of [1, 2, 3, 8]) expect(await all(get, `/runs?limit=${limit}`)).toEqual(runs);
  });

  test("that were accepted or have ended since a given time are found, page by page", async () => {
    const { get, say } = await served({ script: () => ({ say: "Done." }) });
    for (const thread of ["a", "b", "a"]) await say(thread, "before");
    const [run] = (await get("/runs?limit=1")).items;
    const [thread] = (await get("/threads?limit=1")).items;
    const ended = run?.ended_at ?? expect.fail();
    const changed = thread?.updated_at ?? expect.fail();
    await expect.poll(() => Date.now()).toBeGreaterThan(Math.max(Date.parse(ended), Date.parse(changed)));
    for (const thread of ["b", "c"]) await say(thread, "after");
    const runs = await all(get, "/runs?limit=100");
    const since = (time: string | number) => all(get, `/runs?limit=1&since=${time}`);
    expect(await since(ended)).toEqual(runs.filter((run) => String(run.ended_at) >= ended));
    expect((await since(Date.parse(ended) + 1)).map(({ thread_id }) => thread_id)).toEqual(["c", "b"]);
    expect(await since(encodeURIComponent("2999-01-01T00:00:00+02:00"))).toEqual([]);
    const threads = await all(get, `/threads?limit=1&since=${Date.parse(changed) + 1}`);
    expect(threads.map(({ id }) => id)).toEqual(["c", "b"]);
    expect((await get("/runs?since=yesterday")).status).toBe(400);
  });

  test("are found by status and agent", async () => {
    const { get, say, send } = await served({
      agents: `agents: { one: { model: "scripted:test" }, two: { model: "scripted:test" } }`,
      script: ({ messages }) =>
        JSON.stringify(messages.at(-1)).includes("fail")
          ? { fail: { code: "model_rejected", message: "No." } }
          : { say: "Done." },
    });
    await say("a", "go");
    await say("a", "fail");
    await send("/threads/b/runs", { input: "go", agent: "two" });
    const threads = async (query: string) => (await all(get, `/runs?${query}`)).map((run) => run.thread_id);
    expect(await threads("status=error")).toEqual(["a"]);
    expect(await threads("status=success")).toEqual(["b", "a"]);
    expect(await threads("agent=two")).toEqual(["b"]);
    expect(await threads("agent=two&status=error")).toEqual([]);
    for (let n = 0; n < 50; n++) await say("a", "go");
    expect(await threads("status=error")).toEqual(["a"]);
  });
});

test("a cursor that no list returned is refused", async () => {
  const { get } = await served();
  expect((await get("/runs?cursor=nonsense")).status).toBe(400);
});

describe("a search in messages", () => {
  test("finds text of users and agents, in any case, with its surroundings", async () => {
    const { get, say, send } = await served({
      config: { store: "sqlite" },
      script: ({ messages }) => ({ say: `You said ${messages.length} things about Älpler.` }),
    });
    await send("/threads", { id: "titled", title: "On needles" });
    await say("hay", `${"hay ".repeat(100)}NEEDLE${" hay".repeat(100)}`);
    await say("other", "nothing");
    const found = await get("/threads?q=needle&in=messages");
    expect(found.items.map(({ id }) => id)).toEqual(["hay", "titled"]);
    expect(found.items[0]?.match?.text).toMatch(/^.{1,100}NEEDLE.{20,}$/);
    expect(found.items[1]).not.toHaveProperty("match");
    expect((await get("/threads?q=needle")).items.map(({ id }) => id)).toEqual(["titled"]);
    expect((await get("/threads?q=ÄLPLER&in=messages")).items).toHaveLength(2);
    expect((await get("/threads?q=created_at&in=messages")).items).toEqual([]);
  });

  test("finds a text at any position in a long message", async () => {
    const { get, say } = await served({ script: () => ({ say: "Done." }) });
    for (const at of [65_530, 65_536, 131_072, 200_000]) {
      await say(`t${at}`, `${"é".repeat(at)}Needle ${at} ${"é".repeat(50_000)}`);
      const found = await get(`/threads?q=needle%20${at}&in=messages`);
      expect(found.items.map(({ id }) => id)).toEqual([`t${at}`]);
      expect(found.items[0]?.match?.text).toContain(`Needle ${at}`);
    }
  });

  test("finds the newest of the messages with the text, after others of any length", async () => {
    const { get, say } = await served({ script: () => ({ say: "Done." }) });
    const long = "hay ".repeat(100_000);
    for (const input of [long, "needle", long, "needle", "hay"]) await say("t1", input);
    const newest = (await get("/threads/t1/messages")).items[6]?.id;
    const [found] = (await get("/threads?q=needle&in=messages")).items;
    expect(found?.match).toEqual({ message_id: newest, text: "needle" });
  });

  test("continues from page to page until every thread was searched", async () => {
    const { get, say } = await served({ script: () => ({ say: "Done." }) });
    for (const n of [1, 2, 3, 4, 5]) await say(`t${n}`, n % 2 ? "needle" : "hay");
    for (const limit of [1, 2, 100]) {
      const found = await all(get, `/threads?q=needle&in=messages&limit=${limit}`);
      expect(found.map(({ id }) => id)).toEqual(["t5", "t3", "t1"]);
    }
  });
});
