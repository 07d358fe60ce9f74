import supertest from "supertest";
import { describe, expect, test } from "vitest";
import { type ServerOptions, startServer } from "../../support/server.ts";

async function client(options: ServerOptions = {}) {
  const { app } = await startServer(options);
  return supertest(app.server.server);
}

const run = (api: Awaited<ReturnType<typeof client>>, thread: string, input = "hi") =>
  api.post(`/threads/${thread}/runs`).set("accept", "application/json").send({ input }).expect(200);

describe("threads", () => {
  const config = { store: "sqlite" };

  test("are created once, with a given or a generated id", async () => {
    const api = await client({ config });
    const own = await api
      .post("/threads")
      .send({ id: "mine", title: "Mine", metadata: { plan: 1 } })
      .expect(201);
    expect(own.headers.location).toBe("/threads/mine");
    expect(own.body).toMatchObject({ id: "mine", title: "Mine", metadata: { plan: 1 }, status: "idle" });
    const ours = await api.post("/threads").expect(201);
    expect(ours.body.id).toMatch(/^th_[0-9A-Za-z]{22}$/);
    const again = await api.post("/threads").send({ id: "mine" }).expect(409);
    expect(again.body.code).toBe("already_exists");
  });

  test("are listed by last change, page by page, and found by title, agent and status", async () => {
    const api = await client({ config });
    for (const id of ["a", "b", "c"])
      await api
        .post("/threads")
        .send({ id, title: `Title ${id}` })
        .expect(201);
    await run(api, "a");
    const first = await api.get("/threads?limit=2").expect(200);
    expect(first.body.items[0].id).toBe("a");
    const rest = await api
      .get(`/threads?limit=2&cursor=${encodeURIComponent(first.body.next_cursor)}`)
      .expect(200);
    const ids = [...first.body.items, ...rest.body.items].map((thread: { id: string }) => thread.id);
    expect(ids.toSorted()).toEqual(["a", "b", "c"]);
    expect(rest.body.next_cursor).toBeUndefined();
    const found = await api.get("/threads?q=title%20B").expect(200);
    expect(found.body.items.map((thread: { id: string }) => thread.id)).toEqual(["b"]);
    const byAgent = await api.get("/threads?agent=assistant&status=idle").expect(200);
    expect(byAgent.body.items.map((thread: { id: string }) => thread.id)).toEqual(["a"]);
  });

  test("can be renamed and annotated", async () => {
    const api = await client({ config });
    await api.post("/threads").send({ id: "t", title: "Old", metadata: { a: 1 } });
    const changed = await api.patch("/threads/t").send({ title: "New" }).expect(200);
    expect(changed.body).toMatchObject({ title: "New", metadata: { a: 1 } });
    await api.patch("/threads/nope").send({ title: "x" }).expect(404);
    // Without a title it gets none from the messages of its runs.
    const cleared = await api.patch("/threads/t").send({ title: " " }).expect(200);
    expect(cleared.body.title).toBe("");
    await run(api, "t");
    expect((await api.get("/threads/t")).body).toMatchObject({ title: "", metadata: { a: 1 } });
  });

  test("return their messages from any position", async () => {
    const api = await client({ config, script: [{ say: "one" }, { say: "two" }] });
    await run(api, "t", "first");
    await run(api, "t", "second");
    const all = await api.get("/threads/t/messages").expect(200);
    expect(all.body.items.map((message: { content: string }) => message.content)).toEqual([
      "first",
      "one",
      "second",
      "two",
    ]);
    const after = await api.get(`/threads/t/messages?after=${all.body.items[1].id}&limit=1`).expect(200);
    expect(after.body.items.map((message: { content: string }) => message.content)).toEqual(["second"]);
  });

  test("return their state: messages, todos, files, status and version", async () => {
    const todos = [{ id: "1", title: "Write it down", status: "done" }];
    const api = await client({
      config,
      script: [
        {
          call: [
            { tool: "write_todos", args: { todos } },
            { tool: "write_file", args: { path: "a.txt", content: "A" } },
          ],
        },
        { say: "ok" },
      ],
    });
    await run(api, "t");
    const { body } = await api.get("/threads/t/state").expect(200);
    expect(body).toMatchObject({
      thread_id: "t",
      todos,
      files: { "/workspace/a.txt": { bytes: 1, content: "A" } },
      status: "idle",
      version: 5,
    });
    expect(body.messages).toHaveLength(5);
  });

  test("can be cleared, or deleted with all their contents", async () => {
    const api = await client({ config, script: () => ({ say: "ok" }) });
    await run(api, "t");
    await api.delete("/threads/t/messages").expect(204);
    const { body } = await api.get("/threads/t/state").expect(200);
    expect(body).toEqual({ thread_id: "t", messages: [], status: "idle", version: 0 });
    await run(api, "t");
    const { body: runs } = await api.get("/threads/t/runs").expect(200);
    await api.delete("/threads/t").expect(204);
    await api.get("/threads/t").expect(404);
    await api.get(`/threads/t/runs/${runs.items[0].id}`).expect(404);
    await api.get(`/threads/t/runs/${runs.items[0].id}/events`).expect(404);
    await api.delete("/threads/t").expect(404);
  });

  test("a failed run reports its error, and the thread can be used again", async () => {
    const api = await client({
      config,
      script: [{ fail: { code: "model_rejected", message: "The provider refused." } }, { say: "better" }],
    });
    const failed = await run(api, "t");
    expect(failed.body).toMatchObject({
      status: "error",
      error: { code: "model_rejected", message: "The provider refused." },
    });
    expect((await api.get("/threads/t").expect(200)).body.status).toBe("error");
    expect((await run(api, "t")).body.status).toBe("success");
  });
});

describe("the server", () => {
  test("serves liveness, readiness and its API description", async () => {
    const api = await client();
    expect((await api.get("/health").expect(200)).body).toMatchObject({ status: "ok", agents: 1 });
    await api.get("/ready").expect(200);
    expect((await api.get("/openapi.yaml").expect(200)).text).toMatch(/^openapi: 3\.1\.0/);
    expect((await api.get("/docs").expect(200)).text).toContain("openapi.json");
    await api.get("/docs/swagger-ui-bundle.js").expect(200);
    await api.get("/docs/?a=b").expect("location", "../docs").expect(302);
    await api.get("/docs/..%2fpackage.json").expect(404);
  });

  test("names the allowed methods of a path if another was used", async () => {
    const api = await client();
    const answer = await api.put("/threads/t/runs").expect(405);
    expect(answer.headers.allow).toBe("POST, GET");
    expect(answer.body).toMatchObject({
      code: "method_not_allowed",
      detail: expect.stringContaining("POST, GET, not PUT"),
    });
    await api.delete("/nowhere").expect(404);
  });

  test("lists its agents without their prompts", async () => {
    const api = await client({
      agents:
        "agents: { a: { model: 'scripted:test', system_prompt: The secret is 42., description: Knows. } }",
    });
    const { body, text } = await api.get("/agents").expect(200);
    expect(body.items).toMatchObject([{ name: "a", description: "Knows.", default: true }]);
    expect(text).not.toContain("42");
    await api.get("/agents/a").expect(200);
    await api.get("/agents/b").expect(404);
  });
});
