import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { app } from "../../examples/browser/main.ts";
import { serve } from "../support/process.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";

/** The page's own server, in front of Skein at `url`. */
async function open({ url }: { url: string }): Promise<string> {
  const page = app(new URL(url));
  page.listen(0, "127.0.0.1");
  await once(page, "listening");
  onTestFinished(() => {
    page.closeAllConnections();
    page.close();
  });
  const address = page.address() as AddressInfo; // of a port that is listened on
  return `http://127.0.0.1:${address.port}`;
}

/** As much of an element as the page uses. */
function element() {
  const children: { textContent: string }[] = [];
  const listeners = new Map<string, (event: object) => Promise<void>>();
  return {
    ...{ children, value: "Go.", textContent: "", disabled: false },
    append: (child: { textContent: string }) => void children.push(child),
    replaceChildren: (...all: { textContent: string }[]) => void children.splice(0, children.length, ...all),
    remove: () => {},
    addEventListener: (name: string, listener: (event: object) => Promise<void>) =>
      void listeners.set(name, listener),
    fire: (name: string) => listeners.get(name)?.({ preventDefault() {} }),
  };
}

/** Loads the page as a browser does: the document, its script, and what that imports. */
async function load(origin: string) {
  const get = async (path: string) => {
    const response = await fetch(origin + path);
    expect(response.ok, path).toBe(true);
    return (await response.text()).replace(/^\/\/# sourceMappingURL.*/m, "");
  };
  const script = /<script type="module">(.*)<\/script>/s.exec(await get("/"))?.[1] ?? "";
  const folder = await temporaryFolder();
  const modules = ["/client/client.js"];
  for (const module of modules) {
    const text = await get(module);
    await mkdir(join(folder, dirname(module)), { recursive: true });
    await writeFile(join(folder, module), text);
    for (const [, name = ""] of text.matchAll(/from "(\.[^"]+)"/g)) {
      const { pathname } = new URL(name, `${origin}${module}`);
      if (!modules.includes(pathname)) modules.push(pathname);
    }
  }
  await writeFile(join(folder, "page.js"), script.replace("/client/client.js", "./client/client.js"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');

  const byId = new Map<string, ReturnType<typeof element>>();
  const found = (id: string) => byId.get(id) ?? byId.set(id, element()).get(id) ?? element();
  vi.stubGlobal("location", { origin });
  vi.stubGlobal("document", { getElementById: found, createElement: element });
  onTestFinished(() => void vi.unstubAllGlobals());
  await import(/* @vite-ignore */ pathToFileURL(join(folder, "page.js")).href);
  return { send: () => found("form").fire("submit"), texts: (id: string) => textsOf(found(id)) };
}

const textsOf = ({ children }: ReturnType<typeof element>) => children.map(({ textContent }) => textContent);

test("the page shows a run's text, tools and todos", async () => {
  const script = `
- say: First a plan.
  call: [{ tool: write_todos, args: { todos: [{ id: "1", title: Look, status: in_progress }] } }]
- say: "<b>Done.</b>"
`;
  const origin = await open(await serve(await temporaryFolder(), script, { STORE: "memory" }));
  const page = await load(origin);
  await page.send();
  expect(page.texts("log")).toEqual([
    "> Go.",
    "First a plan.",
    expect.stringMatching(/^write_todos \{.*"Look".*\}\n✓ [\d.]+ ms$/),
    "<b>Done.</b>",
  ]);
  expect(page.texts("todos")).toEqual(["▶ Look"]);
});

test("the page's server passes events on as they arrive", async () => {
  const origin = await open(await startServer({ script: [{ say: "word never", delay_ms: 600_000 }] }));
  const viewer = await post(`${origin}/threads/t1/runs`, { input: "Go.", on_disconnect: "cancel" });
  await viewer.until((event) => event.event === "on_chat_model_start");
  viewer.leave();
  // That the viewer left is handed on as well: the run that was to end with it is cancelled.
  const status = async () => {
    const response = await fetch(`${origin}/threads/t1`);
    return ((await response.json()) as { status: string }).status;
  };
  await expect.poll(status).toBe("idle");
});

test("the page's server connects only to its own server", async () => {
  const origin = await open(await startServer());
  const { port } = new URL(origin);
  const ask = async (path: string, host: string) => {
    const asked = request({ port, host: "127.0.0.1", path, headers: { host } }).end();
    const [answer] = await once(asked, "response");
    answer.resume();
    return answer.statusCode as number;
  };
  expect(await ask("//example.com/health", "localhost")).toBe(404);
  expect(await ask("/agents", "evil.example")).toBe(403);
  expect(await ask("/health", "localhost")).toBe(200);
});
