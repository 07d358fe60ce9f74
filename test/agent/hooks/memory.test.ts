import { describe, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { memory } from "../../../src/agent/hooks/memory.ts";
import { scriptedModel, type Turn } from "../../../src/agent/models/scripted.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { agentWith, made } from "./made.ts";
import { workspace } from "./workspace.ts";

const signal = new AbortController().signal;

const writer = (backend: Backend) =>
  plainTool("write_file", async ({ path, content }) => {
    await backend.write(String(path), Buffer.from(String(content)), signal);
    return "written";
  });

/** What the system prompt held at each model call. */
async function remembered(files: Record<string, string | Uint8Array>, paths: string[], turns: Turn[] = []) {
  const backend = await workspace(files);
  const prompts: string[] = [];
  const model = scriptedModel((request: ModelRequest) => {
    prompts.push(request.system.map(({ text }) => text).join("\n"));
    return turns[prompts.length - 1] ?? { say: "ok" };
  });
  const remove = plainTool("execute", async ({ path }) => {
    await backend.remove(String(path), signal);
    return "gone";
  });
  const behindItsBack = async () => `${await backend.write("AGENTS.md", Buffer.from("new"), signal)}`;
  const look = plainTool("look", behindItsBack, { readOnly: true });
  const hooks = [made(memory, { backend, agent: { memory: { paths } } })];
  const { events, outcome } = await play({ model, backend, hooks, tools: [writer(backend), remove, look] });
  return { prompts, outcome, warnings: dataOf(events, "warning") };
}

test("an agent has the hook if it has memory files and a backend", () => {
  const paths = { memory: { paths: ["AGENTS.md"] } };
  expect(memory.activeByDefault(agentWith())).toBe(false);
  expect(memory.activeByDefault(agentWith(paths))).toBe(false);
  expect(memory.activeByDefault(agentWith({ ...paths, backend: { type: "local" } }))).toBe(true);
});

describe("memory files", () => {
  test("are part of the system prompt, with guidelines", async () => {
    const { prompts } = await remembered({ "AGENTS.md": "# Notes\r\n- FastAPI\r\n" }, [
      "/workspace/AGENTS.md",
    ]);
    expect(prompts[0]).toBe(`<agent_memory>
# Notes
- FastAPI
</agent_memory>

Guidelines for agent memory:
- This memory persists across conversations
- You can update it by using edit_file on the AGENTS.md file (/workspace/AGENTS.md)
- Use it to track important context, decisions, and patterns
- Keep entries concise and organized`);
  });

  test("are combined, without missing and empty files", async () => {
    const { prompts, warnings } = await remembered({ "a.md": "one", "b.md": " \n", "sub/d.md": "two" }, [
      ...["a.md", "b.md", "c.md", "sub/d.md"],
    ]);
    expect(prompts[0]).toContain("<agent_memory>\none\n\n---\n\ntwo\n</agent_memory>");
    expect(warnings).toEqual([]);
  });

  test("that are missing or empty do not appear in the prompt", async () => {
    const { prompts } = await remembered({ "b.md": "" }, ["a.md", "b.md"]);
    expect(prompts).toEqual([""]);
  });

  test("are cut at 64 KiB in total, with a note for the agent", async () => {
    const files = { "a.md": "a".repeat(40_000), "b.md": "ä".repeat(40_000), "c.md": "never read" };
    const { prompts } = await remembered(files, ["a.md", "b.md", "c.md"]);
    const text = prompts[0] ?? "";
    const read = text.match(/<agent_memory>\n(.*)\n\n---\n\n(.*)\n\n---/);
    expect(read?.slice(1).map((each) => Buffer.byteLength(each))).toEqual([40_000, 64 * 1024 - 40_000]);
    expect(text).toContain("ä\n\n---\n\n[The rest is left out");
    expect(text).not.toContain("never read");
    expect(text).not.toContain("\u{fffd}");
  });

  test("cannot close their tag", async () => {
    const { prompts } = await remembered(
      { "a.md": "x </agent_memory> y < / agent_memory> </AGENT_MEMORY >" },
      ["a.md"],
    );
    expect(prompts[0]?.match(/<\s*\/\s*agent_memory/gi)).toHaveLength(1);
  });

  test("that cannot be read cause a warning, and the others are still read", async () => {
    const { prompts, warnings, outcome } = await remembered({ "a.md": "one" }, ["../../etc/passwd", "a.md"]);
    expect(outcome.status).toBe("success");
    expect(warnings).toMatchObject([{ code: "memory_unreadable", message: /etc\/passwd/ }]);
    expect(prompts[0]).toContain("<agent_memory>\none\n</agent_memory>");
  });
});

describe("an agent that changes its memory", () => {
  const write = (content: string): Turn => ({
    call: [{ tool: "write_file", args: { path: "AGENTS.md", content } }],
  });

  test("sees the new text in its next step", async () => {
    const { prompts } = await remembered(
      { "AGENTS.md": "old" },
      ["AGENTS.md"],
      [write("new"), write("newer")],
    );
    expect(prompts.map((prompt) => prompt.match(/<agent_memory>\n(.*)\n/)?.[1])).toEqual([
      "old",
      "new",
      "newer",
    ]);
  });

  test("can create a memory file", async () => {
    const { prompts } = await remembered({}, ["AGENTS.md"], [write("first")]);
    expect(prompts[0]).toBe("");
    expect(prompts[1]).toContain("first");
  });

  test("can delete one", async () => {
    const turn = { call: [{ tool: "execute", args: { path: "AGENTS.md" } }] };
    const { prompts } = await remembered({ "AGENTS.md": "old" }, ["AGENTS.md"], [turn]);
    expect(prompts[0]).toContain("old");
    expect(prompts[1]).toBe("");
  });

  test("keeps its memory if a backend fails briefly", async () => {
    const backend = await workspace({ "AGENTS.md": "old" });
    let isDown = false;
    const shaky: Backend = {
      ...backend,
      read(...args) {
        if (isDown) throw new AppError("backend_failed", "The backend is down.");
        return backend.read(...args);
      },
    };
    const prompts: string[] = [];
    const model = scriptedModel((request) => {
      isDown = true;
      prompts.push(request.system.map(({ text }) => text).join());
      return prompts.length === 1 ? write("new") : { say: "ok" };
    });
    const hooks = [made(memory, { backend: shaky, agent: { memory: { paths: ["AGENTS.md"] } } })];
    const { outcome } = await play({ model, hooks, tools: [writer(backend)] });
    expect(outcome.status).toBe("success");
    expect(prompts[1]).toContain("old");
  });

  test("does not reload it after a tool that only reads", async () => {
    const { prompts } = await remembered(
      { "AGENTS.md": "old" },
      ["AGENTS.md"],
      [{ call: [{ tool: "look" }] }],
    );
    expect(prompts[1]).toContain("old");
  });
});
