// What every backend promises of paths: nothing outside of its workspace is reached.

import { expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { execute, names, readAll, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function paths(it: It): void {
  test.each([
    "with space",
    "new\nline",
    "quote'\"`quote",
    "$(touch gone) ; rm -rf * & |",
    "-rf",
    "back\\slash",
    "ünïcödé 漢字 🧵",
    "…",
    ".hidden",
    "*?[a]{b,c}",
  ])("treats %j like any other name", async (name) => {
    const path = `names/${name}/${name}`;
    await it().write(path, Buffer.from(name), signal);
    expect(String(await readAll(it(), path))).toBe(name);
    expect(await names(it(), "names")).toContain(name);
    expect(await it().stat(path, signal)).toMatchObject({ path: `${it().workdir}/${path}`, type: "file" });
    await it().remove(`names/${name}`, signal);
    expect(await names(it(), "names")).not.toContain(name);
  });

  test("relative and absolute paths lead to the same file", async () => {
    await it().write(`${it().workdir}/./same/../same/file`, Buffer.from("one"), signal);
    expect(String(await readAll(it(), "same/file"))).toBe("one");
    expect((await it().stat("./same//file", signal)).path).toBe(`${it().workdir}/same/file`);
  });

  test.each(["..", "../outside", "a/../../outside", "/etc/passwd", "/", "/workspaces"])(
    "refuses %j, which is outside",
    async (path) => {
      for (const attempt of everything(it(), path)) await refuses(attempt, "backend_refused", "workspace");
    },
  );

  test.each([
    ["", "empty"],
    ["a\0b", "NUL"],
    ["n".repeat(256), "too long"],
    ["d/".repeat(2500), "too long"],
  ])("explains the error in an invalid path (%#)", async (path, fault) => {
    for (const attempt of everything(it(), path)) await refuses(attempt, "invalid_request", fault);
  });

  test("no operation follows a link out of the workspace", async () => {
    await execute(
      it(),
      `mkdir -p links && cd links && ln -s /etc/passwd file && ln -s /etc folder && ln -s / root &&
       ln -s ../../../../../../../../etc/passwd climbing && ln -s /nowhere/at/all dangling && ln -s file chained`,
    );
    for (const path of [
      "links/file",
      "links/climbing",
      "links/chained",
      "links/folder/passwd",
      "links/root/etc/passwd",
    ])
      for (const attempt of [...everything(it(), path)].slice(0, -1))
        await refuses(attempt, "backend_refused", "link");
    await refuses(() => it().write("links/folder/new", Buffer.from("x"), signal), "backend_refused", "link");
    await refuses(
      () => it().write("links/root/tmp/a/b", Buffer.from("x"), signal),
      "backend_refused",
      "link",
    );
    await refuses(() => it().write("links/dangling", Buffer.from("x"), signal), "backend_refused", "link");
    await refuses(() => it().remove("links/folder/passwd", signal), "backend_refused", "link");
    expect(await it().grep("root", "links", undefined, signal)).toEqual({ matches: [], truncated: false });
    expect((await it().glob("**/passwd", "links", signal)).matches).toEqual([]);
  });

  test("a link that stays inside the workspace is followed", async () => {
    await it().write("inside/real/file", Buffer.from("one"), signal);
    await execute(
      it(),
      `cd inside && ln -s real folder && ln -s real/file relative && ln -s "$PWD/real/file" absolute`,
    );
    for (const path of ["inside/folder/file", "inside/relative", "inside/absolute"])
      expect(String(await readAll(it(), path))).toBe("one");
    await it().write("inside/relative", Buffer.from("two"), signal);
    await it().edit("inside/absolute", "two", "three", signal);
    await it().write("inside/folder/other", Buffer.from("new"), signal);
    expect(String(await readAll(it(), "inside/real/file"))).toBe("three");
    expect(await names(it(), "inside/real")).toEqual(["file", "other"]);
    const links = (await it().list("inside", signal)).filter(({ type }) => type === "symlink");
    expect(links.map(({ path }) => path.split("/").at(-1))).toEqual(["absolute", "folder", "relative"]);
  });

  test("refuses circular links", async () => {
    await execute(it(), "mkdir -p circle && ln -s b circle/a && ln -s a circle/b && ln -s . circle/self");
    await refuses(() => readAll(it(), "circle/a"), "backend_refused", "links");
    expect((await it().glob("**/x", "circle", signal)).matches).toEqual([]);
  });
}

/** Every way to touch a path; the last one removes it. */
function everything(backend: Backend, path: string): (() => Promise<unknown>)[] {
  return [
    () => backend.stat(path, signal),
    () => readAll(backend, path),
    () => backend.write(path, Buffer.from("x"), signal),
    () => backend.edit(path, "root", "x", signal),
    () => backend.list(path, signal),
    () => backend.glob("*", path, signal),
    () => backend.grep("root", path, undefined, signal),
    () => backend.remove(path, signal),
  ];
}
