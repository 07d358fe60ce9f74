// What types are called: a noun, and one thing under one name.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Generated from the API, whose types have the names of its fields. */
const GENERATED = "src/client/wire.ts";

const files = globSync("src/**/*.{ts,tsx}").map((file) => file.replaceAll("\\", "/"));
const declared = files
  .filter((file) => file !== GENERATED)
  .flatMap((file) =>
    [
      ...readFileSync(file, "utf8").matchAll(/^ *(export )?(?:interface|type|(?:abstract )?class) (\w+)/gm),
    ].map(([, exported, name = ""]) => ({ file, name, isExported: exported !== undefined })),
  );

/** Each says what is special about another type: `Owned<Thread>` is a thread. */
const MODIFIERS = ["Checked", "Defined", "Fitted", "Marked", "Owned", "Sent", "Sized", "Versioned"];
const NOUNS = [
  ...["Drawing", "Ending", "Finding", "Landing", "Listing", "Rating", "Reading", "Reasoning", "Setting"],
  ...["Spending", "Timing", "Understanding"],
];
const REGULAR = /^[A-Z][a-z]+(?:ed|ing)$/;
const IRREGULAR =
  /^(?:Begun|Bound|Broken|Brought|Built|Chosen|Done|Drawn|Found|Given|Gone|Held|Kept|Known|Left|Lost|Made|Said|Seen|Sent|Shown|Spent|Spoken|Taken|Thrown|Told|Written)$/;

test("no type is called by a participle alone", () => {
  const participles = declared.filter(({ name }) => REGULAR.test(name) || IRREGULAR.test(name));
  const allowed = [...MODIFIERS, ...NOUNS];
  const others = participles.filter(({ name }) => !allowed.includes(name));
  expect(others.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  const names = new Set(participles.map(({ name }) => name));
  expect(
    allowed.filter((name) => !names.has(name)),
    "no type has these names any more",
  ).toEqual([]);
});

/** Wires and stores have the same structure, and these parts of it. Turns are followed in three places. */
const SHARED = ["ProjectOptions", "Retention", "SentMessage", "StoreContext", "TurnOptions"];

test("no name is exported by more than two files", () => {
  const places = Map.groupBy(
    declared.filter(({ isExported }) => isExported),
    ({ name }) => name,
  );
  const found = [...places].filter(([, each]) => each.length > 2);
  const others = found.filter(([name]) => !SHARED.includes(name));
  expect(others.map(([name, each]) => `${name}: ${each.map(({ file }) => file).join(", ")}`)).toEqual([]);
  expect(found.map(([name]) => name)).toEqual(expect.arrayContaining(SHARED));
});
