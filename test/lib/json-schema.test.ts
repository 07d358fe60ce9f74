import { beforeAll, describe, expect, test } from "vitest";
import {
  type JsonSchema,
  loadSchemaEngine,
  type SchemaCheck,
  type SchemaEngine,
} from "../../src/lib/untrusted-schema/index.ts";

let engine: SchemaEngine;
beforeAll(async () => {
  engine = await loadSchemaEngine();
});

async function compile(schema: unknown): Promise<SchemaCheck> {
  await engine.validate(schema);
  // `validate` refuses what is no schema.
  return engine.checker(schema as JsonSchema).check;
}

const WEATHER = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: "https://example.com/weather",
  title: "Weather",
  type: "object",
  properties: {
    city: { type: "string", minLength: 1, description: "Where." },
    unit: { enum: ["celsius", "fahrenheit"], default: "celsius" },
    days: { type: "array", items: { $ref: "#/$defs/day" }, uniqueItems: true },
  },
  required: ["city"],
  additionalProperties: false,
  $defs: { day: { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\d$", format: "date" } },
};

describe("a value", () => {
  test.each([
    { city: "Oslo" },
    { city: "Oslo", unit: "celsius", days: ["2026-11-21", "2026-11-22"] },
    { city: "Oslo", days: ["2026-99-99"] },
  ])("matches: %j", async (value) => {
    expect((await compile(WEATHER))(value)).toEqual([]);
  });

  test.each([
    [{}, ["It has no `city`."]],
    [{ city: 5 }, ["`city` must be string."]],
    [
      { city: "", unit: "kelvin", days: ["2026-11-21", "soon"], wind: 1 },
      [
        "It has an unknown key `wind`.",
        "`city` must NOT have fewer than 1 characters.",
        '`unit` must be one of `"celsius"`, `"fahrenheit"`.',
        '`days[1]` must match pattern "^\\d{4}-\\d\\d-\\d\\d$".',
      ],
    ],
    [
      { city: "Oslo", days: ["2026-11-21", "2026-11-21"] },
      ["`days` must not contain duplicates, as at 1 and 0."],
    ],
    [[], ["It must be object."]],
  ])("that does not match reports each fault: %j", async (value, faults) => {
    expect((await compile(WEATHER))(value).toSorted()).toEqual(faults.toSorted());
  });

  test("reports at most ten faults, each of them short", async () => {
    const check = await compile({ type: "object", additionalProperties: { type: "string" } });
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`${n}${"x".repeat(300)}`, n]));
    const faults = check(many);
    expect(faults).toHaveLength(10);
    expect(Math.max(...faults.map((fault) => fault.length))).toBeLessThan(150);
  });

  test("does not change: nothing is filled in or converted", async () => {
    const value = { n: "5" };
    const check = await compile({
      type: "object",
      properties: { n: { type: "integer" }, more: { type: "string", default: "x" } },
    });
    expect(check(value)).toEqual(["`n` must be integer."]);
    expect(value).toEqual({ n: "5" });
  });

  test("inherits no property that a schema requires", async () => {
    const check = await compile({
      type: "object",
      properties: { constructor: { type: "string" }, toString: { type: "number" } },
      required: ["constructor"],
    });
    expect(check({})).toEqual(["It has no `constructor`."]);
    expect(check({ constructor: "x" })).toEqual([]);
    expect(check(JSON.parse('{"__proto__": {"constructor": "x"}}'))).toEqual(["It has no `constructor`."]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test("can refer to its own type, to any sensible depth", async () => {
    const tree = { type: "object", properties: { next: { $ref: "#" }, n: { type: "integer" } } };
    let value: object = { n: "wrong" };
    for (let depth = 0; depth < 100; depth++) value = { next: value };
    expect((await compile(tree))(value)).toEqual([expect.stringMatching(/must be integer\.$/)]);
  });
});

describe("a schema is refused", () => {
  const nested = (depth: number): object =>
    depth === 0 ? {} : { type: "object", properties: { a: nested(depth - 1) } };
  test.each<[what: string, schema: unknown, reason: RegExp]>([
    ["that is none", "string", /must be an object/],
    ["that is a list", [], /must be an object/],
    ["that is null", null, /must be an object/],
    ["with an unknown type", { type: "text" }, /not valid JSON Schema.*type/],
    ["with a keyword of the wrong form", { properties: [] }, /not valid JSON Schema.*properties/],
    ["of an older draft", { items: [{ type: "string" }] }, /not valid JSON Schema.*items/],
    ["with another's address", { $ref: "https://evil.example/schema.json" }, /which it does not define/],
    ["with a file", { $ref: "file:///etc/passwd" }, /which it does not define/],
    ["with a reference to nothing", { $ref: "#/$defs/none" }, /which it does not define/],
    [
      "with a reference into data",
      { enum: [{ type: "string" }], $ref: "#/enum/0" },
      /which it does not define/,
    ],
    [
      "with a reference into what is not a keyword",
      { x: { anyOf: [{}] }, $ref: "#/x" },
      /which it does not define/,
    ],
    ["that renames its parts", { $defs: { a: { $id: "http://a/" } } }, /uses `\$id`/],
    ["with a dynamic reference", { $dynamicRef: "#a" }, /uses `\$dynamicRef`/],
    ["with an anchor", { $anchor: "a" }, /uses `\$anchor`/],
    ["that looks ahead", { pattern: "^(?!x)" }, /expression `\^\(\?!x\)`, which is not valid RE2/],
    ["that looks back", { pattern: "(a)\\1" }, /not valid RE2/],
    ["with a huge expression", { pattern: "(a{1000}){1000}" }, /expression/],
    ["with a broken key expression", { patternProperties: { "(": {} } }, /expression/],
    ["that is large", { description: "x".repeat(70_000) }, /70\d+ bytes; at most 65536/],
    ["of many values", { enum: Array.from({ length: 6000 }, (_, n) => n) }, /more than 5000 values/],
    ["of many parts", { anyOf: Array.from({ length: 600 }, () => ({})) }, /601 parts; at most 200/],
    ["that is deep", nested(40), /nested more than 32 deep/],
    ["that is very deep", JSON.parse(`${'{"not":'.repeat(9000)}{}${"}".repeat(9000)}`), /deep/],
    ["that reaches for prototypes", JSON.parse('{"properties": {"__proto__": {}}}'), /__proto__/],
  ])("%s", async (_, schema, reason) => {
    const refused = () => compile(schema);
    await expect(refused()).rejects.toThrow(SyntaxError);
    await expect(refused()).rejects.toThrow(reason);
  });
});

describe("no check takes long:", () => {
  const TOO_MUCH = ["It is too large or too deeply nested to be checked against its schema."];

  test("a directly recursive schema", async () => {
    expect((await compile({ $ref: "#" }))({})).toEqual(TOO_MUCH);
    const circle = { $ref: "#/$defs/a", $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } } };
    expect((await compile(circle))({})).toEqual(TOO_MUCH);
  });

  test.each(["anyOf", "oneOf", "allOf"])("parts that double repeatedly, by %s", async (keyword) => {
    const $defs: Record<string, object> = { d40: { const: keyword === "allOf" ? 1 : 2 } };
    for (let n = 0; n < 40; n++)
      $defs[`d${n}`] = { [keyword]: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] };
    expect((await compile({ $ref: "#/$defs/d0", $defs }))(1)).toEqual(TOO_MUCH);
  });

  test("thousands of unique members", async () => {
    const check = await compile({ type: "array", uniqueItems: true });
    const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ a: [1, 2, 3, 4], n }));
    expect(check(rows(200))).toEqual([]);
    expect(check(rows(20_000))).toEqual(TOO_MUCH);
  });

  test("a slow expression on many long texts", async () => {
    const check = await compile({ type: "array", items: { pattern: "^(a+)+$" } });
    expect(check(["a".repeat(100), `${"a".repeat(100)}b`])).toHaveLength(1);
    expect(check(Array.from({ length: 1000 }, () => "a".repeat(50_000)))).toEqual(TOO_MUCH);
    expect(check(["a".repeat(900_000)])).toEqual(TOO_MUCH);
  });

  test("hundreds of alternatives for each of a hundred thousand members", async () => {
    const items = { anyOf: Array.from({ length: 150 }, (_, n) => ({ maxLength: n })) };
    const check = await compile({ type: "array", items });
    const long = Array.from({ length: 100_000 }, () => "x".repeat(20));
    expect(check(long)).toEqual(TOO_MUCH);
  });

  test("tens of thousands of faults", async () => {
    const check = await compile({ type: "array", items: { type: "string" } });
    expect(check(Array.from({ length: 20_000 }, (_, n) => n))).toEqual(["`[0]` must be string."]);
  });

  test("a value that is deeper than the stack", async () => {
    const check = await compile({ properties: { a: { $ref: "#" } } });
    let value: object = {};
    for (let depth = 0; depth < 100_000; depth++) value = { a: value };
    expect(check(value)).toEqual(TOO_MUCH);
  });

  test("a long part with hundreds of references", async () => {
    const large = { properties: Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`p${n}`, {}])) };
    const properties = Object.fromEntries(
      Array.from({ length: 90 }, (_, n) => [`r${n}`, { $ref: "#/$defs/large" }]),
    );
    expect((await compile({ properties, $defs: { large } }))({ r1: {} })).toEqual([]);
  });

  test("hundreds of schemas leave nothing behind", async () => {
    for (let n = 0; n < 100; n++) {
      const check = await compile({
        $id: "https://example.com/same",
        properties: { [`p${n}`]: { type: "string" } },
      });
      expect(check({ [`p${n}`]: n })).toEqual([`\`p${n}\` must be string.`]);
    }
  });
});
