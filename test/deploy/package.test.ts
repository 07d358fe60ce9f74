// What `npm pack` makes, and what it is to those who install it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { names, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { NODE_ENV } from "../support/node.ts";
import { startPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import {
  command,
  folderOfNode,
  freshClone,
  install,
  installed,
  megabytes,
  pack,
  typeErrors,
} from "./support/packed.ts";

const dir = await mkdtemp(join(tmpdir(), "skein-package-"));
const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
afterAll(async () => {
  await Promise.all([redis?.close(), postgres?.close()]);
  await rm(dir, { recursive: true });
});
const onLinux = needing(process.platform === "linux", "Linux, for which npm has Node as a package");

/** It installs all packages, and builds: minutes on a busy machine. */
const INSTALL_MS = 900_000;

let clone: string;
beforeAll(async () => {
  clone = await freshClone(join(dir, "clone"));
}, INSTALL_MS);

describe("the package `skein`", () => {
  let app: string;
  let archive: string;
  beforeAll(async () => {
    archive = await pack(clone);
    app = await install(join(dir, "app"), archive);
  }, INSTALL_MS);

  test("is packed in a fresh clone with everything that it needs, and nothing else", async () => {
    const files = (await command(dir, ["tar", "-tzf", archive]))
      .split("\n")
      .map((name) => name.slice("package/".length));
    const needed = `bin/skein.cjs config/scripts/demo.yaml config/server.yaml dist/licences/zod.txt dist/licences/preact.txt dist/licences/highlight.js.txt dist/swagger-ui/LICENSE dist/swagger-ui/NOTICE dist/client/client.d.ts dist/index.d.ts dist/skein/adapters/index.d.ts
      dist/skein/adapters/index.js dist/index.js dist/main.js dist/page/index.html dist/swagger-ui/swagger-ui.css openapi.yaml agents.yaml deploy/systemd/skein.service LICENSE README.md SECURITY.md`;
    expect(files).toEqual(expect.arrayContaining(needed.split(/\s+/)));
    expect(files.filter((file) => /\.map$|^(src|test|script|packages)\/|\.built$/.test(file))).toEqual([]);
    // Nothing that a program imports has its types from there.
    expect(files.filter((file) => /^dist\/(main|cli\/commands)\.d\.ts$/.test(file))).toEqual([]);
  });

  test("has at most 60 MB and 60 packages, without types of its own and without Node", async () => {
    const packages = await installed(app);
    expect(packages).toContain("skein");
    expect(packages.filter((name) => /^(node(-|$)|@types\/)/.test(name))).toEqual([]);
    expect(packages.length).toBeLessThanOrEqual(60);
    expect(await megabytes(join(app, "node_modules"))).toBeLessThanOrEqual(60);
  });

  test("creates a project that installs from the same archive", async () => {
    const said = await command(app, ["npx", "skein", "init", "mine"]);
    expect(said).toContain(`package.json installs skein from ${archive}`);
    const mine = join(app, "mine");
    const { dependencies } = JSON.parse(await readFile(join(mine, "package.json"), "utf8"));
    expect(dependencies).toEqual({ skein: `file:${archive}` });
    await command(mine, ["npm", "install", "--prefer-offline", "--omit=dev", "--no-audit", "--no-fund"]);
    expect(await command(mine, ["npx", "skein", "config", "check"])).toBe("ok: 1 agent\n");
  });

  test("serves the demo with `npx skein serve`", async () => {
    const { url } = await started(app, ["npx", "skein", "serve"], {
      AGENTS_FILE: "node_modules/skein/agents.yaml",
    });
    const viewer = await post(`${url}/threads/demo/runs`, { input: "Hello, what can you do?" });
    const events = await viewer.ended();
    expect(names(events)).toContain("on_tool_end");
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(textSeen(events)).toContain("385");
    for (const path of ["/", "/docs", "/openapi.yaml"]) expect((await fetch(url + path)).status).toBe(200);
  });

  /** A provider that refuses every call. The run shows that the client of its protocol was there. */
  test.each(["openai", "anthropic"])("calls a model of %s without another package", async (provider) => {
    const model = { provider, model: "none", base_url: "http://127.0.0.1:9/v1", api_key_env: "HOME" };
    await writeFile(join(app, `${provider}.yaml`), JSON.stringify({ version: 1, agents: { a: { model } } }));
    const env = { AGENTS_FILE: `${provider}.yaml`, STORE: "memory" };
    const { url } = await started(app, ["npx", "skein", "serve"], env);
    const viewer = await post(`${url}/threads/demo/runs`, { input: "Hello" });
    expect((await viewer.ended()).at(-1)).toMatchObject({
      event: "error",
      data: { code: "model_unreachable" },
    });
  });

  const demoOn = async (env: Record<string, string>) => {
    const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT: "500" };
    const agents = { AGENTS_FILE: "node_modules/skein/agents.yaml" };
    const { url } = await started(app, ["npx", "skein", "serve"], { ...agents, ...traced, ...env });
    const viewer = await post(`${url}/threads/demo/runs`, { input: "Hello, what can you do?" });
    expect((await viewer.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  };

  needing(redis, "redis-server").test("serves from Redis, with traces, without another package", async () =>
    demoOn({ STORE: "redis", REDIS_URL: redis?.url ?? "" }),
  );

  needing(postgres, "postgres").test(
    "serves from PostgreSQL, with traces, without another package",
    async () => demoOn({ STORE: "postgres", POSTGRES_URL: (await postgres?.database()) ?? "" }),
  );

  test("runs an agent in a program, even a CommonJS one", async () => {
    const program = (load: string) =>
      `${load} const agent = createAgent({ model: "scripted:demo" });
      agent.run("Hello").result.then(({ status }) => (console.log(status), agent.close()));`;
    await writeFile(join(app, "own.mjs"), program('import { createAgent } from "skein";'));
    await writeFile(join(app, "own.cjs"), program('const { createAgent } = require("skein");'));
    for (const file of ["own.mjs", "own.cjs"]) expect(await command(app, ["node", file])).toBe("success\n");
  });

  test("turns the functions of another framework into hooks, with `skein/adapters`", async () => {
    const program = `import { createAgent } from "skein"; import { fromEffect, streamTo } from "skein/adapters";
      const phases = [];
      const agent = createAgent({ model: "scripted:demo", hooks: [fromEffect(({ phase }) => void phases.push(phase))] });
      await streamTo(agent.run("Hello"), { onComplete: () => console.log(phases[0]) });
      await agent.close();`;
    await writeFile(join(app, "adapters.mjs"), program);
    expect(await command(app, ["node", "adapters.mjs"])).toBe("before_complete\n");
  });

  test.each([
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ])("has types that compile with %s %s", async (...options) => {
    const use = `
import { createAgent, defineTool, type Message } from "skein";
import { fromMiddleware, streamTo, withTimeout } from "skein/adapters";
import { createClient } from "skein/client";
import { openThread } from "skein/client/thread";
const agent = createAgent({ model: "scripted:demo", system_prompt: "Be brief.", hooks: [fromMiddleware(withTimeout(60_000))] });
await streamTo(agent.run("Hello"), { onTextDelta: (delta: string) => console.log(delta) });
export const text: string | undefined = (await agent.run("Hello").result).text;
// @ts-expect-error: an option is checked.
createAgent({ modle: "scripted:demo" });
export { createClient, defineTool, type Message, openThread };`;
    await writeFile(join(app, "use.ts"), use);
    expect(await typeErrors(app, "use.ts", ...options)).toBe("");
  });

  onLinux.test("names the required version on an older Node, as a command and as a library", async () => {
    await writeFile(join(app, "load.mjs"), 'import("skein").catch(({ message }) => console.log(message));');
    for (const major of [18, 20, 22]) {
      const path = await folderOfNode(major);
      const said = expect.stringMatching(new RegExp(`Skein needs Node 24 or newer; this is v${major}\\.`));
      expect(await command(app, ["node", "load.mjs"], path)).toEqual(said);
      const refused = await command(app, ["npx", "skein", "--version"], path).catch((error) => error);
      expect(refused).toMatchObject({ code: 1, stderr: said });
    }
  });
});

/** A server that takes requests; asked to stop when the test has finished. */
async function started(cwd: string, [program = "", ...args]: readonly string[], env: Record<string, string>) {
  const options = { cwd, env: { ...NODE_ENV, PORT: "0", HOME: dir, ...env }, detached: true };
  const child = spawn(program, args, options);
  const exited = once(child, "exit");
  const closed = once(child, "close");
  onTestFinished(async () => {
    // npx exits without its server, which is of its group and holds its output open.
    try {
      process.kill(-Number(child.pid), "SIGTERM");
    } catch {
      // All have exited.
    }
    await closed;
  });
  let printed = "";
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        printed += String(chunk);
        const [, address] = /serves on (http:\S+)/.exec(printed) ?? [];
        if (address) resolve(address);
      });
    void exited.then(() => reject(new Error(printed)));
  });
  return { url, child, exited };
}

describe("the package `skein-client`", () => {
  let app: string;
  beforeAll(async () => {
    app = await install(join(dir, "page"), await pack(clone, "--workspace", "skein-client"));
  }, INSTALL_MS);

  test("has no dependencies, the version of `skein`, and the licence", async () => {
    expect(await installed(app)).toEqual(["skein-client"]);
    const versionOf = async (file: string) => JSON.parse(await readFile(file, "utf8")).version;
    expect(await versionOf(join(app, "node_modules/skein-client/package.json"))).toBe(
      await versionOf(join(clone, "package.json")),
    );
    expect(await readFile(join(app, "node_modules/skein-client/LICENSE"), "utf8")).toContain("MIT License");
  });

  test.each([
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ])("has types that compile with %s %s, and need no others", async (...options) => {
    const use = `
import { createClient, type Message } from "skein-client";
import { trackPhase } from "skein-client/phase";
import { openThread } from "skein-client/thread";
const client = createClient({ baseUrl: "http://127.0.0.1:8000" });
export const messages: Message[] = (await client.threads.state("t")).messages;
// @ts-expect-error: a method's input is checked.
await client.threads.rename("t", { title: "New" });
export const { cells } = openThread(client, "t").getSnapshot();
export { trackPhase };`;
    await writeFile(join(app, "use.ts"), use);
    const alone = ["--types", "", "--lib", "es2024,dom,dom.iterable"];
    expect(await typeErrors(app, "use.ts", ...alone, ...options)).toBe("");
  });

  for (const major of [18, 20, 24])
    onLinux.test(`follows a run on Node ${major}`, async () => {
      const { url } = await startServer({ script: [{ say: "Hello." }] });
      const program = `
      import { createClient } from "skein-client";
      import { trackPhase } from "skein-client/phase";
      import { openThread } from "skein-client/thread";
      const client = createClient({ baseUrl: ${JSON.stringify(url)} });
      const phase = trackPhase();
      let last;
      for await (const event of client.run("t1", { input: "go" })) last = phase(event).name;
      const { messages } = await client.threads.state("t1");
      console.log(last, messages.at(-1).content, typeof openThread);`;
      await writeFile(join(app, "talk.mjs"), program);
      const said = await command(app, ["node", "talk.mjs"], await folderOfNode(major));
      expect(said).toMatch(/^\w+ .*Hello\..* function\n$/s);
    });
});
