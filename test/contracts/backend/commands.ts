// What every backend promises of commands.

import { describe, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { drained, execute, options, readAll, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function commands(it: It): void {
  describe("commands", () => {
    running(it);
    output(it);
    ending(it);
  });
}

function running(it: It): void {
  test("runs a command line in the workspace and returns its exit code", async () => {
    await it().write("from-port", Buffer.from("hello "), signal);
    const result = await execute(it(), "cat from-port; echo world > from-command; exit 7");
    expect(result).toEqual({ output: "hello ", omitted: 0, exitCode: 7 });
    expect(String(await readAll(it(), "from-command"))).toBe("world\n");
  });

  test("reports the signal that killed a command", async () => {
    expect(await execute(it(), "kill -s KILL $$")).toMatchObject({ exitCode: null, signal: "SIGKILL" });
    expect(await execute(it(), "exit 137")).toEqual({ output: "", omitted: 0, exitCode: 137 });
  });

  test("gives a command no input", async () => {
    expect(await execute(it(), "cat; read line || echo end")).toMatchObject({ output: "end\n", exitCode: 0 });
  });

  test("runs the command unchanged", async () => {
    const result = await execute(
      it(),
      `printf '%s\\n' "it's" '"quoted"' '$HOME' \\\\\ncat <<'EOF'\n); touch x; (\nEOF`,
    );
    expect(result.output).toBe(`it's\n"quoted"\n$HOME\n\\\n); touch x; (\n`);
    expect((await execute(it(), "if then")).exitCode).not.toBe(0);
    await refuses(() => execute(it(), "echo a\0b"), "invalid_request", "NUL");
    await refuses(() => execute(it(), `: ${"x".repeat(200_000)}`), "invalid_request", "200002 bytes");
  });

  test("passes the given variables to a command", async () => {
    const environment = { TERM: "it's", SKEIN_TEST_MORE: "a b\n$HOME" };
    const { output } = await execute(it(), 'printf "%s|" "$TERM" "$SKEIN_TEST_MORE"; env true', {
      environment,
    });
    expect(output).toBe("it's|a b\n$HOME|");
    expect((await execute(it(), 'printf "[$SKEIN_TEST_MORE]"')).output).toBe("[]");
  });

  test("gives commands a persistent home directory other than the workspace", async () => {
    const { output } = await execute(it(), 'cd && echo x > .kept && [ "$PWD" != "$OLDPWD" ] && echo home');
    expect(output).toBe("home\n");
    expect((await execute(it(), "cat ~/.kept; [ -e .kept ] || echo elsewhere")).output).toBe(
      "x\nelsewhere\n",
    );
    await execute(it(), 'rm -rf "$HOME"');
    expect((await execute(it(), 'cd "$HOME" && echo again')).output).toBe("again\n");
  });

  test("returns each command's own output when many run at once", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        execute(it(), `echo out-${index}; echo err-${index} >&2; exit ${index}`),
      ),
    );
    results.forEach((result, index) => {
      expect(result).toEqual({ output: `out-${index}\nerr-${index}\n`, omitted: 0, exitCode: index });
    });
  });
}

function output(it: It): void {
  test("combines output and errors in order of arrival", async () => {
    const { output } = await execute(
      it(),
      "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done; echo d > /dev/stderr",
    );
    expect(output).toBe("o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\nd\n");
  });

  test("shows output while the command is running", async () => {
    const stream = it().exec("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two", options());
    expect(await stream.next()).toEqual({ done: false, value: { text: "one\n" } });
    await it().write("go", Buffer.from(""), signal);
    const pieces: string[] = [];
    const result = await drained(stream, pieces);
    expect(pieces.join("")).toBe("two\n");
    expect(result.output).toBe("one\ntwo\n");
    await it().remove("go", signal);
  });

  test("streams exactly the text that it returns, without splitting characters", async () => {
    const pieces: string[] = [];
    const result = await drained(
      it().exec(
        "printf 'a\\303'; sleep 0.15; printf '\\251b\\360\\237'; sleep 0.15; printf '\\247\\265\\377'",
        options(),
      ),
      pieces,
    );
    expect(result.output).toBe("aéb🧵\ufffd");
    expect(pieces.join("")).toBe(result.output);
  });

  test("keeps the beginning and the end of a long output, and counts the rest", async () => {
    const pieces: string[] = [];
    const command =
      "echo FIRST; i=0; while [ $i -lt 3000 ]; do echo $i-0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done; echo LAST";
    const result = await drained(it().exec(command, options()), pieces);
    const total = Number((await execute(it(), `(${command}) | wc -c`)).output);
    const [head = "", tail = ""] = result.output.split(/\n\n\.\.\. \(\d+ characters left out\) \.\.\.\n\n/);
    expect(head.startsWith("FIRST\n0-0")).toBe(true);
    expect(tail.endsWith("\nLAST\n")).toBe(true);
    expect(head.length + result.omitted + tail.length).toBe(total);
    expect(result.output.length).toBeLessThan(101_000);
    expect(pieces.join("")).toBe(head);
  });

  test("ends a command that never stops printing", async () => {
    const result = await execute(it(), "yes");
    expect(result).toMatchObject({ ended: "output-limit", exitCode: null });
    expect(result.omitted).toBeGreaterThan(60_000_000);
    expect(result.output.startsWith("y\ny\n")).toBe(true);
  });

  test("does not wait for background processes", async () => {
    expect(await execute(it(), "(sleep 300; echo late) & echo x")).toMatchObject({
      output: "x\n",
      exitCode: 0,
    });
    const left = "yes > /dev/null & echo $! > pid; echo y";
    expect(await execute(it(), left)).toMatchObject({ output: "y\n", exitCode: 0 });
    // It would have a processor to itself for as long as the other tests take.
    expect((await execute(it(), "kill $(cat pid); rm pid; echo next")).output).toBe("next\n");
  });

  test("background processes can still print", async () => {
    await execute(
      it(),
      "(while [ ! -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero; echo done > printed) &",
    );
    await it().write("go", Buffer.from(""), signal);
    const { output } = await execute(
      it(),
      "while [ ! -s printed ]; do sleep 0.01; done; cat printed; rm go printed",
    );
    expect(output).toBe("done\n");
  });
}

function ending(it: It): void {
  /** Each leaves the ids of its processes in `pids`, so many of them. */
  const stubborn: readonly [string, number, string][] = [
    ["waits", 1, "echo $$ >> pids; sleep 300"],
    ["spins", 1, "echo $$ >> pids; while :; do :; done"],
    ["prints", 1, "echo $$ >> pids; while :; do echo x; done"],
    ["has children", 2, "sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; wait"],
    ["is a pipeline", 1, "sleep 300 | (echo $$ >> pids; cat) | cat"],
    [
      "will not end",
      2,
      "trap '' TERM INT HUP; echo $$ >> pids; sleep 300 & echo $! >> pids; wait; sleep 300",
    ],
    ["has stopped itself", 1, "echo $$ >> pids; kill -s STOP $$; sleep 300"],
    ["has children in another session", 1, "setsid sh -c 'echo $$ >> pids; sleep 300; :' & sleep 300"],
    ["has a daemon", 1, "(setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 300; :' &) ; sleep 300"],
    ["has closed its output", 1, "echo $$ >> pids; exec >&- 2>&-; sleep 300"],
  ];

  test.each(stubborn)(
    "a command that %s is cancelled with everything that it started",
    async (_, count, command) => {
      await it().write("pids", Buffer.from(""), signal);
      const abort = new AbortController();
      const running = execute(it(), command, { signal: abort.signal });
      await expect.poll(async () => (await processes(it())).length).toBe(count);
      abort.abort();
      expect(await running).toMatchObject({ ended: "cancelled" });
      expect(await survivors(it())).toBe("");
    },
  );

  test("keeps the output from before a timeout, and the last output after it", async () => {
    const result = await execute(it(), "trap 'echo bye; exit 3' TERM; echo hello; while :; do :; done", {
      // A busy machine has started the shell by then.
      timeoutMs: 5000,
    });
    expect(result).toEqual({ output: "hello\nbye\n", omitted: 0, exitCode: 3, ended: "timeout" });
  });

  test("ends a command if its reader leaves", async () => {
    await it().write("pids", Buffer.from(""), signal);
    for await (const _ of it().exec("echo $$ >> pids; echo running; sleep 300", options())) break;
    expect(await survivors(it())).toBe("");
  });

  test("starts nothing if it is already cancelled", async () => {
    const result = await execute(it(), "echo x > started", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ ended: "cancelled", output: "" });
    await refuses(() => it().stat("started", signal), "not_found", "started");
  });
}

/** The ids in `pids`. */
async function processes(backend: Backend): Promise<string[]> {
  return String(await readAll(backend, "pids")).match(/\d+(?=\n)/g) ?? [];
}

/** Of the processes named in `pids`, the state of those that live. */
async function survivors(backend: Backend): Promise<string> {
  expect(await processes(backend)).not.toEqual([]);
  const check = 'for p in $(cat pids); do grep -s "^State:" "/proc/$p/status" | grep -v Z; done';
  return (await execute(backend, check)).output;
}
