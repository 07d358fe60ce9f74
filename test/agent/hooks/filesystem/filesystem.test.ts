import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Backend } from "../../../../src/agent/core/backend.ts";
import { toolMessages } from "../../../../src/agent/core/message.ts";
import { filesystem } from "../../../../src/agent/hooks/filesystem/index.ts";
import { toUtf16 } from "../../../../src/lib/utf16.ts";
import { play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { listening } from "../listening.ts";
import { agentWith, made } from "../made.ts";
import { workspace } from "../workspace.ts";
import { type Call, calling, resultOf } from "./calling.ts";

test("an agent has the hook if it has a backend", () => {
  expect(filesystem.activeByDefault(agentWith({ backend: { type: "local" } }))).toBe(true);
  expect(filesystem.activeByDefault(agentWith())).toBe(false);
});

test("the model sees seven tools, each with its annotations", async () => {
  const backend = await workspace({});
  const hook = made(filesystem, { backend, agent: { backend: { type: "local", timeout: 7 } } });
  let annotations: Record<string, unknown> = {};
  const look = {
    name: "look",
    beforeAgent(run: { tools: ReadonlyMap<string, { annotations: object }> }) {
      annotations = Object.fromEntries([...run.tools].map(([name, tool]) => [name, tool.annotations]));
    },
  };
  const { model, asked } = listening([]);
  await play({ model, hooks: [hook, look] });
  const schemas = asked[0]?.tools ?? [];
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

  test("lists a thousand entries and reports that there are more", async () => {
    const files = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`f${1000 + index}`, ""]));
    const { output } = await resultOf(await workspace(files), "ls", { path: "." });
    const [list = "", notice] = output.split("\n\n");
    expect(JSON.parse(list)).toHaveLength(1000);
    expect(notice).toContain("Only the first 1000");
  });
});

describe("glob and grep", () => {
  test("find files and lines, and return absolute paths that other tools accept", async () => {
    const backend = await workspace({ "src/a.ts": "one\ntwo\n", "src/b.js": "two\n" });
    expect(JSON.parse((await resultOf(backend, "glob", { pattern: "*.ts" })).output)).toEqual([
      "/workspace/src/a.ts",
    ]);
    expect(JSON.parse((await resultOf(backend, "grep", { pattern: "^t", include: "*.ts" })).output)).toEqual({
      matches: [{ file: "/workspace/src/a.ts", line: 2, text: "two" }],
      truncated: false,
    });
    const binary = await workspace({ "a.txt": "one", "b.bin": "one\0" });
    expect((await resultOf(binary, "grep", { pattern: "one" })).output).toMatch(
      /\n\n\[1 files were not searched/,
    );
    expect((await resultOf(backend, "grep", { pattern: "(" })).error).toContain("not valid RE2");
  });

  test("report if there are more results", async () => {
    const files = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, ""]));
    const { output } = await resultOf(await workspace(files), "glob", { pattern: "f*" });
    expect(output).toMatch(/\]\n\n\[There are more\. Use a narrower pattern or path\.\]$/);
  });
});

describe("read_file", () => {
  const read = async (content: string | Uint8Array, args: Record<string, unknown> = {}) =>
    resultOf(await workspace({ f: content }), "read_file", { path: "f", ...args });
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

  test("returns a file unchanged", async () => {
    for (const content of ["one\ntwo", "one\r\ntwo\r\n", "\ufeffünï 🧵\n", "\n"])
      expect(await read(content)).toEqual({ output: content, error: undefined });
    expect((await read("")).output).toBe("[The file is empty.]");
  });

  test("returns 2,000 lines at a time, and explains how to continue", async () => {
    const content = lines(1, 4500);
    expect((await read(content)).output).toBe(
      `${lines(1, 2000)}\n[Lines 1 to 2000. Read on with offset 2001.]`,
    );
    expect((await read(content, { offset: 2001, limit: 10 })).output).toBe(
      `${lines(2001, 2010)}\n[Lines 2001 to 2010. Read on with offset 2011.]`,
    );
    expect((await read(content, { offset: 4001 })).output).toBe(lines(4001, 4500));
    expect((await read(content, { offset: 4491, limit: 10 })).output).toBe(lines(4491, 4500));
    expect((await read("a\nb", { offset: 2, limit: 1 })).output).toBe("b");
  });

  test("returns the number of lines if the requested line is beyond the end", async () => {
    expect((await read("a\nb\n", { offset: 3 })).error).toBe("`f` has 2 lines; offset 3 is past its end.");
    expect((await read("a\nb", { offset: 9 })).error).toContain("has 2 lines");
    expect((await read("", { offset: 2 })).output).toBe("[The file is empty.]");
  });

  test("stops at the end of a line before the limit", async () => {
    const { output } = await read(lines(1, 2000).replaceAll("line", "l".repeat(90)));
    expect(output.length).toBeLessThan(60_100);
    const [, last, next] = output.match(/\[Lines 1 to (\d+)\. Read on with offset (\d+)\.\]$/) ?? [];
    expect(Number(next)).toBe(Number(last) + 1);
    expect(output).toContain(` ${last}\n\n[Lines`);
  });

  test("cuts a single line that is too long", async () => {
    const { output } = await read(`${"🧵".repeat(50_000)}\nsecond\n`);
    expect(output).toMatch(/^(🧵){30000}\n\n\[Line 1 is cut here, after 60000 characters\./);
    expect(output).toContain("read on with offset 2");
  });

  test("returns the beginning of a file that is not UTF-8 as base64", async () => {
    const small = Uint8Array.from({ length: 256 }, (_, index) => index);
    expect((await read(small)).output).toBe(`base64:${Buffer.from(small).toString("base64")}`);
    const [body = "", notice] = (await read(Buffer.alloc(200_000, 0xff))).output.split("\n\n");
    expect(Buffer.from(body.slice("base64:".length), "base64").length).toBe(45_000);
    expect(notice).toBe("[The first 45000 of 200000 bytes.]");
    const late = Buffer.concat([Buffer.from("text\n".repeat(20_000)), Buffer.from([0xc3])]);
    expect((await read(late, { offset: 19_999 })).output).toMatch(/^base64:/);
  });

  test("returns a UTF-16 file as text, and a file that contains NUL as base64", async () => {
    const wide = toUtf16("\ufeffžluť\r\nkůň\n", "utf-16be");
    expect((await read(wide, { offset: 2 })).output).toBe("kůň\n");
    expect((await read("a\0b")).output).toBe("base64:YQBi");
  });

  test("accepts file_path for path", async () => {
    const backend = await workspace({ f: "text" });
    expect(await resultOf(backend, "read_file", { file_path: "f" })).toEqual({
      output: "text",
      error: undefined,
    });
    expect((await resultOf(backend, "read_file", {})).error).toContain("path");
  });

  test("tells the model the problem, but not the server's path", async () => {
    const backend = await workspace({});
    expect((await resultOf(backend, "read_file", { path: "gone" })).error).toBe("`gone` does not exist.");
    expect((await resultOf(backend, "read_file", { path: "/etc/passwd" })).error).toContain(
      "outside the workspace",
    );
    expect((await resultOf(backend, "read_file", { path: "f", offset: 0 })).error).toContain("offset");
  });
});

describe("write_file and edit_file", () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

  test("change files, and the thread records each under one name", async () => {
    const backend = await workspace({});
    const { messages, state } = await calling(backend, [
      ["write_file", { path: "src/../hello.py", content: "print('hello')" }],
      ["write_file", { path: "/workspace/a/b/new.md", content: "ünï" }],
      ["edit_file", { path: "./hello.py", old_text: "hello", new_text: "bye" }],
    ]);
    const [written, deep, edited] = toolMessages(messages).map(({ content }) => JSON.parse(String(content)));
    expect(written).toEqual({ path: "/workspace/hello.py", bytes_written: 14 });
    expect(deep).toEqual({ path: "/workspace/a/b/new.md", bytes_written: 5 });
    expect(edited).toEqual({ path: "/workspace/hello.py", bytes: 12 });
    expect(state.get("files")).toEqual({
      "/workspace/hello.py": {
        bytes: 12,
        sha256: sha256("print('bye')"),
        op: "edit",
        content: "print('bye')",
        before: "print('hello')",
      },
      "/workspace/a/b/new.md": {
        ...{ bytes: 5, sha256: sha256("ünï"), op: "write", content: "ünï", before: "" },
      },
    });
  });

  test("record the texts of the newest files, up to 1 MiB in total", async () => {
    const names = Array.from({ length: 80 }, (_, index) => `f${index}`);
    const content = "c".repeat(16_384);
    const call = names.map((path) => ({ tool: "write_file", args: { path, content } }));
    const script = [{ call }, { say: "ok" }];
    const { state } = await calling(await workspace({}), [], { script });
    const files = Object.values(state.get("files") as Record<string, { content?: string; before?: string }>);
    expect(files).toHaveLength(80);
    const kept = files.map((file) => file.content === content && file.before === "");
    expect(kept).toEqual(files.map((_, index) => index >= 16));
    expect(files[0]).toEqual({ bytes: 16_384, op: "write", sha256: sha256(content) });
  });

  test("record the old and the new content of small text files only", async () => {
    const old = { old: "what it was", edge: "e".repeat(16_384), empty: "" };
    const backend = await workspace({ ...old, binary: Buffer.from([0xff, 0x61]), big: "b".repeat(16_385) });
    const { state } = await calling(backend, [
      ...[...Object.keys(old), "big"].map((path): Call => ["write_file", { path, content: "new" }]),
      ["write_file", { path: "small", content: "a".repeat(16_384) }],
      ["write_file", { path: "large", content: "a".repeat(16_385) }],
      ["edit_file", { path: "binary", old_text: "a", new_text: "c" }],
    ]);
    const files = state.get("files") as Record<string, { content?: string; before?: string }>;
    const kept = (key: "content" | "before") =>
      Object.keys(files)
        .filter((path) => files[path]?.[key] !== undefined)
        .map((path) => path.slice(11));
    expect(kept("before").sort()).toEqual(["edge", "empty", "large", "old", "small"]);
    expect(kept("content").sort()).toEqual(["big", "edge", "empty", "old", "small"]);
    expect(files).toMatchObject({
      "/workspace/old": { before: "what it was", content: "new" },
      "/workspace/binary": { bytes: 2, op: "edit" },
      "/workspace/large": { bytes: 16_385, sha256: sha256("a".repeat(16_385)) },
    });
  });

  test("record the earlier content of a hundred files, and drop the oldest first", async () => {
    const backend = await workspace({ f0: "zero", new: "old" });
    const record = { bytes: 1, sha256: "", op: "write", content: "x", before: "y" };
    const old = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`/workspace/f${n}`, record]));
    const begin = { input: { state: new Map([["files", old]]) } };
    const again = await calling(backend, [["write_file", { path: "f0", content: "x" }]], begin);
    const kept = (state: ReadonlyMap<string, unknown>) => {
      const files = Object.entries(state.get("files") as Record<string, object>);
      return files.filter(([, each]) => "before" in each).map(([path]) => path);
    };
    expect(kept(again.state)).toHaveLength(100);
    const { state } = await calling(backend, [["write_file", { path: "new", content: "x" }]], begin);
    expect(kept(state)).toEqual([...Object.keys(old).slice(1), "/workspace/new"]);
    expect(state.get("files")).toMatchObject({ "/workspace/f0": { content: "x" } });
  });

  test("record five hundred files, and drop the oldest for a new one", async () => {
    const backend = await workspace({});
    const paths = Array.from({ length: 500 }, (_, index) => `/workspace/f${index}`);
    const writing = async (before: readonly string[], ...names: string[]) => {
      const old = Object.fromEntries(before.map((path) => [path, { bytes: 0, sha256: "", op: "write" }]));
      const calls = names.map((path): Call => ["write_file", { path, content: "x" }]);
      const { state } = await calling(backend, calls, { input: { state: new Map([["files", old]]) } });
      return Object.keys(state.get("files") as object).toSorted();
    };
    const others = paths.slice(1);
    expect(await writing(paths, "f1", "new")).toEqual([...others, "/workspace/new"].toSorted());
    expect(await writing(others, "new")).toHaveLength(500);
  });

  test("a failed change is an error result and is not recorded", async () => {
    const backend = await workspace({ f: "text" });
    const { messages, state } = await calling(backend, [
      ["edit_file", { path: "f", old_text: "nothing like it", new_text: "x" }],
      ["write_file", { path: "../f", content: "x" }],
    ]);
    const [missing, outside] = toolMessages(messages).map(({ error }) => error);
    expect(missing).toBe("old_text not found in file");
    expect(outside).toContain("outside the workspace");
    expect(state.has("files")).toBe(false);
  });

  test("refuse a path with long sequences of combining marks, and overly long text to replace", async () => {
    const backend = await workspace({ f: "text" });
    const marks = "a\u0301\u0316".repeat(2) + "\u0301\u0316".repeat(16);
    const { messages } = await calling(backend, [
      ["write_file", { path: `e\u0301${"/x".repeat(20)}`, content: "x" }],
      ["write_file", { path: marks, content: "x" }],
      ["read_file", { path: "x".repeat(4097) }],
      ["edit_file", { path: "f", old_text: "x".repeat(200_001), new_text: "x" }],
    ]);
    const [plain, ...refused] = toolMessages(messages).map(({ error }) => error);
    expect(plain).toBeUndefined();
    expect(refused).toEqual([
      expect.stringContaining("path: must not have long rows of combining marks"),
      expect.stringContaining("path: must have at most 4096 characters"),
      expect.stringContaining("old_text: must have at most 200000 characters"),
    ]);
  });

  test("all edits in one message take effect", async () => {
    const backend = await workspace({ f: "a b c d" });
    const edit = (letter: string) => ({
      tool: "edit_file",
      args: { path: "f", old_text: letter, new_text: letter.toUpperCase() },
    });
    await calling(backend, [], { script: [{ call: ["a", "b", "c", "d"].map(edit) }, { say: "ok" }] });
    expect((await resultOf(backend, "read_file", { path: "f" })).output).toBe("A B C D");
  });
});

const { signal } = new AbortController();

describe("execute", () => {
  test("returns the output that a terminal would show, and the exit code", async () => {
    const backend = await workspace({ f: "text" });
    const run = (command: string) => resultOf(backend, "execute", { command });
    expect(await run("cat f; echo oops >&2; exit 3")).toEqual({
      output: "textoops\n[exit_code: 3]",
      error: undefined,
    });
    expect((await run("true")).output).toBe("[exit_code: 0]");
    expect((await run("kill -s KILL $$")).output).toBe("[killed by SIGKILL]");
    expect((await run("yes | head -c 300000")).output).toMatch(
      /\[exit_code: 0, 200000 characters of output left out\]$/,
    );
  });

  test("shows output as progress while the command runs", async () => {
    const backend = await workspace({});
    const seen: string[] = [];
    const { events } = await calling(
      backend,
      [["execute", { command: "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two" }]],
      {
        async onEvent(event) {
          if (event.event !== "on_tool_progress") return;
          seen.push(event.data.output);
          if (seen.length === 1) await backend.write("go", Buffer.from(""), signal);
        },
      },
    );
    expect(seen.join("")).toBe("one\ntwo\n");
    expect(seen[0]).toBe("one\n");
    expect(dataOf(events, "on_tool_end")[0]?.output).toBe("one\ntwo\n[exit_code: 0]");
  });

  test("a timeout fails the call and keeps the output", async () => {
    const backend = await workspace({});
    const { output, error } = await resultOf(backend, "execute", {
      command: "echo begun; sleep 300",
      timeout: 5,
    });
    expect(output).toBe("begun\n[killed by SIGTERM]");
    expect(error).toContain("ended after 5 s");
    expect((await resultOf(backend, "execute", { command: "x", timeout: 601 })).error).toContain("timeout");
  });

  test("a command can take two minutes unless the agent or the model sets another limit", async () => {
    const backend = await workspace({});
    const limits: number[] = [];
    const watched: Backend = {
      ...backend,
      exec(command, options) {
        limits.push(options.timeoutMs);
        return backend.exec(command, options);
      },
    };
    await resultOf(watched, "execute", { command: "true" });
    await resultOf(watched, "execute", { command: "true", timeout: 7 });
    expect(limits).toEqual([120_000, 7_000]);
  });

  test("cancelling the run ends the command and keeps the output", async () => {
    const backend = await workspace({});
    const abort = new AbortController();
    const { outcome, messages } = await calling(
      backend,
      [["execute", { command: "echo begun; sleep 300; touch late" }]],
      {
        input: { signal: abort.signal },
        onEvent: (event) => event.event === "on_tool_progress" && abort.abort(),
      },
    );
    expect(outcome.status).toBe("cancelled");
    expect(toolMessages(messages)[0]).toMatchObject({
      content: "begun\n[killed by SIGTERM]",
      error: "The command was cancelled before it finished.",
    });
  });
});
