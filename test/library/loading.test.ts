import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

/** Prints the packages that a program loads with the library. */
const PROGRAM = `
import { registerHooks } from "node:module";
const packages = new Set();
registerHooks({
  load(url, context, next) {
    const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
    if (name) packages.add(name);
    return next(url, context);
  },
});
await import(${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)});
console.log(JSON.stringify([...packages]));
`;

test("the library loads no provider, no database client and no server before it needs them", () => {
  const told = execFileSync(process.execPath, ["--input-type=module", "--eval", PROGRAM], {
    encoding: "utf8",
  });
  const packages: string[] = JSON.parse(told);
  expect(packages).toContain("zod");
  for (const name of ["@anthropic-ai/sdk", "openai", "ioredis", "dockerode", "fastify", "jose"])
    expect(packages).not.toContain(name);
});
