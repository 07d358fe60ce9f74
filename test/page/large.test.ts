import { describe, expect } from "vitest";
import { z } from "zod";
import type { Model } from "../../src/agent/core/model.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const CALLS = 999;
const RATE = 5_000;
const SECONDS = 4;

const note = defineTool({
  name: "note",
  description: "",
  parameters: z.object({ at: z.number() }),
  execute: ({ at }) => `noted ${at}`,
});

describe("a page with much content", () => {
  test("shows a conversation of two thousand messages, from the first to the last, and accepts the next one", async () => {
    const { url } = await startServer({
      agents: `
agents:
  assistant: { model: "scripted:test", tools: [note], max_iterations: ${CALLS + 1}, hooks: { loop_detection: false } }
`,
      tools: [note],
      script: (_, call) =>
        call < CALLS
          ? { say: `Step ${call}.`, call: [{ tool: "note", args: { at: call } }] }
          : { say: "That was the last one." },
    });
    await runs(url, "long", { input: "This was the first one." });
    const tab = await seen(url);
    await tab.go("#/t/long", "That was the last one.");
    // By its text: a role is looked up by the layout of every button there is.
    const earlier = tab.page.getByText("Show earlier messages", { exact: true });
    while (await earlier.count()) await earlier.click();
    await tab.page.getByText("This was the first one.").first().scrollIntoViewIfNeeded();
    await expect.poll(() => tab.page.getByText("Step 500.", { exact: true }).count()).toBe(1);
    await tab.page.getByLabel("Message", { exact: true }).fill("Another one.");
    await tab.page.keyboard.press("Enter");
    await tab.page.getByText("Another one.").first().waitFor();
    await expect.poll(() => tab.page.getByText("That was the last one.").count()).toBe(2);
  }, 900_000);

  test(`draws ${RATE} events a second and loses none of them`, async () => {
    const { url } = await startServer({ model: fast() });
    const tab = await seen(url);
    await tab.page.evaluate(`
      window.frames_drawn = 0;
      (function frame() { window.frames_drawn++; requestAnimationFrame(frame); })();
    `);
    const began = performance.now();
    await runs(url, "fast", { input: "Go.", background: true });
    await tab.go("#/t/fast", "That was it.");
    const seconds = (performance.now() - began) / 1000;
    const frames = await tab.page.evaluate<number>("window.frames_drawn");
    console.info(
      `${RATE * SECONDS} events in ${seconds.toFixed(1)} s: ${(frames / seconds).toFixed(0)} frames a second`,
    );
    const shown = await tab.page.getByText("w0 w1 w2").first().textContent();
    expect(shown?.trim().split(/\s+/)).toEqual(Array.from({ length: RATE * SECONDS }, (_, at) => `w${at}`));
  });
});

/** Speaks so many words a second. */
function fast(): Model {
  return {
    name: "scripted:fast",
    async *stream() {
      const words: string[] = [];
      const began = performance.now();
      while (words.length < RATE * SECONDS) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        const due = Math.min(RATE * SECONDS, ((performance.now() - began) / 1000) * RATE);
        for (; words.length < due; ) {
          const delta = `w${words.length} `;
          words.push(delta);
          yield { event: "on_chat_model_stream", data: { delta } };
        }
      }
      const end = "\n\nThat was it.";
      yield { event: "on_chat_model_stream", data: { delta: end } };
      return {
        ...{ content: words.join("") + end, tool_calls: [], reasoning: [], stop_reason: "end_turn" },
        usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
      };
    },
  };
}
