import { describe, expect, test } from "vitest";
import { filesystem } from "../../../src/hooks/filesystem/index.ts";
import { play } from "../../support/agent.ts";
import { agentWith, made } from "../made.ts";
import { workspace } from "../workspace.ts";
import { resultOf } from "./calling.ts";

test("an agent with a backend has it, one without does not", () => {
  expect(filesystem.activeByDefault(agentWith({ backend: { type: "local" } }))).toBe(true);
  expect(filesystem.activeByDefault(agentWith())).toBe(false);
});

test("the model is offered seven tools, each of which says what it may do", async () => {
  const backend = await workspace({});
  const hook = made(filesystem, { backend, agent: { backend: { type: "local", timeout: 7 } } });
  let annotations: Record<string, unknown> = {};
  const look = {
    name: "look",
    beforeAgent(run: { tools: ReadonlyMap<string, { annotations: object }> }) {
      annotations = Object.fromEntries([...run.tools].map(([name, tool]) => [name, tool.annotations]));
    },
  };
  let schemas: readonly { name: string; parameters: unknown }[] = [];
  await play({
    hooks: [hook, look],
    script: (request) => {
      schemas = request.tools;
      return { say: "ok" };
    },
  });
  const reads = { readOnly: true, category: "read", requiresPermission: false };
  expect(annotations).toEqual({
    ls: reads,
    read_file: reads,
    glob: reads,
    grep: reads,
    write_file: { idempotent: true, category: "write" },
    edit_file: { category: "write" },
    execute: { category: "execute" },
  });
  expect(schemas.map(({ name }) => name)).toEqual(Object.keys(annotations).sort());
  expect(schemas.find(({ name }) => name === "execute")?.parameters).toMatchObject({
    properties: { timeout: { default: 7, maximum: 600 } },
    required: ["command"],
  });
  expect(JSON.stringify(schemas)).not.toContain("file_path");
});

describe("ls", () => {
  test("lists names, types and sizes", async () => {
    const backend = await workspace({ "src/b.txt": "four", "src/a/deep": "x" });
    const { output } = await resultOf(backend, "ls", { path: "/workspace/src" });
    expect(JSON.parse(output)).toEqual([
      { name: "a", type: "directory", size: expect.any(Number) },
      { name: "b.txt", type: "file", size: 4 },
    ]);
    expect(JSON.parse((await resultOf(backend, "ls", {})).output)).toMatchObject([{ name: "src" }]);
  });

  test("shows a thousand entries and says that there are more", async () => {
    const files = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`f${1000 + index}`, ""]));
    const { output } = await resultOf(await workspace(files), "ls", { path: "." });
    const [list = "", notice] = output.split("\n\n");
    expect(JSON.parse(list)).toHaveLength(1000);
    expect(notice).toContain("Only the first 1000");
  });
});

describe("glob and grep", () => {
  test("find files and lines, named by the absolute paths that other tools take and return", async () => {
    const backend = await workspace({ "src/a.ts": "one\ntwo\n", "src/b.js": "two\n" });
    expect(JSON.parse((await resultOf(backend, "glob", { pattern: "*.ts" })).output)).toEqual([
      "/workspace/src/a.ts",
    ]);
    expect(JSON.parse((await resultOf(backend, "grep", { pattern: "^t", include: "*.ts" })).output)).toEqual({
      matches: [{ file: "/workspace/src/a.ts", line: 2, text: "two" }],
      truncated: false,
    });
    expect((await resultOf(backend, "grep", { pattern: "(" })).error).toContain("not valid RE2");
  });

  test("say when there is more than they show", async () => {
    const files = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, ""]));
    const { output } = await resultOf(await workspace(files), "glob", { pattern: "f*" });
    expect(output).toMatch(/\]\n\n\[There are more\. Use a narrower pattern or path\.\]$/);
  });
});
