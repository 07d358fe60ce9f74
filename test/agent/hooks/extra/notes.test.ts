import { expect, test } from "vitest";
import type { ItemStore } from "../../../../src/agent/core/items.ts";
import type { RunInput } from "../../../../src/agent/core/run.ts";
import { notes } from "../../../../src/agent/hooks/extra-hooks.ts";
import { play } from "../../../support/agent.ts";
import { ADA, type Call, family, lead, ROOT, told as toldBy, worker } from "../family.ts";
import { listening } from "../listening.ts";
import { made } from "../made.ts";

await notes.load?.();

const told = (items: ItemStore, calls: Call[], input?: Partial<RunInput>) =>
  toldBy(notes, items, calls, input);

const write = (name: string, text: string): Call => ({ tool: "write_note", args: { name, text } });
const read = (name: string): Call => ({ tool: "read_note", args: { name } });
const list: Call = { tool: "list_notes" };

test("all agents of a family can read each other's notes, with the author", async () => {
  const items = await family();
  await told(items, [write("schema", "Dates are ISO.\n".repeat(20))], worker("coder-parse-1"));
  const [all, one] = await told(items, [list, read("schema")]);
  expect(all).toMatch(/^- schema \(coder-parse-1, \d{4}-.*Z\): (Dates are ISO\. ?)+/);
  expect(all?.split("): ")[1]).toHaveLength(80);
  expect(one).toMatch(/^schema \(coder-parse-1, .*\):\n\nDates are ISO\.\n/);
  expect(await told(items, [read("schema")], worker("tester-check-1"))).toEqual([one]);
});

test("a note replaces the previous one with the same name, and an empty one deletes it", async () => {
  const items = await family();
  const results = await told(items, [
    ...[write("plan", "old"), write("plan", "new"), read("plan")],
    ...[write("plan", " "), read("plan"), write("plan", ""), list],
  ]);
  expect(results[2]).toMatch(/^plan \(lead, .*\):\n\nnew$/);
  expect(results.slice(3)).toEqual([
    "Note `plan` is removed.",
    expect.stringMatching(/^Error: There is no note `plan`/),
    expect.stringMatching(/^Error: There is no note `plan`/),
    "There are no notes yet.",
  ]);
});

test.each(["", "a b", "../x", "ä", "x".repeat(65), "a\n"])("%j is not a valid name", async (name) => {
  const results = await told(await family(), [write(name, "x"), read(name)]);
  expect(results.every((each) => each.startsWith("Error: Invalid arguments"))).toBe(true);
});

test("another user's family has its own notes, even on a thread with the same id", async () => {
  const bob = { tenant: "acme", user: "bob" };
  const items = await family([ADA, bob]);
  await told(items, [write("secret", "x")]);
  expect(await told(items, [list], { ...lead, owner: bob })).toEqual(["There are no notes yet."]);
});

test("a note above the limit is refused, and the others are kept", async () => {
  const items = await family();
  const shelf = { owner: ADA, of: { thread: ROOT }, kind: "notes" } as const;
  for (let nth = 0; nth < 256; nth++)
    await items.put(shelf, { key: `n${nth}`, value: { text: "x", by: "lead" } });
  const [full, again, all] = await told(items, [write("one-more", "x"), write("n7", "changed"), list]);
  expect(full).toMatch(/^Error: .*256/);
  expect(again).toBe("Note `n7` is written.");
  expect(all?.split("\n")).toHaveLength(256);
  expect(all).toContain("- n7 (lead");
});

test("a note that is too long is refused", async () => {
  const [result] = await told(await family(), [write("long", "x".repeat(20_001))]);
  expect(result).toMatch(/^Error: Invalid arguments.*20000/);
});

test("the prompt explains notes in a constant block, and only if a store keeps them", async () => {
  const { model, asked } = listening([]);
  await play({ model, hooks: [made(notes, { items: await family() })], input: lead });
  await play({ model, hooks: [made(notes)] });
  expect(asked[0]?.system).toMatchObject([{ id: "notes_protocol", cache: "static" }]);
  expect(asked[0]?.system[0]?.text).toMatch(
    /^<notes_protocol>\n[\s\S]*list_notes[\s\S]*\n<\/notes_protocol>$/,
  );
  expect(asked[1]).toMatchObject({ system: [], tools: [] });
});
