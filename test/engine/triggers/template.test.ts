import fc from "fast-check";
import { expect, test } from "vitest";
import { filled, MAX_FILLED, pathFault, templateFault } from "../../../src/engine/triggers/template.ts";

const delivered = (body: unknown, headers: Record<string, string> = {}) => ({
  body,
  headers,
  delivery: { id: "d-1" },
});

test("a path names a value of the body, a header or the delivery", () => {
  const body = { issue: { title: "It broke", labels: [{ name: "bug" }] }, count: 0, isOpen: false };
  const of = (template: string) => filled(template, delivered(body, { "x-github-event": "issues" }));
  expect(of("{{body.issue.title}} ({{ body.issue.labels.0.name }})")).toBe("It broke (bug)");
  expect(of("{{headers.x-github-event}} {{delivery.id}}")).toBe("issues d-1");
  expect(of("{{body.count}}{{body.isOpen}}")).toBe("0false");
});

test("a missing value is empty, and an object becomes JSON", () => {
  const of = (template: string) => filled(template, delivered({ a: { b: [1, null] }, none: null }));
  expect(of("<{{body.b}}{{body.a.b.c.d}}{{body.none}}{{headers.a}}>")).toBe("<>");
  expect(of("{{body.a}}")).toBe('{"b":[1,null]}');
  expect(filled("<{{body}}>", delivered(undefined))).toBe("<>");
});

test("only a value's own members can be read", () => {
  for (const path of [
    "constructor",
    "__proto__",
    "toString",
    "a.constructor.name",
    "a.length",
    "__proto__.x",
  ])
    expect(filled(`<{{body.${path}}}>`, delivered({ a: "text" }))).toBe("<>");
  const own = JSON.parse('{"__proto__": {"x": "own"}, "constructor": "its own"}');
  expect(filled("{{body.__proto__.x}} {{body.constructor}}", delivered(own))).toBe("own its own");
});

test("a value is not interpreted as a template", () => {
  const body = { title: "{{body.secret}}", secret: "hidden", dollar: "$& $1 $`" };
  expect(filled("{{body.title}} {{body.dollar}}", delivered(body))).toBe("{{body.secret}} $& $1 $`");
});

test("a filled text is limited, however often a template repeats a body", () => {
  const body = { text: "x".repeat(200_000) };
  expect(filled("{{body}}".repeat(2000), delivered(body))).toHaveLength(MAX_FILLED);
  expect(filled(`{{body}}${"y".repeat(100_000)}`, delivered(body))).toHaveLength(MAX_FILLED);
});

test.each([
  "{{}}",
  "{{ }}",
  "{{body.}}",
  "{{body..a}}",
  "{{env.HOME}}",
  "{{process.exit()}}",
  "{{body['a']}}",
  "{{body.a | upper}}",
  "{{#each body}}",
  "{{body",
  "body}}",
  `{{${Array(17).fill("body").join(".")}}}`,
])("%s is refused", (template) => expect(templateFault(template)).toBeTypeOf("string"));

test("plain text and single braces are allowed", () => {
  for (const template of ["hello", "a { b } c", '{"a": {{body.a}}}', "{{body}}{{headers.a}}"])
    expect(templateFault(template)).toBeUndefined();
  expect(pathFault("body.action")).toBeUndefined();
  expect(pathFault("action")).toContain("`action` must be a path such as");
});

test("never throws, for any template and body", () => {
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), (template, body) => {
      const text = filled(template, delivered(body));
      expect(text.length).toBeLessThanOrEqual(MAX_FILLED);
      if (!template.includes("{{")) expect(text).toBe(template);
    }),
  );
});
