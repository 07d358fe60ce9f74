import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { checkConfig } from "../../../src/server/config/check.ts";

const definitions = [{ name: "a" }, { name: "b" }];

test("says how many agents there are when all is well", async () => {
  const read: string[] = [];
  const report = await checkConfig({ AGENTS_FILE: "mine.yaml" }, async (file) => {
    read.push(file);
    return { definitions, warnings: ["mine.yaml:1:1: no key"] };
  });
  expect(read).toEqual(["mine.yaml"]);
  expect(report).toEqual({ problems: [], warnings: ["mine.yaml:1:1: no key"], summary: "ok: 2 agents" });
});

test("tells the problems of the settings and of the agents together", async () => {
  const report = await checkConfig({ PORT: "x" }, async () => {
    throw new AppError("config_invalid", "agents.yaml:1:1: a\nagents.yaml:2:1: b");
  });
  expect(report).toEqual({
    problems: ["environment: PORT: `x` must be a whole number", "agents.yaml:1:1: a", "agents.yaml:2:1: b"],
    warnings: [],
    summary: "3 problems",
  });
});

test("does not take a failure of its own for a problem of the configuration", async () => {
  const failing = checkConfig({}, async () => {
    throw new TypeError("oops");
  });
  await expect(failing).rejects.toThrow("oops");
});
