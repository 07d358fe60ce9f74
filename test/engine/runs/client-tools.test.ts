import { expect, test } from "vitest";
import { dataOf } from "../../support/drain.ts";
import { startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

const tool = (name: string, properties: object) => ({
  name,
  description: "d",
  parameters: { type: "object", properties },
});
const places = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { maxLength: index }]));

const start = async (url: string, thread: string, tools: readonly object[]) => {
  const response = await fetch(`${url}/threads/${thread}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "go", background: true, tools }),
  });
  return { status: response.status, problem: (await response.json()) as { detail: string } };
};

test("a run whose tools have too many parts in total is refused with the limit and the count", async () => {
  const { url } = await startServer();
  const tools = ["a", "b", "c", "d"].map((name) => tool(name, places(150)));
  expect((await start(url, "t", tools.slice(0, 3))).status).toBe(202);
  expect(await start(url, "u", tools)).toMatchObject({
    status: 400,
    problem: {
      code: "invalid_request",
      detail:
        "tools: the schemas up to `d` have 604 parts; all schemas of a run may have at most 500 together.",
    },
  });
});

test.each([
  ["too many parts", places(300), /has 301 parts; at most 200 are allowed/],
  [
    "names by an expression that is not RE2",
    { p: { patternProperties: { "^(?!x)": {} } } },
    /expression .* not/,
  ],
  ["a type that JSON Schema does not know", { p: { type: "float" } }, /invalid `type`/],
  ["a limit that is no number", { p: { minLength: "3" } }, /not valid JSON Schema.*minLength/],
])("a tool with %s is left out with a warning", async (_, properties, words) => {
  const { url } = await startServer();
  const body = { input: "go", tools: [tool("a", properties)] };
  const events = await (await post(`${url}/threads/t/runs`, body)).ended();
  expect(dataOf(events, "warning")).toEqual([
    { code: "tool_left_out", message: expect.stringMatching(words) },
  ]);
  expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
});

test("two tools with the same name are refused before the run begins", async () => {
  const { url } = await startServer({ script: [{ say: "ok" }] });
  expect(await start(url, "t", [tool("a", {}), tool("a", {})])).toMatchObject({
    status: 400,
    problem: { detail: expect.stringContaining("two tools have the name `a`") },
  });
});

test("an expression that is not RE2 is left to the front end, and the rest is checked", async () => {
  const email = { type: "string", pattern: "^(?!\\.)[a-z.]+@[a-z.]+$" };
  const call = (p: unknown) => ({ call: [{ tool: "a", args: { p } }] });
  const { url } = await startServer({ script: [call(["x"]), call("x@example.com")] });
  const body = { input: "go", tools: [tool("a", { p: email })] };
  const events = await (await post(`${url}/threads/t/runs`, body)).ended();
  expect(dataOf(events, "warning")).toEqual([]);
  expect(dataOf(events, "on_tool_end")).toMatchObject([
    { error: expect.stringContaining("Invalid arguments") },
    { interrupted: true },
  ]);
});

test("a run that is refused for another reason is refused before its tools' schemas are checked", async () => {
  const { url } = await startServer({ script: [{ say: "one two", delay_ms: 600_000 }] });
  const faulty = ["a", "b", "c", "d"].map((name) => tool(name, places(150)));
  expect((await start(url, "t", [])).status).toBe(400);
  expect((await start(url, "t", [tool("a", {})])).status).toBe(202);
  expect(await start(url, "t", faulty)).toMatchObject({ status: 409, problem: { code: "thread_busy" } });
  expect((await start(url, "u", faulty)).status).toBe(400);
});

test("a tool that models cannot be sent is left out with a warning, and the run has the others", async () => {
  const { url } = await startServer({ script: [{ call: [{ tool: "b" }] }] });
  const tools = [tool("a", { "filter[id]": { type: "string" } }), tool("b", {})];
  const events = await (await post(`${url}/threads/t/runs`, { input: "go", tools })).ended();
  expect(dataOf(events, "warning")).toEqual([
    { code: "tool_left_out", message: expect.stringMatching(/no tool `a`: its parameters .*"filter\[id\]"/) },
  ]);
  expect(dataOf(events, "done")).toMatchObject([{ status: "interrupted" }]);
});

test("a tool with alternative parameters is offered, and its calls are checked against them", async () => {
  const branch = (kind: string) => ({
    type: "object",
    properties: { kind: { const: kind } },
    required: ["kind"],
  });
  const either = { name: "either", description: "d", parameters: { anyOf: [branch("a"), branch("b")] } };
  const call = (kind: string) => ({ call: [{ tool: "either", args: { kind } }] });
  const { url } = await startServer({ script: [call("c"), call("b")] });
  const events = await (await post(`${url}/threads/t/runs`, { input: "go", tools: [either] })).ended();
  expect(dataOf(events, "on_tool_end").map(({ error = "" }) => error)).toEqual([
    expect.stringMatching(/^Invalid arguments/),
    "",
  ]);
  expect(dataOf(events, "done")).toMatchObject([{ status: "interrupted" }]);
});
