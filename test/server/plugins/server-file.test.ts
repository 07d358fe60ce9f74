import { expect, test } from "vitest";
import { dataOf } from "../../support/drain.ts";
import { post } from "../../support/sse.ts";
import { plugin, project } from "./project.ts";

/** Users by their badge; `slow` never ends by itself, `odd` returns what is no identity. */
const BADGES = `
import { AppError } from "skein";
async function authenticate(request, signal) {
  const badge = request.header("X-Badge");
  if (badge === "odd") return { tenant: "a b", user: "ada", scopes: ["fly"] };
  if (badge === "throws") throw new Error("the register of badges is closed");
  if (badge === "banned") throw new AppError("forbidden", "This badge is banned.");
  if (badge === "short") return { tenant: "acme", user: "eve", scopes: ["read"], expires: new Date(Date.now() + 3000) };
  return badge ? { tenant: "acme", user: badge, scopes: badge === "bob" ? ["read"] : ["run", "read"] } : undefined;
}
`;

/** A workspace of one text file in memory. */
const MEMO = `
const memo = defineBackend({
  options: z.object({ greeting: z.string() }),
  create({ greeting, workdir }, { owner }) {
    if (greeting === "none") throw new Error("no memo for you");
    const files = new Map([["hello.txt", \`\${greeting}, \${owner.user}\`]]);
    const at = (path) => files.get(path.split("/").at(-1));
    const refuse = async () => { throw new Error("not here"); };
    const stat = (path) => ({ path, type: "file", size: at(path)?.length ?? 0, modified_at: new Date(0).toISOString() });
    return {
      type: "memo", workdir,
      async *exec(command) { yield { text: command }; return { output: \`memo: \${command}\`, omitted: 0, exitCode: 0 }; },
      async stat(path) { return stat(path); },
      async *read(path) { yield new TextEncoder().encode(at(path)); },
      write: refuse, edit: refuse, glob: refuse, grep: refuse, remove: refuse,
      async list() { return [...files.keys()].map(stat); },
      async close() { console.error("memo closed"); },
    };
  },
});
`;

const ROUTES = `
async function routes(app, { callerOf }) {
  app.addHook("onRequest", async (_, reply) => void reply.header("x-leaked", "yes"));
  app.get("/me", async (request) => callerOf(request));
  app.post("/notes/:id", { schema: { body: z.strictObject({ text: z.string() }) } }, async (request) => ({ id: request.params.id, ...request.body, ...callerOf(request) }));
  app.get("/open", { config: { access: "public" } }, async () => ({ ok: true }));
  app.get("/broken", { config: { access: "any" } }, async () => { throw new Error("secret of the operator"); });
  app.get("/late", async () => { void Promise.reject(new Error("no one awaits")); return {}; });
}
// As the package fastify-plugin does it: what it adds would reach the scope that it is registered in.
routes[Symbol.for("skip-override")] = true;
`;

const FILES = {
  "company.ts": plugin(
    "company",
    'auth: { name: "badge", authenticate }, backends: { memo }, routes',
    BADGES + MEMO + ROUTES,
  ),
  "server.yaml": "plugins: [./company.ts]\nauth: { scheme: badge }\nbackends: {}\n",
  "script.yaml": "- { call: [{ tool: execute, args: { command: hi } }] }\n- { say: done }\n",
  "agents.yaml": `
agents:
  memo: { model: "scripted:script.yaml", backend: { type: memo, greeting: Hello } }
  refused: { model: "scripted:script.yaml", backend: { type: memo, greeting: none } }
`,
};

test("a plugin's scheme, routes and backend serve several users, each their own", async () => {
  const { serve, dir, write } = await project(FILES);
  await write("agents.yaml", FILES["agents.yaml"].replaceAll("script.yaml", `${dir}/script.yaml`));
  const { url, output, child, exited } = await serve();
  const at = async (path: string, badge?: string, init: RequestInit = {}) => {
    const headers = { ...(badge ? { "x-badge": badge } : {}), "content-type": "application/json" };
    const response = await fetch(url + path, { ...init, headers });
    return { status: response.status, leaked: response.headers.get("x-leaked"), body: await response.json() };
  };

  // Who is asking.
  expect(await at("/me")).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  expect(await at("/me", "ada")).toMatchObject({
    status: 200,
    body: { tenant: "acme", user: "ada", scopes: ["run", "read"], auth: "plugin" },
  });
  expect(await at("/me", "banned")).toMatchObject({ status: 403, body: { detail: "This badge is banned." } });
  expect(await at("/me", "throws")).toMatchObject({ status: 500, body: { code: "internal" } });
  expect(await at("/me", "odd")).toMatchObject({ status: 500, body: { code: "internal" } });
  await expect.poll(output).toMatch(/scheme `badge` returned an invalid identity: tenant: /);
  expect((await at("/sign-in")).body).toEqual({ auth: "plugin" });
  const stream = await fetch(`${url}/events`, { headers: { "x-badge": "short" } });
  expect(await stream.text()).toContain("credentials_expired");

  // Routes: authenticated unless they say otherwise, and in a scope of their own.
  expect(await at("/plugins/company/me")).toMatchObject({ status: 401 });
  expect(await at("/plugins/company/me", "ada")).toEqual({
    status: 200,
    leaked: "yes",
    body: { tenant: "acme", user: "ada", scopes: ["run", "read"] },
  });
  expect(await at("/agents", "ada")).toMatchObject({ status: 200, leaked: null });
  expect(await at("/plugins/company/open")).toMatchObject({ status: 200, body: { ok: true } });
  const note = { method: "POST", body: JSON.stringify({ text: "x" }) };
  expect(await at("/plugins/company/notes/7", "ada", note)).toMatchObject({
    body: { id: "7", text: "x", user: "ada" },
  });
  expect(await at("/plugins/company/notes/7", "bob", note)).toMatchObject({ status: 403 });
  const wrong = { method: "POST", body: JSON.stringify({ txt: "x" }) };
  expect((await at("/plugins/company/notes/7", "ada", wrong)).body).toMatchObject({
    code: "invalid_request",
    detail: expect.stringMatching(/^Invalid body: text: is missing/),
  });
  const broken = await at("/plugins/company/broken", "ada");
  expect(broken).toMatchObject({ status: 500, body: { code: "internal" } });
  expect(JSON.stringify(broken)).not.toContain("secret");
  expect(await at("/plugins/company/nothing", "ada")).toMatchObject({ status: 404 });
  expect(await at("/plugins/company/late", "ada")).toMatchObject({ status: 200 });
  await expect.poll(output).toMatch(/no one awaits.*nothing handled it/);

  // The backend: one for each user.
  const run = await post(`${url}/threads/t/runs`, { input: "go", agent: "memo" }, { "x-badge": "ada" });
  expect(dataOf(await run.ended(), "on_tool_end")).toMatchObject([
    { output: expect.stringContaining("memo: hi") },
  ]);
  const file = (user: string) =>
    fetch(`${url}/backend/files/hello.txt?agent=memo`, { headers: { "x-badge": user } });
  expect(await (await file("ada")).text()).toBe("Hello, ada");
  expect(await (await file("bob")).text()).toBe("Hello, bob");
  expect((await at("/backend?agent=memo", "ada")).body).toMatchObject({ type: "memo", status: "running" });
  const refused = await post(
    `${url}/threads/u/runs`,
    { input: "go", agent: "refused" },
    { "x-badge": "ada" },
  );
  expect(dataOf(await refused.ended(), "error")).toMatchObject([{ code: "backend_failed" }]);

  // What a change needs, and the end.
  await write("company.ts", `${FILES["company.ts"]}\n`);
  await expect.poll(output).toMatch(/company\.ts.*has changed: restart the server to load it/);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  expect(output()).toContain("memo closed");
});

test("a server whose plugin cannot register its routes does not start, and names the plugin", async () => {
  const routes = `async (app) => void app.get("/x", { config: { access: "all" } }, async () => "")`;
  const { serve } = await project({
    "bad.ts": plugin("bad", `routes: ${routes}`),
    "server.yaml": "plugins: [./bad.ts]\n",
    "agents.yaml": "agents: { a: { } }\n",
  });
  await expect(serve()).rejects.toThrow(
    /plugin `bad`: routes: The route `GET \/plugins\/bad\/x` has a `config\.access` that is none of read, run/,
  );
});

/** Keeps what it is given, and shows it. Its recorder fails in the middle of a span; its board knows one task. */
const BOOKS = `
const spans = [], board = [];
const recorder = {
  startSpan(name, { run_id }) {
    spans.push([name, typeof run_id]);
    return { set() { throw new Error("the collector is full"); }, recordEvent() { return this; }, end() {} };
  },
  recordEvent() {},
};
const tasks = {
  async claim({ owner, root, id }, agent) {
    if (id !== "t1") throw new Error("no task " + id);
    board.push(["claim", owner.user, root, id, agent]);
  },
  async settle({ id }, agent, status) { board.push(["settle", id, agent, status]); },
};
async function routes(app) { app.get("/books", async () => ({ spans, board })); }
`;

test("a plugin's recorder receives the spans, and its board the delegated tasks", async () => {
  const { serve, dir, write } = await project({
    "books.ts": plugin("books", "recorder, tasks, routes", BOOKS),
    "server.yaml": "plugins: [./books.ts]\n",
    "boss.yaml": `
- call: [{ tool: delegate, args: { tasks: [{ agent: worker, task: Dig., context: Now., task_id: t1 }, { agent: worker, task: Dig., context: Now., task_id: t2 }] } }]
- say: done
`,
    "worker.yaml": "- { call: [{ tool: task_complete, args: { status: completed, summary: Dug. } }] }\n",
    "agents.yaml": "agents: {}\n",
  });
  await write(
    "agents.yaml",
    `agents: { boss: { model: "scripted:${dir}/boss.yaml", subagents: [worker] }, worker: { model: "scripted:${dir}/worker.yaml" } }\n`,
  );
  const { url, output } = await serve();
  const events = await (await post(`${url}/threads/t/runs`, { input: "go", agent: "boss" })).ended();
  expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  const { items } = (await (await fetch(`${url}/threads/t/messages`)).json()) as {
    items: { content: string }[];
  };
  expect(items[2]?.content).toMatch(/Dug\.[\s\S]*no task t2/);
  const books = (await (await fetch(`${url}/plugins/books/books`)).json()) as Record<string, string[][]>;
  expect(books.spans).toEqual(
    expect.arrayContaining([
      ["llm.call", "string"],
      ["tool.call", "string"],
    ]),
  );
  expect(books.board).toEqual([
    ["claim", "default", "t", "t1", expect.stringMatching(/^worker-dig-/)],
    ["settle", "t1", expect.stringMatching(/^worker-dig-/), "completed"],
  ]);
  await expect.poll(output).toMatch(/the collector is full.*a trace recorder failed/);
});
