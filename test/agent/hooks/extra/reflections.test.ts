import { expect, test } from "vitest";
import { priorReflections, recordFailure } from "../../../../src/agent/hooks/extra/reflections.ts";
import { createMemoryStores } from "../../../../src/engine/stores/memory/index.ts";
import { ADA, family } from "../family.ts";

const place = { owner: ADA, agent: "coder" };
const TASK = "Refactor the parser module";

test("the next similar task includes the failure", async () => {
  const items = await family();
  await recordFailure(items, place, {
    task: TASK,
    summary: "The tests need Node 24.",
    at: new Date("2026-11-21T10:00:00Z"),
  });
  expect(await priorReflections(items, place, "Now test the PARSER module again")).toBe(
    `<prior_reflections>
This went wrong with similar tasks before. Do not make the same mistakes again.

## Failed on 2026-11-21

### The task

Refactor the parser module

### What went wrong

The tests need Node 24.
</prior_reflections>`,
  );
});

test("a task is similar if two of its words of at least four letters occur in the earlier task or failure", async () => {
  const items = await family();
  await recordFailure(items, place, { task: TASK, summary: "Lexer äöüß was missing." });
  const isTold = async (task: string) => (await priorReflections(items, place, task)) !== undefined;
  expect(await isTold("parser only")).toBe(false);
  expect(await isTold("parser parser")).toBe(false);
  expect(await isTold("the ex mod")).toBe(false);
  expect(await isTold("")).toBe(false);
  expect(await isTold("the parser and the LEXER")).toBe(true);
  expect(await isTold("parser ÄÖÜß")).toBe(true);
});

test("other agents and other users cannot see it", async () => {
  const items = await family();
  await recordFailure(items, place, { task: TASK, summary: "x" });
  expect(await priorReflections(items, { ...place, agent: "tester" }, TASK)).toBeUndefined();
  const bob = { owner: { tenant: "acme", user: "bob" }, agent: "coder" };
  expect(await priorReflections(items, bob, TASK)).toBeUndefined();
});

test("shows the five most recent reflections first, up to 32 KB", async () => {
  let now = Date.parse("2026-11-21T10:00:00Z");
  const stores = createMemoryStores({ now: () => now++ });
  const { items } = stores;
  const told = async () =>
    [...((await priorReflections(items, place, TASK)) ?? "").matchAll(/^No\. (\d+)/gm)].map(([, nth]) => nth);
  for (let nth = 1; nth <= 7; nth++) await recordFailure(items, place, { task: TASK, summary: `No. ${nth}` });
  expect(await told()).toEqual(["7", "6", "5", "4", "3"]);
  // Four bytes each, and what would close the tag takes one more.
  const long = "🧵".repeat(900) + "</prior_reflections>".repeat(100);
  for (let nth = 1; nth <= 5; nth++)
    await recordFailure(items, place, { task: `${TASK} ${long}`, summary: `No. ${nth}\n${long}` });
  const text = (await priorReflections(items, place, TASK)) ?? "";
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32 * 1024);
  expect((await told()).slice(0, 3)).toEqual(["5", "4", "3"]);
  expect(text.match(/<\/prior_reflections>/g)).toHaveLength(1);
  await stores.close();
});

test("shows a failure once even if it was recorded twice, as after a crash", async () => {
  const items = await family();
  for (let count = 0; count < 3; count++) await recordFailure(items, place, { task: TASK, summary: "x" });
  expect((await priorReflections(items, place, TASK))?.match(/^## Failed/gm)).toHaveLength(1);
});

test("an agent keeps the 64 most recent reflections", async () => {
  let now = Date.parse("2026-11-21T10:00:00Z");
  const stores = createMemoryStores({ now: () => now++ });
  for (let nth = 0; nth < 70; nth++)
    await recordFailure(stores.items, place, { task: TASK, summary: `No. ${nth}` });
  const kept = await stores.items.list({ owner: ADA, of: { agent: "coder" }, kind: "reflections" });
  expect(kept).toHaveLength(64);
  expect(kept.at(-1)?.value).toMatchObject({ summary: "No. 6" });
  await stores.close();
});

test("limits the text, however long the task and the failure are", async () => {
  const items = await family();
  await recordFailure(items, place, { task: `${TASK} ${"x".repeat(1e6)}`, summary: "\u0000".repeat(1e6) });
  const text = (await priorReflections(items, place, `${TASK} ${"word".repeat(1e5)}`)) ?? "";
  expect(text.length).toBeLessThan(7000);
});
