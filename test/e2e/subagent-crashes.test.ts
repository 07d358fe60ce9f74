// What becomes of a family when the process dies that executes it.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { dataOf } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { type ServerProcess, serve } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";
import { post, type Viewer, view } from "../support/sse.ts";
import { contradictionsIn, placeOf } from "../support/store-check.ts";
import { json, own, results, wellFormed } from "../support/team.ts";

const stores = await Promise.all(
  USUAL_STORES.map(async ({ start, program }) => ({ shared: await start(), program })),
);
afterAll(() => Promise.all(stores.map(({ shared }) => shared?.close())));

const LEAD = `
- { call: [{ tool: delegate, args: { tasks: [{ agent: coder, task: Count, context: "" }] } }] }
- { say: Counted. }`;
const CODER = `
- { say: one two three four five six seven eight nine ten, delay_ms: 100 }`;

/** Servers on one folder, each with room for a single run. */
async function onOneFolder(settings: string, env: Record<string, string>) {
  const dir = await temporaryFolder();
  const at = (name: string) => join(dir, name);
  await writeFile(at("lead.yaml"), LEAD);
  await writeFile(at("coder.yaml"), CODER);
  await writeFile(
    at("team.yaml"),
    `agents: { lead: { model: "scripted:${at("lead.yaml")}", subagents: [coder] }, coder: { model: "scripted:${at("coder.yaml")}" } }`,
  );
  await writeFile(at("server.yaml"), `limits: { runs: 1 }\n${settings}`);
  return () => serve(dir, LEAD, { ...env, AGENTS_FILE: at("team.yaml"), CONFIG_FILE: at("server.yaml") });
}

async function killedMeanwhile(first: ServerProcess): Promise<Viewer> {
  const viewer = await post(`${first.url}/threads/t1/runs`, { input: "go" });
  await viewer.until(({ event, path }) => event === "on_chat_model_stream" && path !== undefined);
  first.child.kill("SIGKILL");
  await viewer.ended().catch(() => {});
  return viewer;
}

/** The run, whole, as it went on in another process. */
async function expectOneChild({ url }: ServerProcess, viewer: Viewer) {
  const events = await wellFormed(await view(`${url}${viewer.headers.get("location")}`));
  expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
  // The parent waits for its child again, unless the child was taken over first and has ended by then.
  const ends = dataOf(own(events), "on_subagent_end").map(({ status }) => status);
  expect([["interrupted", "completed"], ["completed"]]).toContainEqual(ends);
  const children = new Set(dataOf(events, "on_subagent_start").map(({ thread_id }) => thread_id));
  expect(children.size).toBe(1);
  expect((await json(`${url}/threads?parent=t1`)).items).toHaveLength(1);
  expect(results(events)).toEqual([
    expect.stringMatching(/^\[coder-count-1\] agent coder: completed\none two/),
  ]);
}

describe("kill -9 of a server with a parent and its child", () => {
  test("on sqlite: both continue after the restart, with one slot", async () => {
    const start = await onOneFolder("", { STORE: "sqlite" });
    const viewer = await killedMeanwhile(await start());
    await expectOneChild(await start(), viewer);
  });

  for (const { shared, program } of stores)
    needing(shared, program).test(
      `on ${program}: another replica continues both, with one slot`,
      async () => {
        if (!shared) throw new Error("There was a store a moment ago.");
        const { kind } = shared;
        const url = await shared.database();
        const start = await onOneFolder(`${kind}: { url: "${url}", lease: 2s }`, { STORE: kind });
        const [one, other] = await Promise.all([start(), start()]);
        await expectOneChild(other, await killedMeanwhile(one));
        expect(await contradictionsIn(placeOf(kind, url))).toEqual([]);
      },
    );
});
