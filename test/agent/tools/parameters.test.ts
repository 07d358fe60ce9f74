// The parameters of tools that strangers describe, as models are shown them.

import { describe, expect, test } from "vitest";
import { usableParameters } from "../../../src/agent/tools/parameters.ts";

const text = { type: "string" };
/** An object in an object, `levels` times. */
const nested = (levels: number): object =>
  levels === 0 ? text : { properties: { inner: nested(levels - 1) } };
const shown = (schema: unknown) => {
  const usable = usableParameters(schema);
  return "fault" in usable ? usable.fault : usable.parameters;
};

describe("parameters with alternatives at the top", () => {
  const branches = [
    { type: "object", properties: { kind: { const: "a" }, a: text }, required: ["kind", "a"] },
    { type: "object", properties: { kind: { const: "b" }, b: text }, required: ["kind"] },
  ];
  const merged = {
    type: "object",
    properties: { kind: { anyOf: [{ const: "a" }, { const: "b" }] }, a: text, b: text },
    required: ["kind"],
  };

  test.each([
    ["anyOf", { anyOf: branches }, merged],
    ["oneOf beside a type", { type: "object", oneOf: branches }, merged],
    [
      "anyOf of what is required",
      { type: "object", properties: { a: text, b: text }, anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      { type: "object", properties: { a: text, b: text } },
    ],
    [
      "allOf",
      {
        allOf: [
          { properties: { a: text }, required: ["a"] },
          { properties: { b: text }, required: ["b"] },
        ],
      },
      { type: "object", properties: { a: text, b: text }, required: ["a", "b"] },
    ],
    [
      "a reference",
      { $ref: "#/$defs/Item", $defs: { Item: { type: "object", properties: { a: text } } } },
      {
        type: "object",
        properties: { a: text },
        $defs: { Item: { type: "object", properties: { a: text } } },
      },
    ],
  ])("list the properties of all of them: %s", (_, schema, expected) => {
    expect(shown(schema)).toEqual(expected);
  });

  test("are checked against the whole schema", () => {
    expect(usableParameters({ anyOf: branches })).toMatchObject({ schema: { anyOf: branches } });
  });

  test("that refer to themselves are read without endless recursion", () => {
    const schema = { $ref: "#", allOf: [{ $ref: "#" }, { $ref: "#" }], properties: { a: text } };
    expect(shown(schema)).toMatchObject({ properties: { a: text } });
  });
});

test.each([
  [
    "a list of items",
    { type: "array", items: [text, { type: "number" }] },
    { type: "array", prefixItems: [text, { type: "number" }], items: {} },
  ],
  [
    "a list of items and no others",
    { type: "array", items: [text], additionalItems: false },
    { type: "array", prefixItems: [text], items: false },
  ],
  [
    "null from a server in Go",
    { type: "object", properties: { a: text }, required: null, description: null, enum: null, default: null },
    { type: "object", properties: { a: text }, default: null },
  ],
  [
    "an empty list from a server in PHP",
    { type: "object", properties: [], required: [] },
    { type: "object", required: [] },
  ],
  [
    "a name that is required twice",
    { type: "object", properties: { a: text }, required: ["a", "a"] },
    { type: "object", properties: { a: text }, required: ["a"] },
  ],
  ["a list of anything", { type: "array" }, { type: "array", items: {} }],
  [
    "limits of draft 4",
    { type: "number", minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
    { type: "number", exclusiveMinimum: 0, maximum: 9 },
  ],
])("%s is shown in the form of the current draft", (_, before, after) => {
  const schema = (p: unknown) => ({ type: "object", properties: { p, deep: { anyOf: [p] } } });
  expect(shown(schema(before))).toEqual(schema(after));
});

test.each([
  ["no schema", [], "are not a JSON Schema"],
  ["another type", { type: "string" }, 'must have "type": "object"'],
  ["deep nesting", nested(20), "are nested more than 32 deep"],
  ["an odd name", { properties: { "filter[id]": text } }, '"filter[id]"; use 1 to 64 characters'],
  [
    "a name that is too long",
    { properties: { ["x".repeat(65)]: text } },
    "a property name that providers do not accept",
  ],
  ["an odd name in an alternative", { anyOf: [{ properties: { "a b": text } }] }, '"a b"'],
  ["a type of another language", { properties: { a: { type: "float" } } }, "have an invalid `type`"],
  ["a number for a schema", { properties: { a: 5 } }, "contain a value that is not a JSON Schema"],
  ["a schema elsewhere", { properties: { a: { $ref: "https://example.com/a" } } }, "have an invalid `$ref`"],
])("explains the error in %s", (_, schema, fault) => {
  expect(shown(schema)).toContain(fault);
});
