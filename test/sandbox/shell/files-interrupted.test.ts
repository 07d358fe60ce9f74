import { expect, test } from "vitest";
import type { AppError } from "../../../src/agent/core/errors.ts";
import { clearStaging } from "../../../src/sandbox/shell/files.ts";
import { readAll, refuses } from "../../support/backend.ts";
import { backendOn, describeFiles, from, losing, repeating } from "../../support/shell-files.ts";

const { signal } = new AbortController();

describeFiles((opened) => {
  test("repeating a repeatable operation has no further effect", async () => {
    const { runner, workdir, staged } = await opened();
    const backend = backendOn(repeating(runner), workdir);
    await backend.write("d/text", Buffer.from("it's\n\n"), signal);
    await backend.write("d/bytes", Buffer.from([0, 255, 10]), signal);
    await backend.write("d/large", Buffer.alloc(3_000_000, 1), signal);
    await backend.write("d/streamed", from(Buffer.alloc(2_000_000, 2), Buffer.from("end")), signal);
    expect(String(await readAll(backend, "d/text"))).toBe("it's\n\n");
    expect([...(await readAll(backend, "d/bytes"))]).toEqual([0, 255, 10]);
    expect((await readAll(backend, "d/large")).equals(Buffer.alloc(3_000_000, 1))).toBe(true);
    expect((await readAll(backend, "d/streamed")).length).toBe(2_000_003);
    expect((await backend.list("d", signal)).length).toBe(4);
    expect((await backend.grep("it", ".", undefined, signal)).matches).toHaveLength(1);
    await backend.remove("d", signal);
    expect(await backend.list(".", signal)).toEqual([]);
    expect(await staged()).toBe("");
  });

  test("if the sandbox is lost at any moment, a write is complete or reports that nothing changed", async () => {
    const { backend, runner, workdir, staged } = await opened();
    const [before, after] = [Buffer.from("before"), Buffer.alloc(1_100_000, 7)];
    for (const when of ["before", "after"] as const)
      for (let count = 1; count <= 6; count++) {
        await backend.write("f", before, signal);
        const lossy = backendOn(losing(runner, count, when), workdir);
        await lossy.write("f", after, signal);
        expect((await readAll(backend, "f")).equals(after)).toBe(true);

        await backend.write("f", before, signal);
        const streaming = backendOn(losing(runner, count, when), workdir);
        const error = await streaming.write("f", from(after), signal).then(
          () => undefined,
          (reason: AppError) => reason,
        );
        expect((await readAll(backend, "f")).equals(error ? before : after)).toBe(true);
        if (error) expect(error.message).toContain("lost while `f` was written; nothing was changed");
        expect(await staged()).toBe("");
      }
  });

  test("if the sandbox is lost at any moment, a removal is completed", async () => {
    const { backend, runner, workdir, staged } = await opened();
    for (let count = 1; count <= 2; count++)
      for (const when of ["before", "after"] as const)
        for (const path of ["folder", "folder/file"]) {
          await backend.write("folder/file", Buffer.from("x"), signal);
          await backendOn(losing(runner, count, when), workdir).remove(path, signal);
          await refuses(() => backend.stat(path, signal), "not_found", path);
          // What is lost while it is erased is removed as well, but still to be erased.
          if (count === 1) expect(await staged()).toBe("");
        }
  });

  test("a file that is replaced while it is read is read to its own end", async () => {
    const { backend, staged } = await opened();
    await backend.write("f", Buffer.alloc(3_000_000, 1), signal);
    let size = 0;
    for await (const chunk of backend.read("f", {}, signal)) {
      if (size === 0) await backend.write("f", Buffer.alloc(4_000_000, 2), signal);
      size += chunk.length;
      expect(chunk.every((byte) => byte === 1)).toBe(true);
    }
    expect(size).toBe(3_000_000);
    expect(await staged()).toBe("");
  });

  test("if no link can be created, a file that is replaced while it is read is not mixed with its successor", async () => {
    const { backend, sh } = await opened();
    await sh("rm -rf .skein; echo mine > .skein; head -c 3000000 /dev/zero > f");
    expect((await readAll(backend, "f")).equals(Buffer.alloc(3_000_000))).toBe(true);
    const read = async () => {
      for await (const _ of backend.read("f", {}, signal)) await sh("echo next > g; mv g f");
    };
    await refuses(read, "backend_failed", "`f` was replaced");
    await refuses(() => backend.write("f", Buffer.from("x"), signal), "backend_refused", "`.skein`");
    await sh("mkdir d; echo x > d/f");
    await backend.remove("d", signal);
    expect(String(await readAll(backend, ".skein"))).toBe("mine\n");
    expect((await backend.list(".", signal)).map(({ path }) => path.split("/").at(-1))).toEqual([
      ".skein",
      "f",
    ]);
  });

  test("a reader that leaves, or is cancelled, leaves nothing behind", async () => {
    const { backend, staged } = await opened();
    await backend.write("f", Buffer.alloc(3_000_000, 1), signal);
    for await (const _ of backend.read("f", {}, signal)) break;
    const abort = new AbortController();
    const read = async () => {
      for await (const _ of backend.read("f", {}, abort.signal)) abort.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
    expect(await staged()).toBe("");
  });

  test("a write that is cancelled, or whose source fails, leaves nothing behind", async () => {
    const { backend, staged } = await opened();
    const abort = new AbortController();
    async function* silent() {
      yield Buffer.alloc(2_500_000);
      abort.abort(new Error("enough"));
      await new Promise(() => {});
    }
    await expect(backend.write("f", silent(), abort.signal)).rejects.toThrow("enough");
    async function* broken() {
      yield Buffer.alloc(2_500_000);
      throw new Error("the line went dead");
    }
    await expect(backend.write("f", broken(), signal)).rejects.toThrow("the line went dead");
    await refuses(() => backend.stat("f", signal), "not_found", "`f`");
    expect(await staged()).toBe("");
  });

  test("staging is hidden, and recreated if it was removed", async () => {
    const { backend, workdir, sh, staged } = await opened();
    await backend.write("f", Buffer.from("x"), signal);
    expect(await sh("ls -ld .skein/staging | cut -c1-10")).toBe("drwx------\n");
    expect((await backend.list(".", signal)).map(({ path }) => path.split("/").at(-1))).toEqual(["f"]);
    await sh("echo x > .skein/staging/x");
    for (const pattern of ["**", ".skein/**", ".skein/staging/*"])
      expect((await backend.glob(pattern, ".", signal)).matches).not.toContain(`${workdir}/.skein/staging/x`);
    expect((await backend.glob("*", ".skein", signal)).matches).toEqual([]);
    for (const path of [
      ".skein/staging",
      ".skein/staging/x",
      "./.skein//staging/x/y",
      ".skein/home/.gitconfig",
    ])
      await refuses(() => backend.write(path, Buffer.from("y"), signal), "backend_refused", "another path");
    await backend.write(".skein/results/r", Buffer.from("y"), signal);
    expect((await backend.glob("r", ".skein", signal)).matches).toEqual([`${workdir}/.skein/results/r`]);
    await sh("chmod 000 .skein/staging");
    await backend.write("f", Buffer.from("x"), signal);
    await backend.remove(".skein", signal);
    await sh("mkdir -p .skein; ln -s /tmp .skein/staging");
    await refuses(() => backend.write("f", Buffer.from("y"), signal), "backend_refused", ".skein");
    await backend.remove(".skein", signal);
    await backend.write("f", Buffer.from("x"), signal);
    expect(await staged()).toBe("");
  });

  test("clearing staging deletes the files of lost operations, but not those of running ones", async () => {
    const { backend, runner, workdir, sh, staged } = await opened();
    await clearStaging(runner, workdir, signal);
    await backend.write("f", Buffer.from("x"), signal);
    const now = Math.floor(Date.now() / 1000);
    await sh(
      `cd .skein/staging; touch -- ${now - 100}-a ${now}-b strange .hidden -rf; mkdir -p ${now - 100}-c/d; chmod 500 ${now - 100}-c; ln -s / ${now - 100}-d`,
    );
    await clearStaging(runner, workdir, signal);
    await expect.poll(staged).toBe(`${now}-b\n`);
    expect((await backend.list(".", signal)).length).toBe(1);
  });
});
