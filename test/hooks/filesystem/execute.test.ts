import { describe, expect, test } from "vitest";
import type { Backend } from "../../../src/core/backend.ts";
import { toolMessages } from "../../../src/core/message.ts";
import { dataOf } from "../../support/drain.ts";
import { workspace } from "../workspace.ts";
import { calling, resultOf } from "./calling.ts";

const { signal } = new AbortController();

describe("execute", () => {
  test("gives what a terminal would show, and the exit code", async () => {
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

  test("a timeout is a failed call that keeps what was printed", async () => {
    const backend = await workspace({});
    const { output, error } = await resultOf(backend, "execute", {
      command: "echo begun; sleep 300",
      timeout: 0.3,
    });
    expect(output).toBe("begun\n[killed by SIGTERM]");
    expect(error).toContain("ended after 0.3 s");
    expect((await resultOf(backend, "execute", { command: "x", timeout: 601 })).error).toContain("timeout");
  });

  test("a command may take two minutes unless the agent or the model says otherwise", async () => {
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

  test("cancelling the run ends the command, and keeps what was printed", async () => {
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
