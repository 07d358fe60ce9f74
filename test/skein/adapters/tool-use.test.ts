import { describe, expect, test } from "vitest";
import { z } from "zod";
import { abortRun } from "../../../src/agent/core/errors.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import type { OwnHook } from "../../../src/index.ts";
import { fromPostToolUse, fromPreToolUse, type PreToolUse } from "../../../src/skein/adapters/index.ts";
import { agentWith, collect, runtimeWith } from "../../support/library.ts";

/** A run that calls the tool once, with `path: "a"`. */
function calling(hooks: OwnHook[], more = {}) {
  const seen: string[] = [];
  const remove = defineTool({
    name: "remove",
    description: "Removes a file.",
    parameters: z.object({ path: z.string() }),
    execute({ path }) {
      seen.push(path);
      return `removed ${path}`;
    },
  });
  const script = [{ call: [{ tool: "remove", args: { path: "a" } }] }, { say: "Done." }];
  const handle = runtimeWith().spawn(agentWith(script, { tools: [remove], hooks, ...more }), { input: "go" });
  const resultOfCall = async () => (await handle.history()).find(({ role }) => role === "tool");
  return { handle, seen, resultOfCall };
}

describe("a pre-tool-use hook", () => {
  test("denies with a message for the model", async () => {
    const { handle, seen, resultOfCall } = calling([
      fromPreToolUse(() => ({ decision: "deny", message: "Not that one." })),
    ]);
    expect((await handle.result).text).toBe("Done.");
    expect(await resultOfCall()).toMatchObject({ error: "Not that one." });
    expect(seen).toEqual([]);
  });

  test("allows, even with other arguments", async () => {
    const { handle, seen } = calling([fromPreToolUse(() => ({ decision: "allow", args: { path: "b" } }))]);
    await handle.result;
    expect(seen).toEqual(["b"]);
  });

  test("leaves the decision to the next one, and finally to the permissions", async () => {
    const asked: string[] = [];
    const pass =
      (name: string): PreToolUse =>
      ({ call }) => {
        asked.push(`${name} ${call.name}`);
        return undefined;
      };
    const { handle } = calling([fromPreToolUse(pass("one"), pass("two"))], {
      permissions: { mode: "default" },
    });
    expect((await handle.result).status).toBe("interrupted");
    expect(asked).toEqual(["one remove", "two remove"]);
  });

  test("counts first if several decide", async () => {
    const { handle, resultOfCall } = calling([
      fromPreToolUse(
        () => ({ decision: "deny", message: "first" }),
        () => ({ decision: "allow" }),
      ),
    ]);
    await handle.result;
    expect(await resultOfCall()).toMatchObject({ error: "first" });
  });

  test.each([
    ["approve", {}, { content: "removed a" }],
    ["edit", { args: { path: "c" } }, { content: "removed c" }],
    ["edit", { args: { path: "/etc" } }, { error: "Never." }],
    ["edit", { args: { path: ["a"] } }, { error: expect.stringMatching(/^Invalid arguments/) }],
    ["deny", { message: "Hands off." }, { error: "Hands off." }],
    ["respond", { message: "I did it myself." }, { content: "I did it myself." }],
  ] as const)("asks a person, who can %s with %o", async (decision, more, expected) => {
    const guard: PreToolUse = ({ call }) =>
      call.args.path === "/etc"
        ? { decision: "deny", message: "Never." }
        : { decision: "ask", message: `Remove ${call.args.path}?` };
    const { handle, resultOfCall } = calling([fromPreToolUse(guard)]);
    const { interrupts } = await handle.result;
    expect(interrupts).toMatchObject([{ kind: "approval", prompt: "Remove a?" }]);
    await handle.answer([{ id: interrupts[0]?.id ?? "", decision, ...more }]);
    expect((await handle.result).text).toBe("Done.");
    expect(await resultOfCall()).toMatchObject(expected);
  });

  test("that throws fails the call; an abort fails the run", async () => {
    const throwing = (error: Error) => calling([fromPreToolUse(() => Promise.reject(error))]);
    const broken = throwing(new Error("broken"));
    expect((await broken.handle.result).text).toBe("Done.");
    expect(await broken.resultOfCall()).toMatchObject({ error: "broken" });
    expect((await throwing(abortRun("Stop it.")).handle.result).error).toMatchObject({ message: "Stop it." });
  });
});

describe("a post-tool-use hook", () => {
  test("sees the result, and can replace it", async () => {
    const { handle, resultOfCall } = calling([
      fromPostToolUse(
        ({ result }) => ({ ...result, output: `${result.output}!` }),
        ({ result }) => ({ ...result, output: `${result.output}!` }),
      ),
    ]);
    await handle.result;
    expect(await resultOfCall()).toMatchObject({ content: "removed a!!" });
  });

  test("that throws causes a warning and changes nothing; an abort fails the run", async () => {
    const throwing = (error: Error) => calling([fromPostToolUse(() => Promise.reject(error))]);
    const broken = throwing(new Error("broken"));
    expect((await broken.handle.result).text).toBe("Done.");
    const warnings = (await collect(broken.handle.events())).filter(({ event }) => event === "warning");
    expect(warnings).toMatchObject([{ data: { code: "hook_failed" } }]);
    expect(JSON.stringify(warnings)).toContain("broken");
    expect((await throwing(abortRun("Stop it.")).handle.result).status).toBe("error");
  });
});
