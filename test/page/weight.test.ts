import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const BUILT = new URL("../../dist/page/", import.meta.url);

test("the first view weighs at most 70 kB: its scripts and its style, compressed", async () => {
  const html = await readFile(new URL("index.html", BUILT), "utf8");
  const files = [...html.matchAll(/"page\/([^"]+\.(?:js|css))"/g)].map(([, name = ""]) => name);
  const sizes = await Promise.all(
    files.map(async (name) => (await stat(fileURLToPath(new URL(`${name}.gz`, BUILT)))).size),
  );
  expect(files.some((name) => name.endsWith(".css"))).toBe(true);
  expect(files.length).toBeGreaterThan(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(70_000);
});
