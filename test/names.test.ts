// What types are called: a noun, and one thing under one name.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Generated from the API, whose types have the names of its fields. */
const GENERATED = "src/client/wire.ts";

const files = globSync("src/**/*.{ts,tsx}").map((file) => file.replaceAll("\\", "/"));
const declared = files
  .filter((file) => file !== GENERATED)
  .flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/^ *(export )?(?:interface|type|class) (\w+)/gm)].map(
      ([, exported, name = ""]) => ({ file, name, isExported: exported !== undefined }),
    ),
  );

/** They say of what other type they are: `Owned<Thread>` is a thread. */
const MODIFIERS = [
  "Checked",
  "Defined",
  "Fitted",
  "Located",
  "Marked",
  "Owned",
  "Sent",
  "Sized",
  "Versioned",
];
const NOUNS = [
  ...["Drawing", "Ending", "Finding", "Landing", "Listing", "Rating", "Reading", "Reasoning", "Setting"],
  ...["Spending", "Timing", "Understanding"],
];

test("no type is called by a participle alone", () => {
  const participles = declared
    .filter(
      ({ name }) =>
        /^[A-Z][a-z]+(?:ed|ing)$/.test(name) || /^(?:Given|Held|Kept|Made|Said|Seen|Sent|Told)$/.test(name),
    )
    .filter(({ name }) => ![...MODIFIERS, ...NOUNS].includes(name));
  expect(participles.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
});

/** The same part in folders that have the same structure. */
const IN_EACH_FOLDER = ["ProjectOptions", "Retention", "SentMessage", "StoreContext", "TurnOptions"];

test("no name is exported by more than two files", () => {
  const places = Map.groupBy(
    declared.filter(({ isExported }) => isExported),
    ({ name }) => name,
  );
  const taken = [...places].filter(([name, found]) => found.length > 2 && !IN_EACH_FOLDER.includes(name));
  expect(taken.map(([name, found]) => `${name}: ${found.map(({ file }) => file).join(", ")}`)).toEqual([]);
});
