import { Buffer } from "node:buffer";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

/** One pixel. */
const PNG = Uint8Array.from(
  Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  ),
);

/** A workspace in which the agent has written `notes/plan.md`, edited it, and written a large file; they are on view. */
async function workspace() {
  const { url } = await startServer({
    script: [
      {
        say: "a",
        call: [
          { tool: "write_file", args: { path: "notes/plan.md", content: "one\ntwo\n" } },
          { tool: "write_file", args: { path: "large.csv", content: "1,2\n".repeat(10_000) } },
        ],
      },
      {
        say: "b",
        call: [{ tool: "edit_file", args: { path: "notes/plan.md", old_text: "two", new_text: "three" } }],
      },
      { say: "c" },
    ],
  });
  await runs(url, "work", { input: "go" });
  const file = (path: string) => `${url}/backend/files/${path}`;
  const tab = await seen(url);
  await tab.go("#/t/work/files", "Changed by the agent");
  const button = (name: string) => tab.page.getByRole("button", { name, exact: true });
  return {
    ...tab,
    button,
    read: async (path: string) => (await fetch(file(path))).text(),
    write: async (path: string, body: string | Uint8Array<ArrayBuffer>) =>
      void (await fetch(file(path), { method: "PUT", body })),
    open: async (...names: string[]) => {
      for (const name of names) await button(name).click();
    },
  };
}

describe("the files on the page", () => {
  test("an edited file can be saved", async () => {
    const { page, open, button, read } = await workspace();
    await open("notes/", "plan.md", "Edit");
    await page.getByRole("textbox", { name: "Text of notes/plan.md" }).fill("mine\n");
    await button("Save").click();
    await page.getByText("mine").waitFor();
    await expect.poll(() => read("notes/plan.md")).toBe("mine\n");
  });

  test("the agent's changes during an edit are shown, and lost only if the user agrees", async () => {
    const { page, open, button, read, write } = await workspace();
    await open("notes/", "plan.md", "Edit");
    await page.getByRole("textbox", { name: "Text of notes/plan.md" }).fill("mine\n");
    await write("notes/plan.md", "theirs\n");
    await button("Save").click();
    await page.getByText("This file was changed since you opened it").waitFor();
    await expect.poll(() => page.getByRole("row", { name: "removed: theirs" }).count()).toBe(1);
    await expect.poll(() => read("notes/plan.md")).toBe("theirs\n");
    await button("Save mine").click();
    await button("Edit").waitFor();
    await expect.poll(() => read("notes/plan.md")).toBe("mine\n");
  });

  test("the agent's changes at the moment of saving are not overwritten", async () => {
    const { page, open, button, read, write, allowErrors } = await workspace();
    await open("notes/", "plan.md", "Edit");
    await page.getByRole("textbox", { name: "Text of notes/plan.md" }).fill("mine\n");
    await page.route("**/backend/files/notes/plan.md*", async (route) => {
      if (route.request().method() === "PUT") await write("notes/plan.md", "theirs\n");
      await route.continue();
    });
    await button("Save").click();
    await page.getByText("This file was changed since you opened it").waitFor();
    await expect.poll(() => page.getByRole("row", { name: "removed: theirs" }).count()).toBe(1);
    await expect.poll(() => read("notes/plan.md")).toBe("theirs\n");
    await page.unroute("**/backend/files/notes/plan.md*");
    // Chromium's own line about the answer.
    allowErrors("412");
    await button("Save mine").click();
    await button("Edit").waitFor();
    await expect.poll(() => read("notes/plan.md")).toBe("mine\n");
  });

  test("typed text survives closing its dialog, with the file that it was based on", async () => {
    const { page, open, button, write } = await workspace();
    await open("notes/", "plan.md", "Edit");
    await page.getByRole("textbox", { name: "Text of notes/plan.md" }).fill("mine\n");
    await button("Close").click();
    await write("notes/plan.md", "theirs\n");
    await open("plan.md");
    await expect
      .poll(() => page.getByRole("textbox", { name: "Text of notes/plan.md" }).inputValue())
      .toBe("mine\n");
    await button("Save").click();
    await page.getByText("This file was changed since you opened it").waitFor();
  });

  test("a file can be uploaded, and replaces one with its name only after a confirmation", async () => {
    const { page, button, read } = await workspace();
    const choose = async (text: string) => {
      const chooser = page.waitForEvent("filechooser");
      await button("Upload files").click();
      await (await chooser).setFiles({ name: "a b.txt", mimeType: "text/plain", buffer: Buffer.from(text) });
    };
    await choose("first");
    await button("a b.txt").waitFor();
    await choose("second");
    await page.getByRole("dialog", { name: "Replace files?" }).waitFor();
    await expect.poll(() => read("a%20b.txt")).toBe("first");
    await button("Replace").click();
    await expect.poll(() => read("a%20b.txt")).toBe("second");
  });

  test("an image is shown by its contents, and SVG only as text", async () => {
    const { page, open, button, write, harm } = await workspace();
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"/>`;
    await write("picture.txt", PNG);
    await write("drawing.png", svg);
    await open("Refresh files", "picture.txt");
    await page.getByRole("img", { name: "picture.txt" }).waitFor();
    await open("Close", "drawing.png");
    await page.getByText(svg).waitFor();
    await expect.poll(() => page.getByRole("dialog").getByRole("img").count()).toBe(0);
    await button("Close").click();
    expect(await harm()).toEqual([]);
  });

  test("the agent's changes are shown line by line", async () => {
    const { page, open } = await workspace();
    await page.locator(".changed li", { hasText: "notes/plan.md" }).getByText("+1 −1").waitFor();
    await page.locator(".changed li", { hasText: "large.csv" }).getByText("written").waitFor();
    await open("notes/plan.md");
    const rows = page.getByRole("region", { name: "Difference" }).getByRole("row");
    const texts = async () => (await rows.allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim());
    await expect.poll(texts).toEqual(["1 1 one", "2 − removed: two", "2 + added: three"]);
  });

  test("a download contains the whole file, and a deleted file is removed", async () => {
    const { page, open, button, write, read } = await workspace();
    const long = "0123456789\n".repeat(50_000);
    await write("long.log", long);
    await open("Refresh files", "long.log");
    await page.getByText("The first 256 KB are shown").waitFor();
    const download = page.waitForEvent("download");
    await button("Download").click();
    const stream = await (await download).createReadStream();
    let bytes = 0;
    for await (const chunk of stream) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(long.length);
    await open("Delete");
    await page.getByRole("group").getByRole("button", { name: "Delete" }).click();
    await button("long.log").waitFor({ state: "detached" });
    await expect.poll(() => read("long.log")).toContain("not_found");
  });

  test("the sandbox can be stopped and started, and its state is shown", async () => {
    const { page, button } = await workspace();
    await button("Stop").click();
    await page.getByRole("group").getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    await button("Start").click();
    await page.getByText("Running", { exact: true }).waitFor();
    await button("notes/").waitFor();
  });
});
