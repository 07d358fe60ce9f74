// Diagrams, which a frame draws that can do nothing else.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Frame, Page } from "playwright-core";
import { describe, expect, onTestFinished } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const fenced = (source: string) => `\`\`\`mermaid\n${source}\n\`\`\``;

/** A conversation whose answer has these diagrams. */
async function saying(...sources: readonly string[]) {
  const { url } = await startServer({
    script: () => ({ say: `${sources.map(fenced).join("\n\n")}\n\nThat was it.` }),
  });
  await runs(url, "drawn", { input: "Draw." });
  const tab = await seen(url);
  await tab.go("#/t/drawn", "That was it.");
  return { ...tab, blocks: tab.page.locator(".code-block") };
}

const frameOf = async (page: Page): Promise<Frame | undefined> => {
  const [place] = await page.locator("iframe").all();
  return (await (await place?.elementHandle())?.contentFrame()) ?? undefined;
};

const FLOW = "flowchart TD\n  A[Question] --> B{Known?}\n  B -->|yes| C[Answer]\n  B -->|no| D[Look it up]";

describe("a diagram in an answer", () => {
  test("is drawn by a button and can be turned back into its source, and the focus stays on the button", async () => {
    const tab = await saying(FLOW);
    const { page } = tab;
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.getByRole("button", { name: "Draw", exact: true }).focus();
    expect(requests.filter((each) => each.includes("diagram"))).toEqual([]);
    await page.keyboard.press("Enter");
    const back = page.getByRole("button", { name: "Show source" });
    await back.waitFor();
    const drawing = page.frameLocator("iframe[title=Diagram]");
    await drawing.getByText("Look it up").waitFor();
    // While it draws, the frame has more elements.
    await page.locator("iframe:not(.is-waiting)").waitFor();
    await expect.poll(() => page.locator("pre", { hasText: "flowchart" }).isVisible()).toBe(false);
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Show source");
    const parts = async () => (await frameOf(page))?.evaluate("document.body.childElementCount");
    const drawn = await parts();
    for (const [width, theme] of [
      [1440, "light"],
      [390, "dark"],
    ] as const) {
      await tab.look({ theme, width, height: 900 });
      await expect
        .poll(async () => (await frameOf(page))?.evaluate("document.documentElement.dataset.theme"))
        .toBe(theme);
      await drawing.getByText("Look it up").waitFor();
      const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      await expect.poll(() => page.evaluate(beyond)).toBe(0);
      expect(await tab.barriers()).toEqual([]);
      await tab.screenshot(`page-diagram-${width}`);
      // A new drawing replaces the one before.
      await expect.poll(() => parts()).toBe(drawn);
    }
    await page.emulateMedia({ media: "print" });
    await expect.poll(() => page.locator("iframe").isVisible()).toBe(true);
    await page.emulateMedia({ media: "screen" });
    await back.focus();
    await page.keyboard.press("Enter");
    await page.locator("pre", { hasText: "flowchart" }).waitFor();
    await expect.poll(() => page.locator("iframe").count()).toBe(0);
    expect(await tab.harm()).toEqual([]);
  });

  test("that cannot be drawn shows the reason next to its source: the line, its kind, its length", async () => {
    const tab = await saying(
      "flowchart TD\n  A[Begin --> B",
      "mindmap\n  root((All))",
      `flowchart TD\n${"  A --> B\n".repeat(3_000)}`,
    );
    const { page, blocks } = tab;
    for (const block of await blocks.all())
      await block.getByRole("button", { name: "Draw", exact: true }).click();
    await blocks.nth(0).getByText("Line 2 of the diagram cannot be read:").waitFor();
    await blocks.nth(1).getByText("This kind of diagram is not supported.").waitFor();
    await blocks
      .nth(2)
      .getByText("The diagram is too large. It can have at most 10,000 characters")
      .waitFor();
    for (const block of await blocks.all())
      await expect.poll(() => block.locator("pre code").isVisible()).toBe(true);
    await expect.poll(() => page.locator("iframe").count()).toBe(0);
    await expect.poll(() => page.getByRole("button", { name: "Draw", exact: true }).count()).toBe(3);
    expect(await tab.barriers()).toEqual([]);
    await tab.screenshot("page-diagram-undrawn");
    expect(await tab.harm()).toEqual([]);
  });
});

/** Counts who asks it for anything. */
async function elsewhere() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.end();
  });
  onTestFinished(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { asked, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const hostile = (address: string) => [
  [
    `%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "* { background: url(${address}/theme) }"}}%%`,
    "flowchart TD",
    `  A["<img src=x onerror='parent.pwned=1'><b>Bold</b>"] --> B["</script><script>parent.pwned=2</script>"]`,
    '  click A call alert("pwned")',
    '  click B href "javascript:parent.pwned=3"',
    "  C[Way out]",
    `  click C href "${address}/link" _self`,
  ].join("\n"),
  `flowchart TD\n  A --> B\n  style A fill:url(${address}/fill)`,
  `flowchart TD\n  A@{ img: "${address}/picture.png", label: "Picture" }\n  A --> B`,
  [
    "sequenceDiagram",
    "  participant A",
    `  links A: {"Way out": "javascript:parent.pwned=4", "Leak": "${address}/links"}`,
    "  A->>A: <iframe src=javascript:parent.pwned=5></iframe>",
  ].join("\n"),
  `---\nconfig:\n  securityLevel: loose\n  themeCSS: "@import url(${address}/import);"\n---\nflowchart TD\n  A --> B`,
  `flowchart TD\n${Array.from({ length: 60 }, (_, at) => `subgraph S${at}`).join("\n")}\nA\n${"end\n".repeat(60)}`,
];

/** On each of these, libraries of diagrams have worked without an end. */
const ENDLESS = [
  "gantt\n  tickInterval 1second\n  dateFormat ss\n  axisFormat %s\n  section Request\n  RTT : rtt, 0, 20",
  "gantt\n  excludes monday,tuesday,wednesday,thursday,friday,saturday,sunday\n  Never :2025-01-01, 1d",
  "gantt\n  dateFormat YYYY-MM-DD\n  excludes weekends\n  tickInterval 1second\n  section A\n  Long : 0202-01-01, 9999-01-01",
];

describe("a hostile diagram", () => {
  test("requests nothing from another server, runs nothing in the page, and its links lead nowhere", async () => {
    const { asked, address } = await elsewhere();
    const sources = hostile(address);
    const tab = await saying(...sources);
    const { page, blocks } = tab;
    for (const [at] of sources.entries()) {
      await blocks.nth(at).getByRole("button", { name: "Draw", exact: true }).click();
      await blocks.nth(at).locator("iframe:not(.is-waiting), .problem").waitFor();
    }
    for (const frame of page.frames().filter((each) => each !== page.mainFrame())) {
      await expect.poll(() => frame.evaluate("self.origin")).toBe("null");
      await expect.poll(() => frame.locator("a, script:not(body > script), iframe, img").count()).toBe(0);
    }
    const wayOut = page.frameLocator("iframe").first().locator(".node", { hasText: "Way out" });
    await wayOut.click({ force: true });
    await tab.screenshot("page-diagram-hostile");
    expect(asked).toEqual([]);
    await expect
      .poll(() => page.evaluate("[window.pwned, location.hash, window.breaches]"))
      .toEqual([undefined, "#/t/drawn", []]);
    // What the policy of the frames has refused.
    tab.allowErrors("Content Security Policy");
  });

  test("does not block the page, and ends with its frame", async () => {
    const tab = await saying(...ENDLESS);
    const { page, blocks } = tab;
    for (const [at] of ENDLESS.entries()) {
      await blocks.nth(at).getByRole("button", { name: "Draw", exact: true }).click();
      await blocks.nth(at).locator("iframe:not(.is-waiting), .problem").waitFor();
      await page.getByRole("textbox", { name: "Message" }).fill(`Still here ${at}`);
    }
    await tab.screenshot("page-diagram-endless");
  });
});
