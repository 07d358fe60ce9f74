// Runs that wait for people, against providers that refuse every history that is not whole.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import type { Answer, Interrupt } from "../../src/protocol/interrupt.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { call, say, think } from "../support/fake-provider/script.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer } from "../support/server.ts";
import { post, type Viewer } from "../support/sse.ts";

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  expect(provider.requests().filter(({ status }) => status === 400)).toEqual([]);
  await provider.close();
});

const WIRES = [
  { name: "anthropic", model: "claude-sonnet-4-5", path: "", more: ", thinking: 2048" },
  { name: "openai", model: "gpt-5-mini", path: "/v1", more: "" },
];

async function start({ name, model, path, more }: (typeof WIRES)[number], interrupts = "{}") {
  const agents = `
agents:
  assistant:
    model: { provider: ${name}, model: ${model}, base_url: "${provider.url}${path}", api_key: sk-1${more} }
    backend: { type: local }
    tools: [ask_user]
    permissions: { rules: [{ allow: execute, command_prefix: [echo] }] }
    interrupts: ${interrupts}
`;
  const { url } = await startServer({ agents, realModels: true });
  const thread = `${url}/threads/t1`;
  return {
    url,
    thread,
    talk: (input: string) => post(`${thread}/runs`, { input }),
    async open() {
      return ((await (await fetch(`${thread}/interrupts`)).json()) as { items: Interrupt[] }).items;
    },
    resume: (viewer: Viewer, ...answers: Answer[]) => post(`${runOf(url, viewer)}/resume`, { answers }),
    cancel: (viewer: Viewer) => fetch(`${runOf(url, viewer)}/cancel`, { method: "POST" }),
  };
}

const runOf = (url: string, { headers }: Viewer) => url + headers.get("location")?.replace(/\/events$/, "");

async function endOf(viewer: Viewer): Promise<StreamEvent[]> {
  const events = await viewer.ended();
  expect(checkGrammar(events)).toEqual([]);
  return events;
}
const statusOf = async (viewer: Viewer) => dataOf(await endOf(viewer), "done")[0]?.status;
const execute = (command: string) => call("execute", { command });
const asked = (open: readonly Interrupt[], text: string) =>
  open.find(({ args }) => JSON.stringify(args).includes(text))?.id ?? "none";

describe.each(WIRES)("on the wire of $name", (wire) => {
  test("parallel calls, answered one by one over several runs, are sent to the model together", async () => {
    const { talk, open, resume } = await start(wire);
    const thought = wire.name === "anthropic" ? [think("All at once.")] : [];
    provider.enqueue(
      {
        blocks: [
          ...thought,
          ...["echo free", "touch one; echo one", "rm two", "touch three", "touch four"].map(execute),
          call("ask_user", { question: "Which colour?" }),
        ],
      },
      { blocks: [say("All done.")] },
      { blocks: [say("Bye.")] },
    );
    let viewer = await talk("go");
    expect(await statusOf(viewer)).toBe("interrupted");
    const all = await open();
    expect(all).toHaveLength(5);
    const answers: Answer[] = [
      { id: asked(all, "touch one"), decision: "approve" },
      { id: asked(all, "rm two"), decision: "deny", message: "Keep it." },
      { id: asked(all, "touch three"), decision: "edit", args: { command: "echo edited" } },
      { id: asked(all, "touch four"), decision: "respond", message: "Done by hand." },
      { id: asked(all, "colour"), decision: "respond", message: "blue" },
    ];
    for (const [index, answer] of answers.entries()) {
      viewer = await resume(viewer, answer);
      expect(await statusOf(viewer)).toBe(index < 4 ? "interrupted" : "success");
      expect(await open()).toHaveLength(4 - index);
      expect(provider.requests()).toHaveLength(index < 4 ? 1 : 2);
    }
    expect(textSeen(await endOf(viewer))).toBe("All done.");
    const body = JSON.stringify(provider.requests()[1]?.body);
    for (const text of ["free", "one", "Keep it.", "edited", "Done by hand.", "blue"])
      expect(body).toContain(text);
    expect(textSeen(await endOf(await talk("bye")))).toBe("Bye.");
  });

  test("cancelling a waiting run leaves a thread that can continue", async () => {
    const { talk, open, cancel } = await start(wire);
    provider.enqueue({ blocks: [execute("rm one"), execute("rm two"), execute("echo free")] });
    const viewer = await talk("go");
    expect(await statusOf(viewer)).toBe("interrupted");
    expect((await cancel(viewer)).status).toBe(200);
    expect(await open()).toEqual([]);
    expect(await statusOf(await talk("and now?"))).toBe("success");
    expect(JSON.stringify(provider.requests().at(-1)?.body)).toContain("Cancelled before it was run.");
  });
});
