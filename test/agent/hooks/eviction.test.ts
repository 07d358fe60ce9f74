import { expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { type Content, toolMessages } from "../../../src/agent/core/message.ts";
import { done, failed } from "../../../src/agent/core/tool.ts";
import { eviction } from "../../../src/agent/hooks/eviction.ts";
import { filesystem } from "../../../src/agent/hooks/filesystem/index.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { made } from "./made.ts";
import { workspace } from "./workspace.ts";

const { signal } = new AbortController();

interface Case {
  output?: Content;
  error?: string;
  backend?: Backend;
  options?: Record<string, unknown>;
  name?: string;
  id?: string;
}

/** What the model and the viewers get of a tool that answers so. */
async function evicted({ output = "", error, backend, options = {}, name = "custom", id }: Case) {
  const tool = plainTool(name, () => (error === undefined ? done(output) : failed(error, output)));
  const hook = made(eviction, { options, ...(backend ? { backend } : {}) });
  const call = { tool: name, ...(id === undefined ? {} : { id }) };
  const { events, messages } = await play({
    ...{ tools: [tool], hooks: [hook], script: [{ call: [call] }, { say: "ok" }] },
    ...(backend ? { backend } : {}),
  });
  const [message] = toolMessages(messages);
  return { events, content: message?.content, text: String(message?.content), error: message?.error };
}

async function contentOf(backend: Backend, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of backend.read(path, {}, signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const pathIn = (text: string) => / in (\S+)\) \.\.\./.exec(text)?.[1] ?? "";
const LONG = `${"a".repeat(50_000)}${"b".repeat(50_000)}`;

test("a result of 80,000 characters stays unchanged, and a longer one is cut to its beginning and end", async () => {
  const just = "x".repeat(80_000);
  expect((await evicted({ output: just })).text).toBe(just);
  const { text, events } = await evicted({ output: LONG });
  expect(text).toBe(`${"a".repeat(2000)}\n\n... (truncated 96000 characters) ...\n\n${"b".repeat(2000)}`);
  expect(dataOf(events, "on_tool_end")[0]?.output).toBe(text);
});

test("with a backend, the whole result is in a file that read_file and commands can read", async () => {
  const backend = await workspace({});
  const { text } = await evicted({ output: LONG, backend });
  expect(text).toMatch(
    /^a{2000}\n\n\.\.\. \(truncated 96000 characters; the full text is in \S+\) \.\.\.\n\nb{2000}$/,
  );
  expect(await contentOf(backend, pathIn(text))).toBe(LONG);
  // Git ignores the folder.
  expect(await contentOf(backend, ".skein/.gitignore")).toBe("*\n");
  const { messages } = await play({
    script: [{ call: [{ tool: "execute", args: { command: `wc -c < ${pathIn(text)}` } }] }, { say: "ok" }],
    hooks: [made(filesystem, { backend })],
  });
  expect(toolMessages(messages)[0]?.content).toBe("100000\n[exit_code: 0]");
});

test("tools of files limit their own results", async () => {
  for (const name of ["ls", "glob", "grep", "read_file", "edit_file", "write_file"])
    expect((await evicted({ output: LONG, name })).text).toBe(LONG);
});

test("a long output of execute is moved to a file", async () => {
  const backend = await workspace({});
  const { messages } = await play({
    script: [{ call: [{ tool: "execute", args: { command: "seq 1 16000" } }] }, { say: "ok" }],
    hooks: [made(filesystem, { backend }), made(eviction, { backend })],
    backend,
  });
  const text = String(toolMessages(messages)[0]?.content);
  expect(text.startsWith("1\n2\n3\n")).toBe(true);
  expect(text.endsWith("16000\n[exit_code: 0]")).toBe(true);
  expect((await contentOf(backend, pathIn(text))).split("\n")[7499]).toBe("7500");
});

test("operators can set the sizes", async () => {
  const options = { max_chars: 10, head: 2, tail: 3 };
  expect((await evicted({ output: "0123456789", options })).text).toBe("0123456789");
  expect((await evicted({ output: "0123456789a", options })).text).toBe(
    "01\n\n... (truncated 6 characters) ...\n\n89a",
  );
  expect(eviction.options.safeParse({ max_chars: 10, head: 6, tail: 6 }).success).toBe(false);
});

test("no character is split", async () => {
  const { text } = await evicted({ output: `a${"🧵".repeat(50_000)}b` });
  expect(text.isWellFormed()).toBe(true);
  expect(text).toContain("(truncated 96004 characters)");
});

test("in a result with parts, the text is shortened and the other parts are kept", async () => {
  const image = { type: "image", media_type: "image/png", data: "aGk=" } as const;
  const text = (value: string) => ({ type: "text", text: value }) as const;
  const { content } = await evicted({ output: [text("a".repeat(60_000)), image, text("b".repeat(60_000))] });
  expect(content).toEqual([text(expect.stringMatching(/^a{2000}\n\n.*\n\nb{2000}$/)), image]);
  const short = [text("a"), image];
  expect((await evicted({ output: short })).content).toEqual(short);
});

test("a long error is shortened too", async () => {
  const { error, text } = await evicted({ error: LONG, output: "partial" });
  expect(error).toContain("... (truncated 96000 characters) ...");
  expect(text).toBe("partial");
});

test("if the file cannot be written, the result is shortened and the run continues with a warning", async () => {
  const backend = await workspace({ ".skein": "a file where the folder should be" });
  const { text, events } = await evicted({ output: LONG, backend });
  expect(text).toContain("... (truncated 96000 characters) ...");
  expect(dataOf(events, "warning")).toEqual([
    {
      code: "eviction_failed",
      message: expect.stringContaining("The long result of `custom` could not be saved"),
    },
  ]);
});

test("call ids of any form lead to separate files in the same folder", async () => {
  const backend = await workspace({});
  for (const id of ["../../escape", "a/b", "..", "x".repeat(500), "new\nline", "call_1", "call_1"])
    expect(await contentOf(backend, pathIn((await evicted({ output: LONG, backend, id })).text))).toBe(LONG);
  const files = await backend.list(".skein/results", signal);
  expect(files).toHaveLength(7);
  expect((await backend.list(".", signal)).map(({ path }) => path)).toEqual(["/workspace/.skein"]);
});

test("keeps the 100 newest files", async () => {
  const backend = await workspace({});
  for (let index = 0; index < 100; index++)
    await backend.write(`.skein/results/old-${index}`, Buffer.from("x"), signal);
  await backend.exec("touch -d 2001-01-01 .skein/results/old-7", { signal, timeoutMs: 60_000 }).next();
  const { text } = await evicted({ output: LONG, backend });
  const names = (await backend.list(".skein/results", signal)).map(({ path }) => path.split("/").at(-1));
  expect(names).toHaveLength(100);
  expect(names).not.toContain("old-7");
  expect(await contentOf(backend, pathIn(text))).toBe(LONG);
});
