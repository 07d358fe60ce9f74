import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { dataOf, textSeen } from "../support/drain.ts";
import { gate } from "../support/gate.ts";
import { serve } from "../support/process.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";

const ONE = `agents: { helper: { model: "scripted:test", system_prompt: First., tools: [gate] } }`;
const TWO = `agents: { helper: { model: "scripted:test", system_prompt: { file: prompt.md } }, other: {} }`;

const agentsOf = async (url: string) => {
  const { items } = (await (await fetch(`${url}/agents`)).json()) as { items: { name: string }[] };
  return items.map(({ name }) => name);
};
const told = ({ others }: Viewer) => others.filter((frame) => frame.startsWith("event: config_changed"));

/** As editors do it. */
async function save(dir: string, name: string, text: string) {
  await writeFile(join(dir, `.${name}.swp`), text);
  await rename(join(dir, `.${name}.swp`), join(dir, name));
}

describe("a change to the agents file", () => {
  test("takes effect without a restart, for all listeners; a run keeps its configuration", async () => {
    const { tool, open, entered } = gate();
    const prompts: unknown[] = [];
    const { url, dir } = await startServer({
      agents: ONE,
      tools: [tool],
      script: ({ system, messages }) => {
        prompts.push(system.find(({ id }) => id === "instructions")?.text);
        return messages.at(-1)?.role === "user" && messages.length === 1
          ? { call: [{ tool: "gate" }] }
          : { say: "ok" };
      },
    });
    const listener = await view(`${url}/events`);
    const run = await post(`${url}/threads/t/runs`, { input: "go" });
    await entered;
    await writeFile(join(dir, "prompt.md"), "Second.");
    await save(dir, "agents.yaml", TWO);
    await expect.poll(() => agentsOf(url)).toEqual(["helper", "other"]);
    await expect.poll(() => told(listener)).toHaveLength(1);
    open();
    await run.ended();
    expect(prompts).toEqual(["First.", "First."]);

    await (await post(`${url}/threads/t/runs`, { input: "again" })).ended();
    expect(prompts.at(-1)).toBe("Second.");
    await save(dir, "prompt.md", "Third.");
    await expect.poll(() => told(listener)).toHaveLength(2);
    await (await post(`${url}/threads/t/runs`, { input: "again" })).ended();
    expect(prompts.at(-1)).toBe("Third.");
    listener.leave();
  });

  test("that is broken changes nothing and is logged until it is corrected", async () => {
    const log: string[] = [];
    const logger = pino({ level: "error" }, { write: (line: string) => log.push(line) });
    const { url, dir } = await startServer({ agents: "agents: { helper: {} }", logger });
    await save(dir, "agents.yaml", "agents: { helper: { modle: x } }");
    await expect.poll(() => log.join()).toMatch(/agents\.yaml:1:\d+.*modle.*model/);
    expect(await agentsOf(url)).toEqual(["helper"]);
    await save(dir, "agents.yaml", "agents: { better: { system_prompt: { file: soon.md } } }");
    await expect.poll(() => log.join()).toMatch(/soon\.md/);
    // The file itself stays as it is: what it names comes.
    await save(dir, "soon.md", "Soon.");
    await expect.poll(() => agentsOf(url)).toEqual(["better"]);
    expect(log).toHaveLength(2);
  });

  test("behind a replaced link is noticed, as on Kubernetes", async () => {
    const dir = await temporaryFolder();
    for (const name of ["one", "two"]) {
      await mkdir(join(dir, name));
      await writeFile(join(dir, name, "agents.yaml"), `agents: { ${name}: {} }`);
    }
    await symlink("one", join(dir, "data"));
    const { url } = await startServer({ config: { agents_file: join(dir, "data", "agents.yaml") } });
    expect(await agentsOf(url)).toEqual(["one"]);
    await symlink("two", join(dir, "next"));
    await rename(join(dir, "next"), join(dir, "data"));
    await expect.poll(() => agentsOf(url)).toEqual(["two"]);
  });

  test("that names another type of backend makes the server depend on it", async () => {
    const config = { backends: { docker: { host: "unix:///no/engine.sock" } } };
    const { url, dir, app } = await startServer({ agents: "agents: { helper: {} }", config });
    const ready = async () => (await fetch(`${url}/ready`)).status;
    expect(await ready()).toBe(200);
    await save(dir, "agents.yaml", "agents: { helper: { backend: { type: docker, image: none } } }");
    await app.reload();
    await expect.poll(ready).toBe(503);
  });

  test("without a difference counts as no change", async () => {
    const { url, dir, app } = await startServer({ agents: ONE, tools: [gate().tool] });
    const listener = await view(`${url}/events`);
    await save(dir, "agents.yaml", `# Only a comment.\n${ONE}`);
    await app.reload();
    await save(dir, "agents.yaml", ONE.replace("First.", "Other."));
    await app.reload();
    // What was published before this has arrived with it.
    await fetch(`${url}/threads`, { method: "POST" });
    await expect.poll(() => listener.others.join()).toContain("event: thread_changed");
    expect(told(listener)).toHaveLength(1);
    listener.leave();
  });
});

test("SIGHUP reloads the agents file immediately", async () => {
  const dir = await temporaryFolder();
  const { url, child } = await serve(dir, "- { say: ok }");
  const script = join(dir, "other.yaml");
  await writeFile(script, "- { say: other }");
  await writeFile(join(dir, "agents.yaml"), `agents: { second: { model: "scripted:${script}" } }`);
  child.kill("SIGHUP");
  await expect.poll(() => agentsOf(url)).toEqual(["second"]);
  const events = await (await post(`${url}/threads/t/runs`, { input: "go" })).ended();
  expect(textSeen(events)).toBe("other");
  expect(dataOf(events, "run_start")[0]?.agent).toBe("second");
});
