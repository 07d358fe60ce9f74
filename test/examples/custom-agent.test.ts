import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { fillWorkspace } from "../../examples/custom-agent/fill-workspace.ts";
import type { ModelRequest } from "../../src/index.ts";
import { serve, skein } from "../support/process.ts";
import { startServer, temporaryFolder } from "../support/server.ts";

const FOLDER = fileURLToPath(new URL("../../examples/custom-agent", import.meta.url));
const AGENTS_FILE = join(FOLDER, "agents.yaml");
const FILES = ["AGENTS.md", "skills/changelog/SKILL.md", "skills/house-style/SKILL.md"];

const start = (url: string, body: object) =>
  fetch(`${url}/threads/t1/runs`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  }).then((response) => response.json() as Promise<{ status: string }>);

test("`skein config check` accepts the file", async () => {
  const check = skein(["config", "check"], { AGENTS_FILE });
  expect(await check.exited).toBe(0);
  expect(check.output()).toBe("ok: 2 agents\n");
});

test("a server runs it, and its workspace contains the prepared files", async () => {
  const { url } = await serve(await temporaryFolder(), "[]", { STORE: "memory", AGENTS_FILE });
  expect(await fillWorkspace(url, "writer")).toEqual(FILES);
  expect(await start(url, { input: "Hello" })).toMatchObject({ agent: "writer", status: "success" });
  // The other agent names the same workspace.
  const response = await fetch(`${url}/backend/files/AGENTS.md?agent=reader`);
  expect(await response.text()).toBe(await readFile(join(FOLDER, "workspace/AGENTS.md"), "utf8"));
});

test("its model receives the prompt, the skills and the memory", async () => {
  const dir = await temporaryFolder();
  await cp(FOLDER, dir, { recursive: true });
  const requests: ModelRequest[] = [];
  const script = (request: ModelRequest) => {
    requests.push(request);
    return { say: "ok" };
  };
  const { url } = await startServer({ dir, agents: await readFile(AGENTS_FILE, "utf8"), script });
  await fillWorkspace(url, "writer");
  for (const agent of ["writer", "reader"]) await start(url, { agent, input: "Hello" });
  const [writer = "", reader = ""] = requests.map(({ system }) =>
    system.map(({ text }) => text).join("\n\n"),
  );
  expect(writer).toContain("You write release notes");
  expect(writer).toContain("[changelog] How to write an entry of a changelog → Read /workspace/skills/");
  expect(writer).toContain("Short sentences, present tense");
  for (const prompt of [writer, reader]) expect(prompt).toContain("Never mention a ticket's number.");
  expect(reader).not.toContain("changelog");
  expect(requests[1]?.tools.map(({ name }) => name)).not.toContain("write_todos");
});
