import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { dataOf, textSeen } from "../../support/drain.ts";
import { serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

async function init(args: readonly string[], cwd: string) {
  const { exited, output } = skein(["init", ...args], {}, cwd);
  return { code: await exited, said: output() };
}

test("a new project runs: its agent uses its plugin's tool and hook, without a key", async () => {
  const parent = await temporaryFolder();
  const { code, said } = await init(["my agents"], parent);
  expect([code, said]).toEqual([
    0,
    expect.stringMatching(
      / {2}cd 'my agents' && npm install\n {2}npm start\n {2}npx skein chat[\s\S]*\n\npackage\.json installs skein from \//,
    ),
  ]);
  const dir = join(parent, "my agents");
  expect((await readdir(dir)).toSorted()).toEqual([
    ...[".env.example", ".gitignore", "AGENTS.md", "README.md", "agents.yaml", "demo.yaml"],
    ...["my-plugin.ts", "package.json", "tsconfig.json"],
  ]);
  const { name, type, dependencies } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  // This is a clone, which no registry has.
  expect({ name, type, dependencies }).toEqual({
    name: "my-agents",
    type: "module",
    dependencies: { skein: `file:${resolve(".")}` },
  });

  // As `npm install` does it.
  await mkdir(join(dir, "node_modules"));
  await symlink(resolve("."), join(dir, "node_modules", "skein"));
  const check = skein(["config", "check"], {}, dir);
  expect([await check.exited, check.output()]).toEqual([0, "ok: 1 agent\n"]);
  const { url } = await serving(skein(["serve"], { PORT: "0" }, dir));
  const events = await (await post(`${url}/threads/t/runs`, { input: "Roll two dice." })).ended();
  expect(dataOf(events, "on_tool_end")).toMatchObject([{ output: expect.stringMatching(/^[1-6], [1-6]!$/) }]);
  expect(textSeen(events)).toMatch(/^I roll two dice\. Done\./);
  expect((await readdir(dir)).includes("data")).toBe(true);
});

test("nothing is overwritten or added next to existing files", async () => {
  const dir = await temporaryFolder();
  await writeFile(join(dir, "agents.yaml"), "mine");
  await writeFile(join(dir, ".gitignore"), "mine, too");
  const { code, said } = await init([], dir);
  expect(code).toBe(2);
  expect(said).toMatch(/already contains `agents\.yaml`, `\.gitignore`; nothing was written/);
  expect((await readdir(dir)).toSorted()).toEqual([".gitignore", "agents.yaml"]);
  expect(await readFile(join(dir, "agents.yaml"), "utf8")).toBe("mine");
});

test("in the current folder, the first command is npm install", async () => {
  const dir = await temporaryFolder();
  await mkdir(join(dir, ".git"));
  expect(await init([], dir)).toMatchObject({
    code: 0,
    said: expect.stringMatching(/Next:\n\n {2}npm install\n {2}npm start\n/),
  });
});
