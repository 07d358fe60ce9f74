// What holds a run where a test wants it: a tool, or a model in the middle of its answer.

import { z } from "zod";
import type { Model } from "../../src/agent/core/model.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import { scriptedModel, type Turn } from "../../src/agent/models/scripted.ts";
import { orAborted } from "../../src/lib/async.ts";

/** Waits until the test lets it go, or the run ends. */
export function gate() {
  const opened = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "gate",
    description: "Waits.",
    parameters: z.object({}),
    execute: (_args, _call, run) =>
      new Promise<string>((resolve, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        opened.promise.then(() => resolve("open"));
        entered.resolve();
      }),
  });
  return { tool, open: opened.resolve, entered: entered.promise };
}

/** The answers of a model that calls it once. */
export const gated = [{ say: "Wait.", call: [{ tool: "gate" }] }, { say: "Through." }];
export const WITH_GATE = "agents: { assistant: { model: 'scripted:test', tools: [gate] } }";

/** A model that plays `turns`, and pauses after `word` until the test releases it. */
export function heldAfter(word: string, turns: readonly Turn[]) {
  const scripted = scriptedModel(turns);
  const going = Promise.withResolvers<void>();
  const model: Model = {
    name: scripted.name,
    async *stream(request) {
      const answer = scripted.stream(request);
      for (;;) {
        const next = await answer.next();
        if (next.done) return next.value;
        yield next.value;
        const { data } = next.value;
        if ("delta" in data && data.delta.trim() === word) await orAborted(going.promise, request.signal);
      }
    },
  };
  return { model, release: going.resolve };
}
