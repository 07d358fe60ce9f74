// Triggers on stores that replicas share.

import { afterAll, expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { deliver, fromGithub, githubIssue } from "../support/deliveries.ts";
import { needing } from "../support/needing.ts";
import { startServer } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";

const SECRET = "a secret of 16 characters or more";

for (const { start, program } of USUAL_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).test(`two replicas on one ${program} start one run for a delivery`, async () => {
    if (!shared) throw new Error("There was a store a moment ago.");
    const config = { store: shared.kind, [shared.kind]: { url: await shared.database() } };
    const [one, other] = [await startServer({ config }), await startServer({ config })];
    const { triggers, runs } = createClient({ baseUrl: one.url });
    const { url } = await triggers.put("issues", {
      ...{ agent: "assistant", verify: { scheme: "github" }, secret: SECRET },
      input: "{{body.issue.title}}",
    });
    for (const id of ["a", "b", "c", "d", "e"]) {
      const sent = fromGithub(SECRET, githubIssue("opened", 73464126, `Issue ${id}`), { id });
      const answers = await Promise.all(
        [one, other, one, other].map(async (server) => {
          const answer = await deliver(server.url + url, sent);
          return [answer.status, ((await answer.json()) as { run_id: string }).run_id];
        }),
      );
      expect(answers).toEqual(Array(4).fill([202, expect.any(String)]));
      expect(new Set(answers.map(([, run]) => run)).size).toBe(1);
    }
    expect((await runs.list()).items).toHaveLength(5);
    const deliveries = async () => (await triggers.get("issues")).deliveries;
    await expect.poll(async () => (await deliveries()).length).toBe(20);
    expect((await createClient({ baseUrl: other.url }).triggers.get("issues")).deliveries).toEqual(
      await deliveries(),
    );
  });
}
