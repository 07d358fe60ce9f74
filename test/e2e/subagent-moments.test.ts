// A run with subagents that is cancelled, or whose process ends, at any moment.

import { describe, expect, test } from "vitest";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { dataOf } from "../support/drain.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";
import { cast, completing, delegating, json, own, results, wellFormed } from "../support/team.ts";

/** Events after which it happens; the whole is more than 90 long. */
const MOMENTS = [1, 6, 11, 20, 41, 75];

const AGENTS = `
defaults: { model: "scripted:test" }
agents:
  lead: { system_prompt: I am lead, subagents: [mid, low] }
  mid: { system_prompt: I am mid, subagents: [low] }
  low: { system_prompt: I am low }
`;
const todo = { tool: "write_todos", args: { todos: [] } };
const script = cast({
  lead: [
    delegating({ agent: "mid", task: "Plan it" }, { agent: "low", task: "Name it" }),
    { say: "All done." },
  ],
  mid: [
    delegating({ agent: "low", task: "Make it" }, { agent: "low", task: "Test it" }),
    { say: "Mid is done." },
  ],
  low: [
    { say: "One step.", call: [todo], delay_ms: 2 },
    { ...completing("Low is done."), say: "And another." },
  ],
});

async function seenAfter(count: number, viewer: Viewer): Promise<string> {
  await viewer.until(() => viewer.seen.length >= count);
  return viewer.headers.get("location")?.replace(/\/events$/, "") ?? "";
}

/** Every thread below, found from the top. */
async function below(url: string, id: string): Promise<{ id: string; status: string }[]> {
  const children = (await json(`${url}/threads?parent=${id}`)).items as unknown as {
    id: string;
    status: string;
  }[];
  const deeper = await Promise.all(children.map((child) => below(url, child.id)));
  return [...children, ...deeper.flat()];
}

const endOf = (events: readonly StreamEvent[]) => dataOf(own(events), "done")[0]?.status;

describe("a family", () => {
  test("that is cancelled at any moment ends as a whole, with well-formed logs", async () => {
    const { url } = await startServer({ agents: AGENTS, script });
    for (const moment of MOMENTS) {
      const viewer = await post(`${url}/threads/t${moment}/runs`, { input: "go" });
      const run = await seenAfter(moment, viewer);
      await fetch(`${url}${run}/cancel`, { method: "POST" });
      const events = await wellFormed(viewer);
      expect(["cancelled", "success"]).toContain(endOf(events));
      const busy = async () => (await below(url, `t${moment}`)).filter(({ status }) => status === "busy");
      await expect.poll(busy).toEqual([]);
    }
  });

  test("whose process ends at any moment continues in the next one, and no task starts twice", async () => {
    const options = {
      ...{ agents: AGENTS, script, dir: await temporaryFolder() },
      config: { store: "sqlite", shutdown: { grace: "0s" }, limits: { runs: 1 } },
    };
    let server = await startServer(options);
    for (const moment of MOMENTS) {
      const viewer = await post(`${server.url}/threads/t${moment}/runs`, { input: "go" });
      const run = await seenAfter(moment, viewer);
      await server.app.close();
      server = await startServer(options);
      const events = await wellFormed(await view(`${server.url}${run}/events`));
      expect(endOf(events)).toBe("success");
      expect(await below(server.url, `t${moment}`)).toHaveLength(4);
      expect(results(events)).toEqual([
        "[mid-plan-1] agent mid: completed\nMid is done.\n\n[low-name-2] agent low: completed\nLow is done.",
      ]);
    }
  });
});
