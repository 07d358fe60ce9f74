import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import {
  createAgent,
  createServer,
  definePlugin,
  defineTool,
  type ServerOptions,
  scriptedModel,
  z,
} from "../../../src/index.ts";
import { dataOf, textSeen } from "../../support/drain.ts";
import { temporaryFolder } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

const logger = pino({ level: "silent" });

async function serverOf(options: ServerOptions) {
  const dir = await temporaryFolder();
  const { config, ...rest } = options;
  const server = createServer({
    logger,
    ...rest,
    config: {
      listen: { port: 0 },
      store: "memory",
      data_dir: dir,
      shutdown: { grace: "0.1s" },
      event_loop: { warn_after: "0s" },
      ...config,
    },
  });
  onTestFinished(() => server.close());
  return { server, dir };
}

const greet = defineTool({
  name: "greet",
  description: "Greets.",
  parameters: z.object({ name: z.string() }),
  annotations: { readOnly: true, requiresPermission: false },
  execute: ({ name }) => `Hello, ${name}!`,
});

/** Calls `greet`, then says what it said. */
const greeter = (name: string) =>
  createAgent({
    name,
    tools: [greet],
    backend: { type: "local" },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? { say: String(messages.at(-1)?.content) }
        : { call: [{ tool: "greet", args: { name } }] },
    ),
  });

test("a custom loop executes the calls that a run starts with, even without a message", async () => {
  const agent = createAgent({
    name: "looping",
    tools: [greet],
    model: scriptedModel(({ messages }) => ({ say: `After ${messages.at(-1)?.content}` })),
    async *loop(agent) {
      while (yield* agent.receive()) {
        yield* agent.callTools(agent.openCalls());
        yield* agent.speak();
      }
    },
  });
  const { server } = await serverOf({ agents: [agent] });
  const url = await server.listen();
  const calls = [{ name: "greet", args: { name: "Ada" } }];
  for (const body of [{ input: "Go.", calls }, { calls }])
    expect(textSeen(await (await post(`${url}/threads/t1/runs`, body)).ended())).toBe("After Hello, Ada!");
});

test("a program's agents are served over the native API, the wires and the page", async () => {
  const boss = greeter("boss").with({ subagents: [greeter("helper")], description: "Leads." });
  const { server } = await serverOf({ agents: [greeter("ada"), boss] });
  expect(server.url).toBeUndefined();
  const url = await server.listen();
  expect([server.url, await server.listen()]).toEqual([url, url]);
  const json = async (path: string) => (await fetch(url + path)).json();

  expect(await json("/agents")).toMatchObject({
    items: [
      { name: "ada", default: true, backend: "local" },
      { name: "boss", description: "Leads." },
      { name: "helper" },
    ],
  });
  expect(await json("/agents/ada")).toMatchObject({ tools: expect.arrayContaining(["greet", "read_file"]) });
  expect((await fetch(`${url}/agents/eve`)).status).toBe(404);
  const run = await post(`${url}/threads/t/runs`, { input: "go" });
  expect(textSeen(await run.ended())).toBe("Hello, ada!");
  const other = await post(`${url}/threads/u/runs`, { input: "go", agent: "helper" });
  expect(textSeen(await other.ended())).toBe("Hello, helper!");
  const unknown = await post(`${url}/threads/v/runs`, { input: "go", agent: "bos" });
  expect(unknown.status).toBe(400);

  expect(await json("/v1/models")).toMatchObject({ data: [{ id: "ada" }, { id: "boss" }, { id: "helper" }] });
  const completion = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "boss", messages: [{ role: "user", content: "go" }] }),
  });
  expect(await completion.json()).toMatchObject({ choices: [{ message: { content: "Hello, boss!" } }] });
  expect(await (await fetch(url)).text()).toContain("<!doctype html>");

  const files = `${url}/backend/files/a.txt?agent=ada`;
  const put = { method: "PUT", body: "hi", headers: { "content-type": "application/octet-stream" } };
  expect((await fetch(files, put)).status).toBe(201);
  expect(await (await fetch(files)).text()).toBe("hi");
  await server.close();
  await expect(fetch(url)).rejects.toThrow();
  await expect(server.listen()).rejects.toThrow();
});

test("separates users with a plugin's scheme, and allows them only the agents' models", async () => {
  const badge = definePlugin({
    name: "badge",
    auth: {
      name: "badge",
      authenticate: (request) => {
        const user = request.header("x-user");
        return user === undefined ? null : { tenant: "acme", user, scopes: ["run", "read"] };
      },
    },
  });
  const { server } = await serverOf({
    agents: [greeter("ada")],
    plugins: [badge],
    config: { auth: { scheme: "badge" }, listen: { port: 0 } },
  });
  const app = await server.fastify();
  const at = async (url: string, user?: string, body?: object) =>
    (
      await app.inject({
        url,
        ...(body ? { method: "POST", payload: body } : {}),
        headers: user === undefined ? {} : { "x-user": user },
      })
    ).statusCode;
  expect(await at("/agents")).toBe(401);
  expect(await at("/threads", "ada", { id: "t" })).toBe(201);
  expect([await at("/threads/t", "ada"), await at("/threads/t", "bob")]).toEqual([200, 404]);
  expect(await at("/threads/t/runs", "ada", { input: "go", model: "openai:gpt-5" })).toBe(400);
});

test("`inject` reaches the wires too", async () => {
  const { server } = await serverOf({ agents: [greeter("ada")] });
  const answer = await (await server.fastify()).inject("/v1/models");
  expect(answer.json()).toMatchObject({ data: [{ id: "ada" }] });
});

test("serves an agents file with its plugins", async () => {
  const dir = await temporaryFolder();
  const agentsFile = join(dir, "agents.yaml");
  await writeFile(agentsFile, `agents: { one: { model: "scripted:demo" } }`);
  const { server } = await serverOf({ agentsFile });
  const url = await server.listen();
  expect(await (await fetch(`${url}/agents`)).json()).toMatchObject({ items: [{ name: "one" }] });
  await writeFile(agentsFile, `agents: { two: { model: "scripted:demo" } }`);
  await expect.poll(async () => (await fetch(`${url}/agents/two`)).status).toBe(200);
});

test("two agents of a program share no thread, and a second server in it no port", async () => {
  const { server } = await serverOf({ agents: [greeter("ada")] });
  const url = await server.listen();
  const { port } = new URL(url);
  const { server: second } = await serverOf({
    agents: [greeter("bob")],
    config: { listen: { port: Number(port) } },
  });
  await expect(second.listen()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(port),
  });
  expect((await fetch(`${url}/health`)).status).toBe(200);
  const run = await post(`${url}/threads/t/runs`, { input: "go" });
  expect(dataOf(await run.ended(), "done")).toMatchObject([{ status: "success" }]);
  await server.close();
  expect(await second.listen()).toBe(url);
});

test.each<[string, () => Promise<unknown>, RegExp]>([
  [
    "agents and a file",
    async () => createServer({ agents: [greeter("a")], agentsFile: "x.yaml" }),
    /both set/,
  ],
  ["no agents", async () => createServer({ agents: [] }), /at least one agent/],
  [
    "two agents of one name",
    async () => createServer({ agents: [greeter("a"), greeter("a")] }),
    /another agent `a`/,
  ],
  [
    "an unknown setting",
    async () => createServer({ config: { listne: {} } as object }),
    /^config: unknown key `listne`; did you mean `listen`\?$/,
  ],
  [
    "tools of a plugin beside agents that cannot have them",
    async () =>
      (
        await serverOf({ agents: [greeter("a")], plugins: [definePlugin({ name: "p", tools: [greet] })] })
      ).server.listen(),
    /plugin `p` has `tools`; pass them to `createAgent` instead/,
  ],
  [
    "an address for all without authentication",
    async () =>
      (
        await serverOf({ agents: [greeter("a")], config: { listen: { host: "0.0.0.0", port: 0 } } })
      ).server.listen(),
    /AUTH=api_key/,
  ],
])("refuses %s", (_, make, why) =>
  expect(make()).rejects.toMatchObject({ code: "config_invalid", message: expect.stringMatching(why) }),
);
