import { Buffer } from "node:buffer";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

/** A conversation in which the agent says `text`. */
async function saying(text: string, input = "Go.") {
  const { url } = await startServer({ script: () => ({ say: `${text}\n\nThat was it.` }) });
  await runs(url, "words", { input });
  const tab = await seen(url);
  await tab.go("#/t/words", "That was it.");
  return tab;
}

const COLUMNS = Array.from({ length: 12 }, (_, at) => `A column ${at}`);
const TABLE = [
  COLUMNS,
  COLUMNS.map(() => "---"),
  COLUMNS.map((_, at) => (at % 2 ? "1 234 567.89 €" : "incomprehensibilities everywhere")),
]
  .map((row) => `| ${row.join(" | ")} |`)
  .join("\n");

describe("an answer", () => {
  test("is plain text if it is very long, and explains why", async () => {
    const { page } = await saying(`\`\`\`js\n${"const answer_of_all_questions=42;\n".repeat(13_000)}\`\`\``);
    await page.getByText("Too long to format; shown as plain text.").waitFor();
  });

  test("shows each task on one line, with a box that cannot be ticked", async () => {
    const { page } = await saying("- [x] done task\n- [ ] to do\n  - [x] a part of it");
    const box = page.getByRole("checkbox", { name: "Done", exact: true }).first();
    await expect.poll(async () => [await box.isChecked(), await box.isDisabled()]).toEqual([true, true]);
    const height = `document.querySelector("li.task").getClientRects()[0].height`;
    await expect.poll(() => page.evaluate(height)).toBeLessThan(32);
    const indents = `[...document.querySelectorAll("li.task li.task input, li.task:has(li) > input, li.task:has(li) > p > input")].map((each) => each.getBoundingClientRect().left)`;
    await expect
      .poll(async () => {
        const [of = 0, part = 0] = await page.evaluate<number[]>(indents);
        return part - of;
      })
      .toBeGreaterThan(10);
  });

  test("has tables that scroll separately, by keyboard too, and never break a word or number", async () => {
    const tab = await saying(TABLE);
    for (const [width, theme] of [
      [1440, "light"],
      [390, "dark"],
    ] as const) {
      await tab.look({ theme, width, height: 900 });
      const table = tab.page.getByRole("group", { name: "Table" });
      const beyond = `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector(".wide"))`;
      await expect.poll(() => tab.page.evaluate(beyond)).toBeGreaterThan(0);
      const lines = `[...document.querySelectorAll("td.unbroken")].map((cell) => {
        const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length; })`;
      await expect.poll(async () => new Set(await tab.page.evaluate<number[]>(lines))).toEqual(new Set([1]));
      await table.focus();
      await tab.page.keyboard.press("ArrowRight");
      await expect
        .poll(() => tab.page.evaluate("document.querySelector('.wide').scrollLeft"))
        .toBeGreaterThan(0);
      expect(await tab.barriers()).toEqual([]);
      await tab.screenshot(`page-markdown-${width}`);
    }
  });

  test("leads from a footnote's mark to its text and back, and stays in its view", async () => {
    const { page } = await saying("A claim[^page].\n\n[^page]: Where it is *from*.");
    await page.getByRole("button", { name: "Footnote 1", exact: true }).click();
    await expect
      .poll(() => page.evaluate("document.activeElement.textContent"))
      .toContain("Where it is from.");
    await page.getByRole("button", { name: "Back to the text of footnote 1" }).click();
    await expect
      .poll(() => page.evaluate("document.activeElement.getAttribute('aria-label')"))
      .toBe("Footnote 1");
    await expect
      .poll(() => page.evaluate("[location.hash, document.querySelectorAll('#page').length]"))
      .toEqual(["#/t/words", 1]);
  });

  test("is rendered as Markdown in a model's reasoning too", async () => {
    const { url } = await startServer({ script: [{ think: "**Planning**\n\n- one", say: "Thought of." }] });
    await runs(url, "words", { input: "Go." });
    const { page, go } = await seen(url);
    await go("#/t/words", "Thought of.");
    await page.locator(".thought > summary").click();
    await page.locator(".thought strong", { hasText: "Planning" }).waitFor();
    await expect.poll(() => page.locator(".thought").innerText()).not.toContain("**");
  });

  test("is written from right to left if its text is, and so is the person's message", async () => {
    const { page } = await saying("مرحبا بالعالم\n\n- عنصر\n\n> اقتباس\n\n- [x] مهمة\n\nHello", "שלום עולם");
    const directions = await page.evaluate<string[]>(
      `[".said .words", ".answer p", ".answer li", ".answer blockquote", ".answer .markdown > p:last-child"]
        .map((name) => getComputedStyle(document.querySelector(name)).direction)`,
    );
    expect(directions).toEqual(["rtl", "rtl", "rtl", "rtl", "ltr"]);
    // The mark of a task is beside its words, with a gap between them.
    const gap = await page.evaluate<number>(`(() => {
      const words = document.createRange();
      words.selectNodeContents([...document.querySelector("li.task").childNodes].find((each) => each.textContent.trim()));
      return document.querySelector("li.task input").getBoundingClientRect().left - words.getBoundingClientRect().right;
    })()`);
    expect(gap).toBeGreaterThan(3);
  });

  test("has typeset maths, without inline styles, and shows unreadable maths as written", async () => {
    const tab = await saying(
      [
        "Energy is \\(E_1 = mc^2\\).",
        "\\[\n\\int_0^1 \\frac{x^2}{\\sqrt{2}} \\, dx\n+ \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}\n\\]",
        "$$\\begin{aligned} a &= b + c \\\\ &= d \\end{aligned}$$",
        "Broken: \\(\\frac{1}{\\)",
        "Hostile: \\(\\href{javascript:window.pwned=1}{x}\\) \\(\\includegraphics{http://127.0.0.1:9/a.png} + 1\\) \\(\\style{color:red}{x^2}\\)",
        "It costs $5 or $10.",
      ].join("\n\n"),
    );
    await tab.page.locator("math").nth(2).waitFor();
    const { page } = tab;
    await expect.poll(() => page.locator("mfrac").count()).toBe(1);
    await page.getByText("Broken: \\(\\frac{1}{\\)", { exact: true }).waitFor();
    await page.getByText("It costs $5 or $10.", { exact: true }).waitFor();
    await expect
      .poll(() =>
        page.locator(".answer [style], .answer math [href], .answer math [id], .answer img").count(),
      )
      .toBe(0);
    expect(await tab.harm()).toEqual([]);
    expect(await tab.barriers()).toEqual([]);
    await tab.look({ theme: "dark", width: 390, height: 900 });
    await tab.screenshot("page-maths");
  });

  test("has code with colours by language, and copies it unchanged; unknown or long code stays plain", async () => {
    const long = "const a = 1;\n".repeat(4_000);
    const tab = await saying(
      [
        "```ts\n// A note\nconst text: string = 'a' + 2;\n```",
        '```python\ndef greet(name):\n    return f"Hello {name}"\n```',
        "```constructor\n<img src=x onerror=window.pwned=1>\n```",
        "```html\n<script>window.pwned = 2</script>\n```",
        "```diff\n- old\n+ new\n```",
        `\`\`\`js\n${long}\`\`\``,
      ].join("\n\n"),
    );
    const { page } = tab;
    await page.locator(".code-keyword", { hasText: "def" }).waitFor();
    await page.locator(".code-addition").waitFor();
    const blocks = page.locator(".code-block");
    await expect
      .poll(() => blocks.nth(0).locator("code").textContent())
      .toBe("// A note\nconst text: string = 'a' + 2;");
    for (const plain of [2, 5])
      await expect.poll(() => blocks.nth(plain).locator("[class^=code-]").count()).toBe(0);
    await expect.poll(() => blocks.nth(5).locator("code").textContent()).toBe(long.trimEnd());
    await expect.poll(() => page.locator(".answer [style]").count()).toBe(0);
    expect(await tab.harm()).toEqual([]);
    await page.emulateMedia({ reducedMotion: "reduce" });
    for (const theme of ["light", "dark"] as const) {
      await tab.look({ theme, width: 1440, height: 1200 });
      expect(await tab.barriers()).toEqual([]);
      await tab.screenshot(`page-code-${theme}`);
    }
  });

  test("opens workspace files and shows their images, but requests nothing from elsewhere", async () => {
    const { url } = await startServer({
      script: [
        {
          say: "a",
          call: [{ tool: "write_file", args: { path: "report/summary of it.md", content: "All is well." } }],
        },
        {
          say: [
            "[the report](report/summary%20of%20it.md) and `report/summary of it.md`, not `other.md`.",
            "[nothing](missing.md) and ![A chart](chart.png) and ![](no-picture.png)",
            "![A cat](https://elsewhere.example/cat.png) [x](//elsewhere.example/a) [y](#/runs)",
            "That was it.",
          ].join("\n\n"),
        },
      ],
    });
    await fetch(`${url}/backend/files/chart.png`, { method: "PUT", body: PNG });
    await fetch(`${url}/backend/files/no-picture.png`, {
      method: "PUT",
      body: "<svg onload='window.pwned=1'/>",
    });
    await runs(url, "words", { input: "Go." });
    const tab = await seen(url);
    await tab.go("#/t/words", "That was it.");
    const { page } = tab;
    for (const name of ["the report", "report/summary of it.md"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByRole("dialog").getByText("All is well.").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await expect.poll(() => page.getByRole("button", { name: "other.md" }).count()).toBe(0);
    await page.getByRole("button", { name: "nothing", exact: true }).click();
    await page.getByText("There is no file missing.md in the workspace.").waitFor();
    await page.getByRole("img", { name: "A chart" }).waitFor();
    await page.getByRole("button", { name: "Show picture no-picture.png" }).waitFor();
    const link = page.getByRole("link", { name: "Open picture from elsewhere.example" });
    await expect.poll(() => link.getAttribute("rel")).toContain("noreferrer");
    await expect.poll(() => page.locator(".answer a").count()).toBe(1);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.harm()).toEqual([]);
    await tab.screenshot("page-workspace-links");
    // What the missing file answered.
    tab.allowErrors("404");
  });
});

/** One pixel. */
const PNG = Uint8Array.from(
  Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  ),
);
