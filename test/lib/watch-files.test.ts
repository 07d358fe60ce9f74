import { appendFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { watchFiles } from "../../src/lib/watch-files.ts";
import { temporaryFolder } from "../support/server.ts";

const PACE = { everyMs: 10, settledMs: 100 };

/** A folder with the files `a` and `b`, watched once the first look is over. */
async function watched(
  files: (dir: string) => readonly string[] = (dir) => [join(dir, "a"), join(dir, "b")],
) {
  const dir = await temporaryFolder();
  for (const name of ["a", "b"]) await writeFile(join(dir, name), name);
  let looks = 0;
  const counted = () => {
    looks++;
    return files(dir);
  };
  let changes = 0;
  const watch = watchFiles(counted, async () => void changes++, PACE);
  onTestFinished(() => watch.close());
  await expect.poll(() => looks).toBeGreaterThan(1);
  const further = async () => {
    const before = looks;
    await expect.poll(() => looks).toBeGreaterThan(before + 3);
  };
  return { dir, watch, changes: () => changes, further };
}

describe("a change is reported", () => {
  // Each is complete before the next look: what takes longer than files have to settle is two changes.
  test.each<[string, (dir: string) => void]>([
    ["when a file is written in place", (dir) => appendFileSync(join(dir, "a"), "more")],
    ["when it is written with as many characters", (dir) => writeFileSync(join(dir, "a"), "x")],
    [
      "when another file takes its name",
      (dir) => {
        writeFileSync(join(dir, "new"), "a");
        renameSync(join(dir, "new"), join(dir, "a"));
      },
    ],
    ["when it goes", (dir) => rmSync(join(dir, "b"))],
  ])("%s, once", async (_, change) => {
    const { dir, changes, further } = await watched();
    expect(changes()).toBe(0);
    change(dir);
    await expect.poll(() => changes()).toBe(1);
    await further();
    expect(changes()).toBe(1);
  });

  test("if a link in its path changes its target, as in a config map", async () => {
    const { dir, changes } = await watched((dir) => [join(dir, "data", "a")]);
    for (const name of ["one", "two"]) {
      await mkdir(join(dir, name));
      await writeFile(join(dir, name, "a"), "same");
      await symlink(name, join(dir, `data-${name}`));
      await rename(join(dir, `data-${name}`), join(dir, "data"));
      await expect.poll(() => changes()).toBe(name === "one" ? 1 : 2);
    }
  });
});

test("only once it is complete", async () => {
  const { dir, changes } = await watched();
  const until = Date.now() + 300;
  let told = 0;
  while (Date.now() < until) {
    await appendFile(join(dir, "a"), "x");
    told = Math.max(told, changes());
  }
  await expect.poll(() => changes()).toBe(told + 1);
});

test("a change while another one is being reported is reported too", async () => {
  const file = join(await temporaryFolder(), "a");
  await writeFile(file, "a");
  let [looks, changes] = [0, 0];
  const files = () => {
    looks++;
    return [file];
  };
  const onChange = async () => {
    if (++changes === 1) await appendFile(file, "more");
  };
  const watch = watchFiles(files, onChange, PACE);
  onTestFinished(() => watch.close());
  await expect.poll(() => looks).toBeGreaterThan(1);
  await appendFile(file, "more");
  await expect.poll(() => changes).toBe(2);
});

test("a file that is created during a report, and watched only since, is reported too", async () => {
  const dir = await temporaryFolder();
  const [first, later] = [join(dir, "a"), join(dir, "b")];
  await writeFile(first, "a");
  let [looks, changes] = [0, 0];
  const files = () => {
    looks++;
    return changes === 0 ? [first] : [first, later];
  };
  const onChange = async () => {
    if (++changes === 1) await writeFile(later, "b");
  };
  const watch = watchFiles(files, onChange, PACE);
  onTestFinished(() => watch.close());
  await expect.poll(() => looks).toBeGreaterThan(1);
  await appendFile(first, "more");
  await expect.poll(() => changes).toBe(2);
});

test("nothing is reported after closing, or for other files", async () => {
  const { dir, watch, changes, further } = await watched((dir) => [join(dir, "a")]);
  await writeFile(join(dir, "b"), "other");
  await further();
  watch.close();
  await writeFile(join(dir, "a"), "other");
  await new Promise((resolve) => setTimeout(resolve, 5 * PACE.settledMs));
  expect(changes()).toBe(0);
});
