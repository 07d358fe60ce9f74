import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { toolMessages } from "../../../src/core/message.ts";
import { filesystem } from "../../../src/hooks/filesystem/index.ts";
import { play } from "../../support/agent.ts";
import { made } from "../made.ts";
import { workspace } from "../workspace.ts";
import { calling, resultOf } from "./calling.ts";

describe("write_file and edit_file", () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

  test("change files, and the thread remembers each under one name", async () => {
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
      },
      "/workspace/a/b/new.md": { bytes: 5, sha256: sha256("ünï"), op: "write", content: "ünï" },
    });
  });

  test("remember the content of small text files only", async () => {
    const backend = await workspace({ binary: Buffer.from([0xff, 0x61]), large: "b".repeat(20_000) });
    const { state } = await calling(backend, [
      ["write_file", { path: "small", content: "a".repeat(16_384) }],
      ["write_file", { path: "big", content: "a".repeat(16_385) }],
      ["edit_file", { path: "binary", old_text: "a", new_text: "c" }],
      ["edit_file", { path: "large", old_text: "b", new_text: "a" }],
    ]);
    const files = state.get("files") as Record<string, object>;
    expect(Object.keys(files).filter((path) => "content" in (files[path] ?? {}))).toEqual([
      "/workspace/small",
    ]);
    expect(files["/workspace/binary"]).toMatchObject({ bytes: 2, op: "edit" });
    expect(files["/workspace/large"]).toMatchObject({
      bytes: 20_000,
      sha256: sha256(`a${"b".repeat(19_999)}`),
    });
  });

  test("remember five hundred files; the one that came first goes for a new one", async () => {
    const backend = await workspace({});
    const old = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [
        `/workspace/f${index}`,
        { bytes: 0, sha256: "", op: "write" },
      ]),
    );
    const { state } = await calling(
      backend,
      [
        ["write_file", { path: "f1", content: "x" }],
        ["write_file", { path: "new", content: "x" }],
      ],
      { input: { state: new Map([["files", old]]) } },
    );
    const paths = Object.keys(state.get("files") as object);
    expect(paths.toSorted()).toEqual(
      [...Object.keys(old).filter((path) => path !== "/workspace/f0"), "/workspace/new"].toSorted(),
    );

    const { "/workspace/f0": _, ...fewer } = old;
    const more = await calling(backend, [["write_file", { path: "new", content: "x" }]], {
      input: { state: new Map([["files", fewer]]) },
    });
    expect(Object.keys(more.state.get("files") as object)).toHaveLength(500);
  });

  test("a failed change is told to the model, and not remembered", async () => {
    const backend = await workspace({ f: "text" });
    const { messages, state } = await calling(backend, [
      ["edit_file", { path: "f", old_text: "nothing like it", new_text: "x" }],
      ["write_file", { path: "../f", content: "x" }],
    ]);
    const [missing, outside] = toolMessages(messages).map(({ error }) => error);
    expect(missing).toBe("old_text not found in file");
    expect(outside).toContain("outside of the workspace");
    expect(state.has("files")).toBe(false);
  });

  test("edits of one message all take effect", async () => {
    const backend = await workspace({ f: "a b c d" });
    const edit = (letter: string) => ({
      tool: "edit_file",
      args: { path: "f", old_text: letter, new_text: letter.toUpperCase() },
    });
    const hook = made(filesystem, { backend });
    await play({ script: [{ call: ["a", "b", "c", "d"].map(edit) }, { say: "ok" }], hooks: [hook], backend });
    expect((await resultOf(backend, "read_file", { path: "f" })).output).toBe("A B C D");
  });
});
