import { describe, expect, test } from "vitest";
import { SandboxLostError } from "../../../src/backends/shell/script.ts";
import { Shell } from "../../../src/backends/shell/shell.ts";
import { dash, folder } from "../../support/lanes.ts";

const { signal } = new AbortController();

describe("a shell", () => {
  const openedShell = (open = dash, onSilence = () => {}) =>
    new Shell(open, { workdir: folder, prelude: 'half() { r="0 $(($1 / 2))"; }', onSilence });

  test("runs many fragments at once, each with its own answer", async () => {
    const shell = openedShell();
    await shell.prewarm(signal);
    expect(shell.isBusy).toBe(false);
    const replies = Array.from({ length: 60 }, (_, index) =>
      shell.runOnce({ script: `half ${index * 2}; echo ${index}` }, signal),
    );
    expect(shell.isBusy).toBe(true);
    (await Promise.all(replies)).forEach(({ fields, output }, index) => {
      expect([fields, String(output)]).toEqual([["0", `${index}`], `${index}\n`]);
    });
    expect(shell.isBusy).toBe(false);
    shell.close(new Error("the end"));
    await expect(shell.runOnce({ script: ":" }, signal)).rejects.toThrow("the end");
  });

  test("survives whatever happens to its lanes", async () => {
    const shell = openedShell();
    for (let round = 0; round < 20; round++) {
      const replies = [":", "exit", "kill -s KILL $$", ":", "if then"].map((script) =>
        shell.runOnce({ script }, signal),
      );
      const settled = await Promise.allSettled(replies);
      for (const reply of settled)
        if (reply.status === "rejected") expect(reply.reason).toBeInstanceOf(SandboxLostError);
    }
    const last = () => shell.runOnce({ script: "echo alive" }, signal).catch(() => undefined);
    await expect.poll(async () => String((await last())?.output)).toBe("alive\n");
    shell.close(new Error("the end"));
  });
});
