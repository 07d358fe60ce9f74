// Arguments as the tool's schema wants them, where what the model wrote has one meaning only.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { coerceArguments } from "../../../src/agent/core/coerce-arguments.ts";
import { toolMessages } from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";

const item = { type: "object", properties: { id: { type: "integer" }, note: { type: "string" } } };
const parameters = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    flag: { type: "boolean" },
    list: { type: "array", items: { type: "string" } },
    items: { type: "array", items: { $ref: "#/$defs/item" } },
    map: { type: "object", additionalProperties: { type: "number" } },
    either: { type: ["string", "array"] },
    maybe: { anyOf: [{ type: "string" }, { type: "null" }] },
    nullable: { type: "integer", nullable: true },
    level: { enum: [1, 2, 3] },
    word: { type: "string", minLength: 1 },
    choice: { enum: ["a", "b"] },
    union: { anyOf: [{ type: "integer" }, item] },
    open: {},
  },
  required: ["text"],
  $defs: { item },
};

describe("arguments", () => {
  test.each([
    ["null for an optional parameter", { text: "a", count: null, list: null }, { text: "a" }],
    ["null in an element of a list", { items: [{ id: 1, note: null }] }, { items: [{ id: 1 }] }],
    ["a whole number as text", { count: "5" }, { count: 5 }],
    ["a number as text", { ratio: " -0.5 " }, { ratio: -0.5 }],
    ["a number of a choice as text", { level: "2" }, { level: 2 }],
    ["a boolean as text", { flag: "true" }, { flag: true }],
    ["a boolean as Python writes it", { flag: "False" }, { flag: false }],
    ["null as text", { count: "null", list: "None" }, {}],
    ["a list as text", { list: '["1", "b"]' }, { list: ["1", "b"] }],
    ["a list of maps as text, and numbers as text in it", { items: '[{"id": "7"}]' }, { items: [{ id: 7 }] }],
    ["a list with raw line ends as text", { list: '["a\nb"]' }, { list: ["a\nb"] }],
    ["a map as text", { map: '{"a": "1"}' }, { map: { a: 1 } }],
    [
      "a blank text for an optional parameter that takes none",
      { count: "", map: " ", word: "", choice: "" },
      {},
    ],
    ["a whole number or a boolean for a text", { text: 404, word: true }, { text: "404", word: "true" }],
    ["a map for a text", { text: { a: [1] } }, { text: '{\n  "a": [\n    1\n  ]\n}' }],
    ["a list of maps for a text", { text: [{}] }, { text: "[\n  {}\n]" }],
    ["a map where a number or a map is wanted", { union: '{"id": "3"}' }, { union: { id: 3 } }],
  ])("that contain %s are read as intended", (_, args, fitted) => {
    expect(coerceArguments(args, parameters)).toEqual(fitted);
  });

  test.each([
    ["null for a parameter that is required", { text: null }],
    ["a blank text for a parameter that takes it, or is required", { text: "", maybe: "", open: "" }],
    ["null where the schema takes it", { maybe: null, nullable: null, open: null }],
    ["a text where text is wanted", { text: "[1]", maybe: "null", list: ["1", "true"] }],
    ["a text where text or a list is wanted", { either: '["a"]' }],
    ["a text that is JSON of another kind", { count: "[1]", flag: "1", list: "5", ratio: "true" }],
    ["a fraction as text where a whole number is wanted", { count: "1.5" }],
    ["a text that is no JSON", { count: "five", list: "a, b" }],
    [
      "values of another kind that have several meanings",
      { text: ["ls", "-l"], word: 1.5, list: "a", flag: 1 },
    ],
    ["what the schema does not know", { other: null, open: "5" }],
  ])("that contain %s do not change", (_, args) => {
    expect(coerceArguments(args, parameters)).toBe(args);
  });

  test("are not checked against references that lead nowhere or in circles", () => {
    const odd = {
      type: "object",
      properties: { a: { $ref: "#/$defs/a" }, b: { $ref: "#/none" }, c: { $ref: "https://example.com" } },
      $defs: { a: { $ref: "#/$defs/a" } },
    };
    const args = { a: "1", b: null, c: "[]" };
    expect(coerceArguments(args, odd)).toBe(args);
  });

  test("match the schema in the thread, events, hooks and the tool", async () => {
    const seen: unknown[] = [];
    const look = defineTool({
      name: "look",
      description: "",
      parameters: z.object({ path: z.string().default("."), lines: z.int().optional() }),
      execute: (args, call) => {
        seen.push(args, call.args);
        return "seen";
      },
    });
    const { messages, events } = await play({
      tools: [look],
      script: [{ call: [{ tool: "look", args: { path: null, lines: "7" } }] }, { say: "ok" }],
    });
    expect(toolMessages(messages)).toMatchObject([{ content: "seen" }]);
    expect(seen).toEqual([{ path: ".", lines: 7 }, { lines: 7 }]);
    expect(dataOf(events, "on_tool_start")[0]?.args).toEqual({ lines: 7 });
    expect(messages.find(({ role }) => role === "assistant")).toMatchObject({
      tool_calls: [{ args: { lines: 7 } }],
    });
  });
});
