import { expect, test } from "vitest";
import type { Hook } from "../../../src/agent/core/hook.ts";
import type { SystemBlock } from "../../../src/agent/core/model.ts";
import { inOrder } from "../../../src/agent/core/model-call.ts";
import { play } from "../../support/agent.ts";
import { lineage } from "../hooks/family.ts";
import { listening } from "../hooks/listening.ts";

const block = (id: string, cache: SystemBlock["cache"] = "static"): SystemBlock => ({ id, text: id, cache });
const idsOf = (blocks: readonly SystemBlock[] | undefined) => blocks?.map(({ id }) => id);
const adding = (...blocks: SystemBlock[]): Hook => ({
  name: "adding",
  modifyRequest: (request) => ({ ...request, system: [...request.system, ...blocks] }),
});

test("constant blocks precede blocks that rarely change, which precede blocks that often change", () => {
  const mixed = [block("c", "dynamic"), block("a"), block("b", "semi"), block("d", "dynamic"), block("e")];
  expect(idsOf(inOrder(mixed))).toEqual(["a", "e", "b", "c", "d"]);
});

test("a block can replace another, and blocks of one place keep their order", () => {
  const header = { ...block("header"), place: "identity" };
  const memory = { ...block("memory"), place: "instructions" };
  const blocks = [block("notes_protocol"), memory, block("skills"), header, block("identity"), block("x")];
  expect(idsOf(inOrder(blocks))).toEqual(["header", "identity", "notes_protocol", "memory", "x", "skills"]);
});

test("the blocks of a prompt have a fixed order, regardless of their source", async () => {
  const { model, asked } = listening([]);
  const hooks = [
    adding(block("available_agents", "dynamic"), block("memory", "semi"), block("clock", "dynamic")),
    adding(block("project_context"), block("available_skills", "semi"), block("skills", "semi")),
    adding(block("notes_protocol"), block("completion_protocol"), block("behavioral_constraints")),
  ];
  await play({ model, hooks, system: [block("rules"), block("identity"), block("instructions")] });
  expect(idsOf(asked[0]?.system)).toEqual([
    ...["identity", "completion_protocol", "notes_protocol", "rules", "instructions"],
    ...["behavioral_constraints", "project_context", "skills", "available_skills", "memory"],
    ...["clock", "available_agents"],
  ]);
});

test("a subagent's prompt contains its name, after the part that all its instances share", async () => {
  const { model, asked } = listening([]);
  const system = [block("identity"), block("instructions")];
  const hooks = [adding(block("memory", "semi"), block("available_agents", "dynamic"))];
  await play({ model, hooks, system, input: { lineage: lineage("coder-parse-1") } });
  expect(idsOf(asked[0]?.system)).toEqual([
    ...["identity", "instructions", "memory", "identity", "available_agents"],
  ]);
  expect(asked[0]?.system[3]).toEqual({
    id: "identity",
    text: "<identity>\nYou are `coder-parse-1`, an agent that works for another agent.\n</identity>",
    cache: "dynamic",
  });
});
