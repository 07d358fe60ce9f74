import fc from "fast-check";
import { expect, test } from "vitest";
import { mergePatch } from "../../src/lib/json.ts";
import { type Field, fieldsOf, issueAt, issuesOf, patchFrom, textOf, valueIn } from "../../src/page/form.ts";

const SCHEMA = {
  type: "object",
  properties: {
    attempts: { type: "integer", minimum: 1, maximum: 10, default: 3, description: "Calls to one model." },
    base_ms: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 500 },
    keep: { type: "number", exclusiveMinimum: 0, maximum: 0.9 },
    strict: { type: "boolean", default: false },
    mode: { type: "string", enum: ["off", "on"] },
    tool: { type: ["number", "string"], default: 600 },
    text: { type: "string", minLength: 1 },
    except: { type: "array", items: { type: "string" } },
    by_tool: { type: "object", additionalProperties: { type: "number" } },
  },
  required: ["text", "attempts"],
};
const fields = fieldsOf(SCHEMA);
const field = (name: string) => {
  const found = fields.find((each) => each.name === name);
  if (!found) throw new Error(`There is no field ${name}.`);
  return found;
};

test("every property of a schema has a suitable field", () => {
  expect(fields.map(({ name, kind }) => [name, kind])).toEqual([
    ["attempts", "number"],
    ["base_ms", "number"],
    ["keep", "number"],
    ["strict", "choice"],
    ["mode", "choice"],
    ["tool", "text"],
    ["text", "text"],
    ["except", "list"],
    ["by_tool", "json"],
  ]);
});

test("a field shows its default and the accepted values", () => {
  expect(field("attempts")).toMatchObject({
    standard: 3,
    range: "1 to 10",
    required: false,
    description: "Calls to one model.",
  });
  expect(field("base_ms").range).toBe("at least 1");
  expect(field("keep").range).toBe("more than 0, at most 0.9");
  expect(field("text").required).toBe(true);
});

test("a value that is not an object schema has no fields", () => {
  for (const schema of [undefined, null, true, [], {}, { type: "string" }, { properties: 1 }])
    expect(fieldsOf(schema)).toEqual([]);
});

test("a value that is put into its field is returned unchanged", () => {
  const values = {
    attempts: 5,
    keep: 0.25,
    strict: true,
    mode: "on",
    text: "5",
    except: ["a", "b"],
    by_tool: { ls: 3 },
  };
  for (const [name, value] of Object.entries(values))
    expect(valueIn(field(name), textOf(field(name), value))).toEqual(value);
});

test("an empty field has no value", () => {
  for (const each of fields) expect(valueIn(each, " ")).toBeUndefined();
  for (const each of fields) expect(textOf(each, undefined)).toBe("");
});

test("an invalid number is sent unchanged, and the server reports the error", () => {
  expect(valueIn(field("attempts"), "many")).toBe("many");
});

test("invalid JSON is refused immediately", () => {
  expect(() => valueIn(field("by_tool"), "{")).toThrow(SyntaxError);
});

test("the server's error about an option is shown at its field", () => {
  const error = Object.assign(new Error("no"), {
    details: {
      issues: [
        { path: "hooks.retry.attempts", message: "is too large" },
        { path: "hooks.retry.by_tool.ls", message: "is no number" },
        { path: "hooks.retry", message: "cannot be changed" },
        { path: "model", message: "is not known" },
      ],
    },
  });
  const issues = issuesOf(error, "hooks.retry");
  expect(issueAt(issues, "attempts")).toBe("is too large");
  expect(issueAt(issues, "by_tool")).toBe("ls: is no number");
  expect(issueAt(issues, "base_ms")).toBe("");
  expect(issues.get("")).toBe("cannot be changed");
  expect(issueAt(issuesOf(error), "model")).toBe("is not known");
  expect(issuesOf(new Error("no")).size).toBe(0);
});

test("headers are written one per line", () => {
  const headers: Field = { name: "headers", kind: "pairs", required: false };
  expect(valueIn(headers, "authorization: Bearer a:b\n\n x-team : blue ")).toEqual({
    authorization: "Bearer a:b",
    "x-team": "blue",
  });
  expect(() => valueIn(headers, "authorization")).toThrow("has no colon");
});

test("a patch turns the old value into the new one, for any two values", () => {
  const values = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      fc.boolean(),
      fc.nat(3),
      fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value;
  fc.assert(
    fc.property(values, values, (before, after) => {
      expect(mergePatch(before, patchFrom(before, after))).toEqual(after);
    }),
  );
});

test("a time is typed in the browser's zone and sent with its UTC offset, to the second", () => {
  const time: Field = { name: "at", kind: "time", required: true };
  const typed = textOf(time, "2031-05-04T10:00:00+02:00");
  expect(typed).toMatch(/^2031-05-0[345]T\d\d:\d\d$/);
  expect(valueIn(time, typed)).toBe("2031-05-04T08:00:00.000Z");
  expect(valueIn(time, textOf(time, "2031-05-04T08:00:07Z"))).toBe("2031-05-04T08:00:07.000Z");
  expect([textOf(time, undefined), valueIn(time, "")]).toEqual(["", undefined]);
});
