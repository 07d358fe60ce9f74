// The documentation as a site. A dead link or a page that no list has fails its build.

import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SITE = fileURLToPath(new URL("../../packages/site/", import.meta.url));

test("the documentation builds as a site that can be searched", () => {
  const { status, stdout, stderr } = spawnSync("npm", ["run", "build"], { cwd: SITE, encoding: "utf8" });
  expect(status, stdout + stderr).toBe(0);
  expect(
    globSync("dist/{start,guides,reference,concepts,contributing}/index.html", { cwd: SITE }),
  ).toHaveLength(5);
  const [index = ""] = globSync("dist/assets/chunks/@localSearchIndexroot*.js", { cwd: SITE });
  const words = readFileSync(`${SITE}${index}`, "utf8");
  for (const word of ["summarization", "langgraph", "retention"]) expect(words).toContain(word);
  expect(readFileSync(`${SITE}dist/llms.txt`, "utf8")).toContain(
    "- [Run Skein](/start/run-skein): In ten minutes ",
  );
}, 600_000);
