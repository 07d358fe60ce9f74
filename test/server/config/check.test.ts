import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { checkConfig } from "../../../src/server/config/check.ts";

const definitions = [{ name: "a" }, { name: "b" }];

test("reports the number of agents if there are no errors", async () => {
  const read: string[] = [];
  const report = await checkConfig({ AGENTS_FILE: "mine.yaml" }, async (file) => {
    read.push(file);
    return { definitions, warnings: ["mine.yaml:1:1: no key"] };
  });
  expect(read).toEqual(["mine.yaml"]);
  expect(report).toEqual({ problems: [], warnings: ["mine.yaml:1:1: no key"], summary: "ok: 2 agents" });
});

test("reports the errors of the settings and of the agents together", async () => {
  const report = await checkConfig({ PORT: "x" }, async () => {
    throw new AppError("config_invalid", "agents.yaml:1:1: a\nagents.yaml:2:1: b");
  });
  expect(report).toEqual({
    problems: ["environment: PORT: `x` must be a whole number", "agents.yaml:1:1: a", "agents.yaml:2:1: b"],
    warnings: [],
    summary: "3 problems",
  });
});

test("does not mistake its own failure for a configuration error", async () => {
  const failing = checkConfig({}, async () => {
    throw new TypeError("oops");
  });
  await expect(failing).rejects.toThrow("oops");
});
