// What every store promises of branches: a thread loses nothing that was not kept first.

import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";
import { branchesOf, branchIds, keepBranch } from "../../src/engine/runs/branches.ts";
import { ADA, claimed, done, inWorld, message, newRun, type Open, upTo } from "../engine/stores/fixture.ts";

const PLACE = { owner: ADA, thread_id: "t" };

async function tell(stores: Stores, texts: readonly string[]): Promise<string[]> {
  const { lease } = await claimed(stores, "t");
  const events = texts.map(message);
  await stores.events.append(lease, [...events, done()]);
  return events.map(({ data }) => data.message.id);
}

const keep = (stores: Stores, replaced: string, run_id = "run") =>
  keepBranch({ threads: stores.threads, quotas: undefined }, { ...PLACE, replaced, run_id });

const idsIn = async ({ threads }: Stores, thread: string) =>
  (await threads.messages(ADA, thread)).map(({ id }) => id);

async function replace(stores: Stores, rewind_to: string, kept_to = "") {
  const result = await stores.runs.start(ADA, newRun("t", { rewind_to, kept_to }), "reject");
  if (result.outcome === "claimed") await stores.events.append(result.claim.lease, [done()]);
}

export function branchContract(open: Open): void {
  describe("branches", () => {
    test("are not created if a process dies before the thread loses anything, and never twice", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await tell(stores, upTo(4).map(String));
        const [, second = ""] = ids;
        expect(await keep(stores, second, "died")).toBe(ids[3]);
        expect(await branchesOf(stores.threads, PLACE)).toEqual([]);
        expect(await keep(stores, second)).toBe(ids[3]);
        expect(await branchIds(stores.threads, PLACE)).toHaveLength(1);
        await replace(stores, second, ids[3]);
        const [branch, ...others] = await branchesOf(stores.threads, PLACE);
        expect(others).toEqual([]);
        expect(branch?.parent?.run_id).toBe("died");
        expect(await idsIn(stores, branch?.id ?? "")).toEqual(ids);
        expect((await stores.threads.list(ADA, { limit: 10 })).items.map(({ id }) => id)).toEqual(["t"]);
      }));

    test("created before the thread grew are created again with all messages", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await tell(stores, ["1", "2"]);
        const kept = await keep(stores, ids[0] ?? "");
        const all = [...ids, ...(await tell(stores, ["3"]))];
        await expect(replace(stores, ids[0] ?? "", kept)).rejects.toMatchObject({ code: "thread_busy" });
        expect(await idsIn(stores, "t")).toEqual(all);
        await replace(stores, ids[0] ?? "", await keep(stores, ids[0] ?? ""));
        const branches = await branchesOf(stores.threads, PLACE);
        expect(await Promise.all(branches.map(({ id }) => idsIn(stores, id)))).toEqual([all]);
      }));

    test("are not created from a thread that another edit has just emptied", () =>
      inWorld(open, async ({ stores }) => {
        const [first = ""] = await tell(stores, ["1"]);
        const kept = await keep(stores, first);
        const started = await stores.runs.start(
          ADA,
          newRun("t", { rewind_to: first, kept_to: kept ?? "" }),
          "reject",
        );
        await keep(stores, first, "late");
        if (started.outcome === "claimed")
          await stores.events.append(started.claim.lease, [message("edited"), done()]);
        const branches = await branchesOf(stores.threads, PLACE);
        expect(await Promise.all(branches.map(({ id }) => idsIn(stores, id)))).toEqual([[first]]);
      }));

    test("keep the messages under an id that the client has reused", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await tell(stores, ["1", "2"]);
        const [, second = ""] = ids;
        for (const text of ["edited", "edited again"]) {
          await replace(stores, second, await keep(stores, second));
          const { lease } = await claimed(stores, "t");
          const said = message(text);
          const event = { ...said, data: { message: { ...said.data.message, id: second } } };
          await stores.events.append(lease, [event, done()]);
        }
        const branches = await branchesOf(stores.threads, PLACE);
        const last = branches.map(async ({ id }) => (await stores.threads.messages(ADA, id)).at(-1)?.content);
        expect(await Promise.all(last)).toEqual(["edited", "2"]);
      }));
  });
}
