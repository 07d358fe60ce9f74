// The types of the client as it is built, in a project that has nothing but them and a browser's.

import { execFile } from "node:child_process";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/server.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const USE = `
import { createClient, type Message, partOf, ProblemError } from "./client/client.js";
import { trackPhase } from "./client/phase.js";
import { openThread } from "./client/thread.js";

export async function use(input: HTMLInputElement): Promise<string | undefined> {
  const client = createClient({ baseUrl: location.origin, headers: async () => ({ authorization: "Bearer x" }) });
  const [file] = input.files ?? [];
  const text = { type: "text", text: "What is this?" } as const;
  if (file) await client.start("t", { messages: [{ role: "user", content: [text, await partOf(file, file.name)] }] });
  const messages: Message[] = (await client.threads.state("t")).messages;
  const phase = trackPhase();
  for await (const event of client.follow("t")) {
    if (event.event === "on_tool_end") return event.data.output;
    document.title = phase(event).name + messages.length;
  }
  const { cells } = openThread(client, "t").getSnapshot();
  // @ts-expect-error: a method's input is checked.
  await client.threads.rename("t", { title: "New" }).catch((error) => error instanceof ProblemError);
  return cells.flatMap((cell) => (cell.kind === "text" ? [cell.text] : []))[0];
}
`;

test("the client's types do not need Node's types or any package's", async () => {
  const dir = await temporaryFolder();
  await cp(join(ROOT, "dist/client"), join(dir, "client"), { recursive: true });
  await writeFile(join(dir, "use.ts"), USE);
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, skipLibCheck: false },
    ...{ module: "esnext", moduleResolution: "bundler", target: "es2022" },
    ...{ lib: ["es2022", "dom", "dom.iterable"], types: [] },
  };
  await writeFile(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["use.ts"] }));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const said = await promisify(execFile)(process.execPath, [compiler, "-p", dir]).catch((error) => error);
  expect(said.stdout).toBe("");
});
