import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openPerl } from "../../../src/backends/shell/perl/client.ts";
import { SandboxLostError } from "../../../src/backends/shell/script.ts";
import { AppError } from "../../../src/core/errors.ts";
import { readAll } from "../../support/backend.ts";
import { needing } from "../../support/needing.ts";
import { childShell, hasPerl, lost, newFolder, opened, puppet } from "../../support/perl.ts";

const { signal } = new AbortController();
afterEach(() => {
  vi.useRealTimers();
});

needing(hasPerl, "perl on Linux").describe("a start", () => {
  const openedWith = async (environment: Record<string, string>) => {
    const workdir = await newFolder();
    const perl = await openPerl(childShell(workdir, environment).open, workdir, signal);
    perl?.close(new Error("the test is over"));
    return perl;
  };
  const pathWith = async (script: string) => {
    const folder = await newFolder();
    await writeFile(join(folder, "perl"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { PATH: `${folder}:/usr/bin:/bin` };
  };

  test("is none without a perl, or with one that does not work", async () => {
    expect(await openedWith({ PATH: await newFolder() })).toBeUndefined();
    for (const script of [
      "exit 3",
      "echo hello; exec cat",
      "printf '\\0\\0\\0\\5hello'; exec cat",
      "exec /nowhere",
    ])
      expect(await openedWith(await pathWith(script))).toBeUndefined();
    expect(await openPerl(childShell("/").open, "/nowhere/at/all", signal)).toBeUndefined();
  });

  test("does not mind what the image has set for other programs", async () => {
    const { perl, backend } = await opened({
      ...{ PERL5OPT: "-Mnonsense", PERL5LIB: "/nowhere", PERL_UNICODE: "SDA", PERLIO: ":utf8" },
      ...{ LC_ALL: "de_DE.UTF-8", ENV: "/nowhere" },
    });
    const bytes = Buffer.from([0xff, 0xc3, 0xa9, 0x0d, 0x0a, 0x00]);
    await perl.write("é", bytes, signal);
    expect((await readAll(backend, "é")).equals(bytes)).toBe(true);
  });

  test("is given up when it is cancelled, or when no shell can be opened", async () => {
    const abort = new AbortController();
    const starting = openPerl(puppet({ greets: false }).open, "/workspace", abort.signal);
    abort.abort(new Error("enough"));
    await expect(starting).rejects.toThrow("enough");
    const fails = () => Promise.reject(new AppError("unavailable", "no engine"));
    await expect(openPerl(fails, "/workspace", signal)).rejects.toThrow("no engine");
  });

  test("waits five seconds for a word", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const silent = puppet({ greets: false });
    const starting = openPerl(silent.open, "/workspace", signal);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await starting).toBeUndefined();
    expect(silent.isClosed()).toBe(true);
  });
});

needing(hasPerl, "perl on Linux").describe("a helper", () => {
  test("hundreds of operations at once all get their own answer", async () => {
    const { perl, backend } = await opened();
    const bodies = Array.from({ length: 300 }, (_, index) => `${index}-`.repeat(100 + index * 10));
    await Promise.all(bodies.map((body, index) => perl.write(`f${index}`, Buffer.from(body), signal)));
    const read = await Promise.all(bodies.map((_, index) => readAll(backend, `f${index}`)));
    expect(read.map(String)).toEqual(bodies);
  });

  test("whoever waits when the helper dies is told, and so is who comes after", async () => {
    const { perl, child } = await opened();
    await perl.write("large", Buffer.alloc(400_000), signal);
    const reading = perl.read("large", {}, signal)[Symbol.asyncIterator]();
    await reading.next();
    child.kill("SIGSTOP");
    const waiting = [perl.stat(".", signal), perl.list(".", signal), reading.next()].map(lost);
    child.kill("SIGKILL");
    await Promise.all(waiting);
    expect(await perl.lost).toBeInstanceOf(SandboxLostError);
    await lost(perl.stat(".", signal));
    await lost(perl.write("large", Buffer.from("x"), signal));
  });

  test("ends with its channel, and sleeps until then", async () => {
    const { perl, child } = await opened();
    await perl.stat(".", signal);
    const state = async () =>
      /^State:\s+(\S)/m.exec(await readFile(`/proc/${child.pid}/status`, "utf8"))?.[1];
    await expect.poll(state).toBe("S");
    const exited = once(child, "exit");
    perl.close(new Error("idle"));
    await exited;
    expect((await perl.lost).cause).toEqual(new Error("idle"));
  });
});
