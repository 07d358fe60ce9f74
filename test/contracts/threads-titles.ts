// What every ThreadStore promises of the titles of threads without a given title.

import { describe, expect, test } from "vitest";
import { userMessage } from "../../src/agent/core/message.ts";
import { ADA, claimed, done, inWorld, newRun, type Open, ruleTest, said } from "../engine/stores/fixture.ts";

const asking = (text: string) => ({ request: { settings: {}, input: [userMessage(text)] } });

export function titlesContract(open: Open): void {
  const rule = ruleTest(open);
  describe("titles", () => {
    test("are the first words of a run's input", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events } = stores;
        const { lease } = await claimed(stores, "new", asking("Plan a\ntrip"));
        expect(await threads.get(ADA, "new")).toMatchObject({ title: "Plan a trip" });
        expect((await threads.list(ADA, { limit: 10, q: "TRIP" })).items).toMatchObject([{ id: "new" }]);
        await events.append(lease, [done()]);
        await claimed(stores, "new", asking("Something else"));
        expect(await threads.get(ADA, "new")).toMatchObject({ title: "Plan a trip" });

        await threads.create(ADA, { id: "made before", metadata: {} });
        expect(await threads.get(ADA, "made before")).not.toHaveProperty("title");
        await stores.runs.enqueue(ADA, newRun("made before", asking("Wait")), "queue");
        expect(await threads.get(ADA, "made before")).toMatchObject({ title: "Wait" });
      }));

    rule("wait for text if a run has none", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t", asking(" \n"));
        expect(await stores.threads.get(ADA, "t")).not.toHaveProperty("title");
        await stores.events.append(lease, [said(userMessage("Left for the run")), done()]);
        await claimed(stores, "t", asking("Now then"));
        expect(await stores.threads.get(ADA, "t")).toMatchObject({ title: "Now then" });
      }),
    );

    rule("are the first words of a thread's initial messages", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const messages = [userMessage("Once"), userMessage("Twice")];
        const made = await threads.create(ADA, { id: "t", metadata: {}, messages });
        expect(made).toMatchObject({ title: "Once" });
        expect(await threads.get(ADA, "t")).toEqual(made);
        const named = { id: "named", title: "Mine", metadata: {}, messages };
        expect(await threads.create(ADA, named)).toMatchObject({ title: "Mine" });
      }),
    );

    rule("set by a user are kept, even empty ones", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events } = stores;
        await threads.create(ADA, { id: "named", title: "Mine", metadata: {} });
        await claimed(stores, "named", asking("Hello"));
        expect(await threads.get(ADA, "named")).toMatchObject({ title: "Mine" });

        await threads.create(ADA, { id: "unnamed", title: "", metadata: {} });
        await claimed(stores, "unnamed", asking("Hello"));
        expect(await threads.get(ADA, "unnamed")).toMatchObject({ title: "" });

        const { lease } = await claimed(stores, "cleared", asking("Hello"));
        await events.append(lease, [done()]);
        await threads.update(ADA, "cleared", { title: "" });
        await claimed(stores, "cleared", asking("Hello again"));
        expect(await threads.get(ADA, "cleared")).toMatchObject({ title: "" });
        expect((await threads.list(ADA, { limit: 10, q: "hello" })).items).toEqual([]);
      }),
    );
  });
}
