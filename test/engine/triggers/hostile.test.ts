// Hostile templates and bodies, many of them: a delivery can choose the text of its run, and nothing else.

import fc from "fast-check";
import { expect, test } from "vitest";
import { planOf } from "../../../src/engine/triggers/plan.ts";
import { MAX_FILLED, templateFault } from "../../../src/engine/triggers/template.ts";
import { TriggerSpec } from "../../../src/engine/triggers/trigger.ts";
import { character } from "../../support/any-character.ts";
import { seedOr } from "../../support/seed.ts";

const CREDENTIAL = "credential-of-the-sender";
const HEADERS = {
  ...{ authorization: `Bearer ${CREDENTIAL}`, cookie: CREDENTIAL, "x-hub-signature-256": CREDENTIAL },
  ...{ "x-github-event": "issues", "x-github-delivery": "guid" },
};

/** Names that mean something to JavaScript, and some that do not. */
const name = fc.constantFrom(
  ...["__proto__", "constructor", "prototype", "toString", "valueOf", "length", "toJSON"],
  ...["a", "b", "0", "1", "title", "body", "headers"],
);
const path = fc
  .tuple(fc.constantFrom("body", "body", "headers", "delivery", "env", "process", "this"), fc.array(name))
  .map(([root, names]) => [root, ...names].join("."));
const header = fc.constantFrom(...Object.keys(HEADERS)).map((key) => `headers.${key}`);
const place = fc.oneof(path, path, header).map((text) => `{{${text}}}`);
const piece = fc.oneof(
  place,
  place,
  fc.string(),
  fc.constantFrom("{{", "}}", "{{{", "#{process.env}", "{{{{body}}}}", "<%= body %>", "\0", "\ud800", "$&"),
);
const template = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join(""));

/** Parsed, as bodies come: `__proto__` is a member of its own. */
const body = fc
  .letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, tie("leaf"), tie("list"), tie("object")),
    leaf: fc.oneof(
      fc.string({ unit: character }),
      fc.constantFrom(null, true, 0, -1e308, "{{body.secret}}", "th_of_the_user", "x".repeat(5_000)),
    ),
    list: fc.array(tie("value"), { maxLength: 4 }),
    object: fc
      .array(fc.tuple(name, tie("value")), { maxLength: 4 })
      .map((entries) => ({ json: `{${entries.map(([key, value]) => `"${key}":${jsonOf(value)}`).join()}}` })),
  }))
  .value.map((value) => JSON.parse(jsonOf(value)) as unknown);

function jsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonOf).join()}]`;
  return typeof value === "object" && value !== null && "json" in value
    ? String(value.json)
    : JSON.stringify(value);
}

test("an accepted template reads the body and plain headers of any delivery", () => {
  let taken = 0;
  fc.assert(
    fc.property(template, template, body, (input, thread, sent) => {
      const verify = { scheme: "github" };
      const read = TriggerSpec.safeParse({ agent: "a", verify, input, thread, delivery_id: thread });
      if (!read.success) return;
      taken++;
      const spec = read.data;
      const raw = Buffer.from(JSON.stringify(sent));
      const plan = planOf({ ...spec, id: "issues" }, { headers: HEADERS, raw }, sent);
      expect(plan.delivery_id.length).toBeGreaterThan(0);
      expect(plan.delivery_id.length).toBeLessThanOrEqual(128);
      if ("ignored" in plan) return;
      expect(plan.input.length).toBeLessThanOrEqual(MAX_FILLED);
      expect(JSON.stringify(plan)).not.toContain(CREDENTIAL);
      expect(plan.input).not.toMatch(/\[native code]|function /);
      expect(plan.thread_id).toMatch(/^hook_[\w-]{32}$/);
      expect(plan).toMatchObject({ agent: "a", metadata: { trigger: "issues" } });
      expect(planOf({ ...spec, id: "issues" }, { headers: HEADERS, raw }, sent)).toEqual(plan);
      expect(Object.keys(Object.prototype)).toEqual([]);
    }),
    { numRuns: 5_000, seed: seedOr(39) },
  );
  // The others are refused when the trigger is written.
  expect(taken).toBeGreaterThan(250);
});

test("a template that names no path in a delivery is refused", () => {
  fc.assert(
    fc.property(path, template, (named, rest) => {
      if (/^(?:body|headers|delivery)(?:\.|$)/.test(named)) return;
      expect(templateFault(`{{${named}}}${rest}`)).toBeTypeOf("string");
    }),
    { numRuns: 2_000, seed: seedOr(39) },
  );
});
