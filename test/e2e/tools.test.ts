import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import { describe, expect, onTestFinished, test } from "vitest";
import { callbackServer } from "../../examples/callback-tool/server.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post, view } from "../support/sse.ts";

const json = { accept: "application/json", "content-type": "application/json" };
const send = (url: string, body: unknown) =>
  fetch(url, { method: "POST", headers: json, body: JSON.stringify(body) });
const agentWith = (tools: string) => `agents: { assistant: { model: "scripted:test", tools: [${tools}] } }`;

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close().closeAllConnections());
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return `127.0.0.1:${address.port}`;
}

const freight = (callback_url: string) => ({
  name: "freight_quote",
  description: "What it costs to send something somewhere.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, kilograms: { type: "number" } },
    required: ["city", "kilograms"],
  },
  callback_url,
});
const quote = (kilograms: number) => [
  { call: [{ tool: "freight_quote", args: { city: "Oslo", kilograms } }] },
  { say: "There you are." },
];

describe("a tool that a tenant registers", () => {
  /** A Skein with the example's tool, whose server learns the secret that the registration returns. */
  async function withFreight(kilograms: number, { hasPublicUrl = true } = {}) {
    let secret = "whsec_bm9uZQ==";
    const outside = createServer((...args) => void callbackServer(secret).emit("request", ...args));
    const allow = await listening(outside);
    const port = await freePort();
    const public_url = hasPublicUrl ? `http://127.0.0.1:${port}` : undefined;
    const config = { listen: { port }, public_url, http_tools: { allow } };
    const { url } = await startServer({ script: quote(kilograms), agents: agentWith('"freight_*"'), config });
    const registered = await send(`${url}/tools`, freight(`http://${allow}/`));
    expect(registered.status).toBe(201);
    ({ secret } = (await registered.json()) as { secret: string });
    return { url };
  }

  test("is called with signed arguments; its progress is shown, and the model receives its result", async () => {
    const { url } = await withFreight(10);
    const events = await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
    expect(dataOf(events, "on_tool_progress")[0]?.output).toContain("Asking carriers");
    expect(dataOf(events, "on_tool_end")[0]?.output).toBe('{"city":"Oslo","price":17,"currency":"EUR"}');
  });

  test("can be tested without a run, with valid and invalid arguments", async () => {
    const { url } = await withFreight(10);
    const tried = await send(`${url}/tools/freight_quote/try`, { args: { city: "Oslo", kilograms: 10 } });
    expect(tried.status).toBe(200);
    expect(await tried.json()).toEqual({
      output: '{"city":"Oslo","price":17,"currency":"EUR"}',
      duration_ms: expect.any(Number),
    });
    const refused = await send(`${url}/tools/freight_quote/try`, { args: { city: 5 } });
    expect(await refused.json()).toMatchObject({ status: 400, detail: expect.stringContaining("city") });
    expect((await send(`${url}/tools/nothing/try`, {})).status).toBe(404);
    expect(await (await fetch(`${url}/threads`)).json()).toMatchObject({ items: [] });
  });

  test("without a reachable endpoint is tested with a readable error", async () => {
    const port = await freePort();
    const { url } = await startServer({ config: { http_tools: { allow: `127.0.0.1:${port}` } } });
    await send(`${url}/tools`, freight(`http://127.0.0.1:${port}/`));
    const tried = await send(`${url}/tools/freight_quote/try`, { args: { city: "Oslo", kilograms: 1 } });
    expect(await tried.json()).toMatchObject({ output: "", error: expect.stringMatching(/./) });
  });

  test.each([true, false])(
    "can answer later: the run waits, and continues automatically when the result is delivered (PUBLIC_URL: %s)",
    async (hasPublicUrl) => {
      const { url } = await withFreight(2000, { hasPublicUrl });
      await send(`${url}/threads`, { id: "t1" });
      const viewer = await view(`${url}/threads/t1/events`);
      await post(`${url}/threads/t1/runs`, { input: "go" });
      await viewer.until((event) => event.event === "done" && event.data.status === "interrupted");
      await viewer.until((event) => event.event === "done" && event.data.status === "success");
      const events = viewer.seen.map(({ event }) => event);
      expect(dataOf(events, "on_tool_end").at(-1)?.output).toContain('"currency":"EUR"');
      expect(textSeen(events)).toBe("There you are.");
      viewer.leave();
    },
  );

  test("is listed in pages", async () => {
    const { url } = await startServer();
    for (const name of ["c", "a", "b"])
      await send(`${url}/tools`, { ...freight("https://tools.example.com/"), name });
    const page = async (query: string) => (await fetch(`${url}/tools?${query}`)).json();
    expect(await page("limit=2")).toMatchObject({ items: [{ name: "a" }, { name: "b" }], next_cursor: "b" });
    const last = (await page("limit=2&cursor=b")) as object;
    expect(last).toMatchObject({ items: [{ name: "c" }] });
    expect(last).not.toHaveProperty("next_cursor");
  });

  test("is listed without its secrets, replaced, and removed", async () => {
    const { url } = await startServer();
    const tool = {
      ...freight("https://tools.example.com/freight?key=hunter2"),
      headers: { "x-key": "hunter2" },
    };
    await send(`${url}/tools`, tool);
    await send(`${url}/tools`, { ...tool, description: "Another one." });
    const listed = await (await fetch(`${url}/tools`)).text();
    expect(listed).not.toMatch(/hunter2|whsec/);
    expect(JSON.parse(listed).items).toMatchObject([{ name: "freight_quote", description: "Another one." }]);
    const remove = () => fetch(`${url}/tools/freight_quote`, { method: "DELETE" });
    expect([(await remove()).status, (await remove()).status]).toEqual([204, 404]);
  });

  test("cannot have the name of one of the server's tools or an internal address", async () => {
    const { url } = await startServer({ script: quote(1), agents: agentWith('"*"') });
    const taken = await send(`${url}/tools`, { ...freight("https://example.com/"), name: "read_file" });
    expect(await taken.json()).toMatchObject({ code: "already_exists" });
    for (const host of ["127.0.0.1:9100", "[::1]:9100", "localhost", "10.0.0.5"]) {
      const refused = await send(`${url}/tools`, freight(`http://${host}/?key=hunter2`));
      expect(refused.status).toBe(400);
      const { code, detail } = (await refused.json()) as { code: string; detail: string };
      expect([code, detail]).toEqual([
        "invalid_request",
        expect.stringContaining(`\`${host}\` has no public`),
      ]);
      expect(detail).toMatch(/HTTP_TOOLS_ALLOW.*http_tools\.allow/);
      expect(detail).not.toContain("hunter2");
    }
    expect(await (await fetch(`${url}/tools`)).json()).toEqual({ items: [] });
  });

  test("is checked again at each call, because the operator's settings may have changed", async () => {
    const dir = await temporaryFolder();
    const options = { dir, script: quote(1), agents: agentWith('"*"') };
    const allowing = await startServer({
      ...options,
      config: { store: "sqlite", http_tools: { allow: "127.0.0.1:1" } },
    });
    expect((await send(`${allowing.url}/tools`, freight("http://127.0.0.1:1/"))).status).toBe(201);
    await allowing.app.close();
    const { url } = await startServer({ ...options, config: { store: "sqlite" } });
    const events = await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
    expect(dataOf(events, "on_tool_end")[0]?.error).toContain("no public address");
    expect(dataOf(events, "done")[0]?.status).toBe("success");
  });

  test("accepts a result only at its own address, and only once", async () => {
    const { url } = await startServer();
    const unknown = await send(`${url}/tool-results/tr_0`, { result: 1 });
    expect([unknown.status, (await send(`${url}/tool-results/tr_0`, {})).status]).toEqual([404, 404]);
  });
});

describe("an MCP server in agents.yaml", () => {
  const everything = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/package.json",
  );
  const program = everything.replace(/package\.json$/, "dist/index.js");

  test("offers its tools by name and glob", async () => {
    const agents = `
agents: { assistant: { model: "scripted:test", tools: ["mcp__every__*"] } }
mcp_servers: { every: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(program)}, stdio] } }`;
    const script = [{ call: [{ tool: "mcp__every__echo", args: { message: "hello" } }] }, { say: "Done." }];
    const { url } = await startServer({ agents, script });
    const toolsOf = async () =>
      ((await (await fetch(`${url}/agents/assistant`)).json()) as { tools: string[] }).tools;
    await expect.poll(toolsOf).toContain("mcp__every__echo");
    const events = await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
    expect(dataOf(events, "on_tool_end")[0]?.output).toMatch(/hello/);
  });
});
