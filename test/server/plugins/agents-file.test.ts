import { expect, test } from "vitest";
import { dataOf, textSeen } from "../../support/drain.ts";
import { post } from "../../support/sse.ts";
import { plugin, project } from "./project.ts";

const DICE = `
const dice = defineTool({
  name: "roll_dice",
  description: "Rolls a die.",
  parameters: z.object({ sides: z.int().default(6) }),
  annotations: { readOnly: true, requiresPermission: false },
  execute: ({ sides }) => \`\${word} \${sides}\`,
});
const stamp = defineHook({
  name: "stamp",
  options: z.strictObject({ text: z.string().default("-"), fail: z.enum(["no", "throw", "create", "late"]).default("no") }),
  activeByDefault: () => false,
  create({ text, fail }) {
    if (fail === "create") throw new Error("cannot be made");
    return {
      name: "stamp",
      modifyRequest(request) {
        if (fail === "throw") throw new Error("the stamp broke");
        if (fail === "late") void Promise.reject(new Error("no one awaits this"));
        return { ...request, system: [...request.system, { id: "stamp", text, cache: "dynamic" }] };
      },
    };
  },
});
const answer = (message) => message.role === "tool" ? message.content : "";
const echo = ({ model }) => ({
  name: "anything",
  async *stream({ messages, system }) {
    const last = messages.at(-1);
    const calls = last.role === "user" ? [{ id: crypto.randomUUID(), name: "roll_dice", args: { sides: 20 } }] : [];
    const content = calls.length > 0 ? "" : \`\${model}: \${answer(last)} \${system.find(({ id }) => id === "stamp")?.text}\`;
    if (content) yield { event: "on_chat_model_stream", data: { delta: content } };
    return { content, tool_calls: calls, reasoning: [], stop_reason: calls.length > 0 ? "tool_use" : "end_turn", usage: NO_USAGE };
  },
});
`;
const PLUGIN = plugin(
  "mine",
  'tools: [dice], hooks: [{ hook: stamp, after: "retry" }], models: { echo }',
  `import { NO_USAGE } from "skein";\nimport { word } from "./word.ts";\n${DICE}`,
);
const AGENTS = `
plugins: [./plugin.ts, own-package]
agents:
  ok: { model: "echo:m1", tools: [roll_dice, from_package], hooks: { stamp: { text: seen } } }
  throws: { model: "echo:m1", hooks: { stamp: { fail: throw } } }
  unmade: { model: "echo:m1", hooks: { stamp: { fail: create } } }
  late: { model: "echo:m1", tools: [roll_dice], hooks: { stamp: { fail: late } } }
`;
const FILES = {
  "plugin.ts": PLUGIN,
  "word.ts": "console.log('the word is loaded');\nexport const word: string = 'rolled';\n",
  "agents.yaml": AGENTS,
  "node_modules/own-package/package.json":
    '{ "name": "own-package", "type": "module", "exports": { "import": "./main.js" } }',
  "node_modules/own-package/main.js": plugin(
    "packaged",
    'tools: [defineTool({ name: "from_package", description: "x", parameters: z.object({}), execute: () => "" })]',
  ),
};

const said = async (url: string, agent: string, thread: string = agent) => {
  const events = await (await post(`${url}/threads/${thread}/runs`, { input: "go", agent })).ended();
  return { text: textSeen(events), errors: dataOf(events, "error") };
};
const agentAt = async (url: string) =>
  (await (await fetch(`${url}/agents/ok`)).json()) as { tools: string[]; hooks: string[]; model: string };

test("agents use a plugin's tools, hooks and models; a hook's error ends its run, not the server", async () => {
  const { serve } = await project(FILES);
  const { url, output } = await serve();
  expect(await said(url, "ok")).toEqual({ text: "m1: rolled 20 seen", errors: [] });
  const agent = await agentAt(url);
  expect(agent.tools).toEqual(expect.arrayContaining(["roll_dice", "from_package"]));
  expect(agent.hooks.slice(0, 3)).toEqual(["tracing", "retry", "stamp"]);

  expect((await said(url, "throws")).errors).toMatchObject([
    { code: "hook_failed", message: "Hook `stamp` failed: the stamp broke" },
  ]);
  expect((await said(url, "unmade")).errors).toMatchObject([
    { code: "hook_failed", message: "Hook `stamp` failed: cannot be made" },
  ]);
  await expect.poll(output).toMatch(/the stamp broke/);
  expect((await said(url, "late")).text).toBe("m1: rolled 20 -");
  await expect.poll(output).toMatch(/no one awaits this.*a promise was rejected and nothing handled it/);
  expect((await said(url, "ok", "again")).text).toBe("m1: rolled 20 seen");
});

test("a plugin turns functions of another framework into its hooks with `skein/adapters`", async () => {
  const { serve } = await project({
    "plugin.ts": plugin(
      "familiar",
      'hooks: [defineHook({ name: "brief", options: z.strictObject({}), activeByDefault: () => true, create: (_, services) => brief(services) })], models: { echo }',
      `import { NO_USAGE } from "skein";\nimport { fromPreGeneration } from "skein/adapters";
      const brief = fromPreGeneration((state) => { state.systemPrompt = "Be brief."; });
      const echo = () => ({ name: "echo:m", async *stream({ system }) {
        const content = system.map(({ text }) => text).join();
        yield { event: "on_chat_model_stream", data: { delta: content } };
        return { content, tool_calls: [], reasoning: [], stop_reason: "end_turn", usage: NO_USAGE };
      } });`,
    ),
    "agents.yaml": "plugins: [./plugin.ts]\nagents: { a: { model: 'echo:m' } }\n",
  });
  const { url } = await serve();
  expect(await said(url, "a")).toEqual({ text: "Be brief.", errors: [] });
});

test("a plugin's model that fails, or returns no reply, fails its runs with its own message", async () => {
  const { serve } = await project({
    "plugin.ts": plugin(
      "odd",
      "models: { throws: odd(async function* () { throw new TypeError('my client has no key'); }), part: odd(async function* () { return { content: 'hi' }; }), promise: odd(async () => ({})), away: odd(async function* () { throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }); }) }",
      "const odd = (stream) => () => ({ name: 'odd:x', stream });",
    ),
    "agents.yaml": `plugins: [./plugin.ts]\nagents: { ${["throws", "part", "promise", "away"].map((name) => `${name}: { model: '${name}:x', hooks: { retry: false } }`).join(", ")} }\n`,
  });
  const { url } = await serve();
  const failure = async (agent: string) => (await said(url, agent)).errors[0];
  expect(await failure("throws")).toMatchObject({
    code: "model_rejected",
    message: "The provider of `throws:x` failed: my client has no key",
  });
  expect((await failure("part"))?.message).toContain(
    "this one lacks `tool_calls`, `reasoning`, `stop_reason`, `usage`",
  );
  expect((await failure("promise"))?.message).toContain("must be an async generator");
  expect(await failure("away")).toMatchObject({ code: "model_unreachable" });
});

test("a changed plugin is loaded again with the files that it imports; a broken one changes nothing", async () => {
  const { serve, write } = await project(FILES);
  const { url, output, child } = await serve();
  /** Read at once, not when the watch looks. */
  const save = async (file: string, content: string) => {
    await write(file, content);
    child.kill("SIGHUP");
  };
  const text = async () => (await said(url, "ok", crypto.randomUUID())).text;
  expect(await text()).toBe("m1: rolled 20 seen");

  await save("agents.yaml", AGENTS.replace("text: seen", "text: noticed"));
  await expect.poll(text).toBe("m1: rolled 20 noticed");
  expect(output().match(/the word is loaded/g)).toHaveLength(1);
  await save("agents.yaml", AGENTS);
  await expect.poll(text).toBe("m1: rolled 20 seen");

  await write("word.ts", "export const word: string = ;\n");
  await expect.poll(output).toMatch(/\.\/word\.ts:1:29: SyntaxError: Expression expected/);
  expect(await text()).toBe("m1: rolled 20 seen");

  await save("word.ts", "export const word: string = 'threw';\n");
  await expect.poll(text).toBe("m1: threw 20 seen");

  // What it imports comes later.
  const waiting = PLUGIN.replace("./word.ts", "./later/word.ts");
  await save("plugin.ts", waiting);
  await expect.poll(output).toMatch(/\.\/plugin\.ts:3:22: there is no file `\.\/later\/word\.ts`/);
  await save("later/word.ts", "export const word = 'lobbed';\n");
  await expect.poll(text).toBe("m1: lobbed 20 seen");

  // The cause of a failure may lie outside the files that the plugin imports.
  const dependent = waiting.replace("word} ", "word} again ");
  await save(
    "plugin.ts",
    `import { existsSync } from "node:fs";\nif (!existsSync(new URL("./ready", import.meta.url))) throw new Error("the service is away");\n${dependent}`,
  );
  await expect.poll(output).toMatch(/the service is away/);
  await save("ready", "");
  await expect.poll(text).toBe("m1: lobbed again 20 seen");

  // The file of a plugin comes later.
  await write(
    "agents.yaml",
    AGENTS.replace("[./plugin.ts", "[./plugin.ts, ./late.ts").replace("seen", "late"),
  );
  await expect.poll(output).toMatch(/there is no file `\.\/late\.ts`/);
  expect(await text()).toBe("m1: lobbed again 20 seen");
  await write("late.ts", plugin("late"));
  await expect.poll(text).toBe("m1: lobbed again 20 late");

  await save("plugin.ts", PLUGIN.replace('"roll_dice",\n', '"throw_dice",\n'));
  await expect.poll(async () => (await agentAt(url)).tools).not.toContain("roll_dice");
  await save("agents.yaml", `agents: { ok: { model: "scripted:demo" } }`);
  await expect.poll(async () => (await agentAt(url)).model).toBe("scripted:demo");
  expect((await fetch(`${url}/agents/late`)).status).toBe(404);
});
