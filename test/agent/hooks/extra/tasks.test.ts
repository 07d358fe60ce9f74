import { describe, expect, test } from "vitest";
import type { ItemStore } from "../../../../src/agent/core/items.ts";
import type { RunInput } from "../../../../src/agent/core/run.ts";
import { claimTask, createTasks, settleTask, tasksOn } from "../../../../src/agent/hooks/extra/tasks.ts";
import { tasks } from "../../../../src/agent/hooks/extra-hooks.ts";
import { play } from "../../../support/agent.ts";
import { ADA, type Call, family, ROOT, told as toldBy, worker } from "../family.ts";
import { made } from "../made.ts";

await tasks.load?.();

const place = { owner: ADA, root: ROOT };

const told = (items: ItemStore, calls: Call[], input?: Partial<RunInput>) =>
  toldBy(tasks, items, calls, input);

const create = (...tasks: Record<string, unknown>[]): Call => ({ tool: "create_tasks", args: { tasks } });
const task = (id: string, ...blocked_by: string[]) => ({ id, title: `Do ${id}.`, blocked_by });
const claim = (id: string): Call => ({ tool: "claim_task", args: { id } });
const update = (id: string, status: string): Call => ({ tool: "update_task", args: { id, status } });
const list: Call = { tool: "list_tasks" };

/** A board with these tasks, all unclaimed. */
async function board(...news: ReturnType<typeof task>[]): Promise<ItemStore> {
  const items = await family();
  await createTasks(items, place, news);
  return items;
}

const statuses = async (items: ItemStore) =>
  Object.fromEntries((await tasksOn(items, place)).map(({ id, status }) => [id, status]));

test("has no tools without a store", async () => {
  const { outcome } = await play({ hooks: [made(tasks)] });
  expect(outcome.status).toBe("success");
});

test("a family plans, claims and completes tasks on one board", async () => {
  const items = await family();
  expect(await told(items, [list, create(task("test", "parse"), task("parse")), list])).toEqual([
    "There are no tasks on the board.",
    "On the board: `test`, `parse`.",
    "- [pending] parse: Do parse.\n- [pending] test: Do test. (blocked by parse)",
  ]);
  expect(await told(items, [claim("test"), claim("parse"), list], worker("coder-parse-1"))).toEqual([
    "Error: Task `test` is blocked by `parse`.",
    "Task `parse` is yours. Use update_task to report its outcome.",
    "- [in_progress] parse: Do parse. (claimed by coder-parse-1)\n- [pending] test: Do test. (blocked by parse)",
  ]);
  expect(await told(items, [update("parse", "completed")], worker("coder-parse-1"))).toEqual([
    "Task `parse` is completed.",
  ]);
  expect(await told(items, [claim("test"), { ...list, args: { status: "in_progress" } }])).toEqual([
    "Task `test` is yours. Use update_task to report its outcome.",
    "- [in_progress] test: Do test. (claimed by lead)",
  ]);
});

test("a title takes one line in the list, even if it contains line breaks", async () => {
  const items = await board({ ...task("a"), title: "Do\n- [completed] b: that" });
  expect(await told(items, [list])).toEqual(["- [pending] a: Do - [completed] b: that"]);
});

describe("tasks that cannot be created do not change the board", () => {
  test.each([
    ["wait for each other", [task("a", "b"), task("b", "c"), task("c", "a")], /`a`, `b`, `c` would wait/],
    ["wait for themselves", [task("a", "a")], /`a` would wait/],
    ["wait for what is not there", [task("a", "nowhere")], /There is no task `nowhere`/],
    ["have one id twice", [task("a"), { ...task("a"), title: "Other." }], /another task `a`/],
    ["have the id of another", [task("new"), { ...task("there"), title: "Other." }], /another task `there`/],
    ["have no proper id", [{ id: "a b", title: "x" }], /Invalid arguments/],
    ["say nothing", [{ id: "a", title: " " }], /Invalid arguments/],
  ])("because they %s", async (_, news, fault) => {
    const items = await board(task("there"));
    const [result] = await told(items, [create(...news)]);
    expect(result).toMatch(/^Error: /);
    expect(result).toMatch(fault);
    expect(await statuses(items)).toEqual({ there: "pending" });
  });
});

test("creating the same tasks again, as after a crash, changes nothing", async () => {
  const items = await board(task("a"), task("b", "a"));
  await claimTask(items, place, "a", "coder");
  await createTasks(items, place, [task("a"), task("b", "a"), task("c", "b")]);
  expect(await statuses(items)).toEqual({ a: "in_progress", b: "pending", c: "pending" });
});

describe("claiming a task", () => {
  test("succeeds for only one of twenty agents at once", async () => {
    const items = await board(task("a"));
    const names = Array.from({ length: 20 }, (_, nth) => `coder-${nth}`);
    const claims = await Promise.allSettled(names.map((name) => claimTask(items, place, "a", name)));
    const winners = names.filter((_, nth) => claims[nth]?.status === "fulfilled");
    expect(winners).toHaveLength(1);
    expect(await tasksOn(items, place)).toMatchObject([{ status: "in_progress", claimed_by: winners[0] }]);
    for (const each of claims)
      if (each.status === "rejected")
        expect(each.reason).toMatchObject({
          code: "invalid_request",
          message: `Task \`a\` is taken by \`${winners[0]}\`.`,
        });
  });

  test("can be repeated by the agent that has it", async () => {
    const items = await board(task("a"));
    await claimTask(items, place, "a", "coder-1");
    await expect(claimTask(items, place, "a", "coder-1")).resolves.toBeUndefined();
    await expect(claimTask(items, place, "a", "coder-2")).rejects.toThrow("taken by `coder-1`");
  });

  test("is refused for a task that does not exist, is blocked or has ended", async () => {
    const items = await board(task("done"), task("off"), task("a", "done", "off"), task("lost"));
    await expect(claimTask(items, place, "nope", "x")).rejects.toThrow("There is no task `nope`.");
    await expect(claimTask(items, place, "a", "x")).rejects.toThrow("blocked by `done`, `off`.");
    await claimTask(items, place, "done", "x");
    await settleTask(items, place, { id: "done", status: "completed", by: "x" });
    await told(items, [update("off", "canceled")]);
    await expect(claimTask(items, place, "done", "x")).rejects.toThrow("Task `done` is completed.");
    await expect(claimTask(items, place, "off", "x")).rejects.toThrow("Task `off` is canceled.");
    await expect(claimTask(items, place, "a", "x")).rejects.toThrow("blocked by `off`.");
  });

  test("is possible again after the task has failed", async () => {
    const items = await board(task("a"));
    await claimTask(items, place, "a", "coder-1");
    await settleTask(items, place, { id: "a", status: "failed", by: "coder-1" });
    await claimTask(items, place, "a", "coder-2");
    expect(await tasksOn(items, place)).toMatchObject([{ status: "in_progress", claimed_by: "coder-2" }]);
  });
});

describe("settling a task", () => {
  test("counts once, however often it is repeated", async () => {
    const items = await board(task("a"));
    await claimTask(items, place, "a", "coder");
    for (const status of ["completed", "completed", "failed"] as const)
      await settleTask(items, place, { id: "a", status, by: "coder" });
    expect(await statuses(items)).toEqual({ a: "completed" });
  });

  test("changes nothing if the task was returned or does not exist", async () => {
    const items = await board(task("a"));
    await settleTask(items, place, { id: "a", status: "failed", by: "coder" });
    await settleTask(items, place, { id: "gone", status: "failed", by: "coder" });
    expect(await statuses(items)).toEqual({ a: "pending" });
  });

  test("is possible for its current agent, not for an earlier one", async () => {
    const items = await board(task("a"));
    await claimTask(items, place, "a", "coder-1");
    await told(items, [update("a", "pending")]);
    await claimTask(items, place, "a", "coder-2");
    await settleTask(items, place, { id: "a", status: "failed", by: "coder-1" });
    expect(await statuses(items)).toEqual({ a: "in_progress" });
  });
});

describe("a task's outcome", () => {
  test("can be reported only by its agent or by the root agent", async () => {
    const items = await board(task("a"));
    await claimTask(items, place, "a", "coder-1");
    expect(await told(items, [update("a", "completed")], worker("coder-2"))).toEqual([
      "Error: Task `a` is taken by `coder-1`. Only that agent can change it.",
    ]);
    expect(await statuses(items)).toEqual({ a: "in_progress" });
  });

  test("must follow from its current status", async () => {
    const items = await board(task("a"));
    expect(
      await told(items, [
        ...[update("nope", "failed"), update("a", "completed"), update("a", "canceled")],
        ...[update("a", "failed"), update("a", "pending"), claim("a"), update("a", "canceled")],
        ...[update("a", "pending"), claim("a"), update("a", "completed")],
        ...[update("a", "completed"), update("a", "pending"), update("a", "in_progress")],
      ]),
    ).toEqual([
      "Error: There is no task `nope`.",
      "Error: Task `a` is pending. Claim it first.",
      "Task `a` is canceled.",
      "Error: Task `a` is canceled. It may become pending.",
      "Task `a` is pending.",
      "Task `a` is yours. Use update_task to report its outcome.",
      "Task `a` is canceled.",
      "Task `a` is pending.",
      "Task `a` is yours. Use update_task to report its outcome.",
      "Task `a` is completed.",
      "Task `a` is completed.",
      "Error: Task `a` is completed. That is for good.",
      expect.stringContaining("Error: Invalid arguments."),
    ]);
  });
});

test("on a full board, the oldest ended tasks make room, unless another task waits for them", async () => {
  const many = Array.from({ length: 252 }, (_, nth) => task(`t${nth}`));
  const items = await board(task("first"), task("second"), task("third"), task("waits", "first"), ...many);
  const one = await told(items, [create(task("more"))]);
  expect(one[0]).toMatch(/^Error: The board can contain at most 256 tasks/);
  for (const id of ["first", "second"]) {
    await claimTask(items, place, id, "coder");
    await settleTask(items, place, { id, status: "completed", by: "coder" });
  }
  expect(await told(items, [create(task("more")), create(task("again"))])).toEqual([
    "On the board: `more`.",
    expect.stringMatching(/^Error: The board can contain/),
  ]);
  const left = await statuses(items);
  expect(Object.keys(left)).toHaveLength(256);
  expect(left).toMatchObject({ first: "completed", waits: "pending", more: "pending" });
  expect(left).not.toHaveProperty("second");
});
