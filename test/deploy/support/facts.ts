// What settings of a deployment must agree with: the image, and the variables that the server reads.

import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

const dockerfile = readFileSync("Dockerfile", "utf8");
const [, lastStage = ""] = dockerfile.split(/^FROM .*\n(?![\s\S]*^FROM )/m);
const said = (instruction: RegExp) => instruction.exec(lastStage)?.[1] ?? "";

/** What the Dockerfile says of the image. */
export const IMAGE_FACTS = {
  env: Object.fromEntries(
    said(/^ENV (.*)$/m)
      .split(" ")
      .map((pair) => pair.split("=")),
  ) as Readonly<Record<string, string>>,
  user: Number(said(/^USER (\d+):/m)),
  group: Number(said(/^USER \d+:(\d+)$/m)),
  volume: said(/^VOLUME (.*)$/m),
  port: Number(said(/^EXPOSE (\d+)$/m)),
};

/** The variables of .env.example, which test/server/config/env-example.test.ts holds against the sources. */
const READ = new Set(
  [...readFileSync(".env.example", "utf8").matchAll(/^# ([A-Z0-9_]+)=/gm)].map(([, name]) => name),
);

/** Those that the server does not read. */
export const unread = (env: Readonly<Record<string, string>>): string[] =>
  Object.keys(env).filter((name) => !READ.has(name));

/** That a server with this environment, on top of the image's, would start; `agents` is its agents file on this machine. */
export async function expectStartable(env: Readonly<Record<string, string>>, agents: string): Promise<void> {
  const here = { AGENTS_FILE: agents, DATA_DIR: await temporaryFolder() };
  const check = skein(["config", "check"], { ...IMAGE_FACTS.env, ...env, ...here });
  const code = await check.exited;
  expect({ code, output: check.output() }).toEqual({ code: 0, output: "ok: 1 agent\n" });
}
