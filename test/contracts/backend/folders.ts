// What every backend promises of folders.

import { expect, test } from "vitest";
import { execute, names, readAll, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function folders(it: It): void {
  test("lists a folder's own entries by name, with their kind", async () => {
    await it().write("listed/b", Buffer.from("four"), signal);
    await it().write("listed/c/deep", Buffer.from("x"), signal);
    await execute(
      it(),
      "ln -s /nowhere listed/a; mkfifo listed/d; TZ=UTC0 touch -t 200102030405.06 listed/b",
    );
    const listed = await it().list("listed", signal);
    expect(listed.map(({ path, type }) => [path, type])).toEqual([
      [`${it().workdir}/listed/a`, "symlink"],
      [`${it().workdir}/listed/b`, "file"],
      [`${it().workdir}/listed/c`, "directory"],
      [`${it().workdir}/listed/d`, "other"],
    ]);
    expect(listed[1]).toMatchObject({ size: 4, modified_at: "2001-02-03T04:05:06.000Z" });
    expect((await it().stat(".", signal)).type).toBe("directory");
  });

  test("deletes a file, a link, and a folder with its contents", async () => {
    await it().write("removed/keep", Buffer.from("kept"), signal);
    await it().write("removed/file", Buffer.from("x"), signal);
    await execute(
      it(),
      "cd removed && ln -s keep link && ln -s / way-out && mkdir -p folder/a/b && ln -s ../../keep folder/a/l && mkfifo folder/p && chmod 500 folder/a folder",
    );
    for (const name of ["file", "link", "way-out", "folder"]) await it().remove(`removed/${name}`, signal);
    expect(await names(it(), "removed")).toEqual(["keep"]);
    expect(String(await readAll(it(), "removed/keep"))).toBe("kept");
    await refuses(() => it().remove("removed/file", signal), "not_found", "`removed/file`");
    await refuses(() => it().remove(".", signal), "backend_refused", "workspace itself");
  });
}
