import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineHook, type Hook } from "../../../src/agent/core/hook.ts";
import {
  assistantMessage,
  type ToolCall,
  toolMessages,
  userMessage,
} from "../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { type Rule, RuleSpec } from "../../../src/agent/hooks/permissions/rule.ts";
import { loadRules, saveRules } from "../../../src/agent/hooks/permissions/stored-rules.ts";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";
import { createAgent } from "../../../src/index.ts";
import { checkGrammar } from "../../../src/protocol/grammar.ts";
import { agentWith, collect } from "../../support/library.ts";
import { temporaryFolder } from "../../support/server.ts";

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  parameters: z.object({ of: z.number() }),
  annotations: { readOnly: true },
  execute: ({ of }) => String(2 * of),
});

describe("an agent in a program", () => {
  test("answers, calls the program's own tools, and returns its usage", async () => {
    const agent = agentWith(
      [
        { call: [{ tool: "double", args: { of: 21 } }], usage: { input_tokens: 7, output_tokens: 3 } },
        { say: "It is 42.", usage: { input_tokens: 9, output_tokens: 4 } },
      ],
      { tools: [double] },
    );
    const result = await agent.run("Double 21.").result;
    expect(result).toMatchObject({ status: "success", stop_reason: "end_turn", text: "It is 42." });
    expect(result.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(result.message).toBe(result.messages.at(-1));
    expect(result.usage).toMatchObject({ input_tokens: 16, output_tokens: 7 });
  });

  test("has exactly the built-in tools that its list names, in addition to the program's own", async () => {
    const requests: ModelRequest[] = [];
    const model = scriptedModel((request) => {
      requests.push(request);
      return { say: "ok" };
    });
    const backend = { type: "local" } as const;
    const agent = createAgent({ model, tools: [double], backend });
    await agent.run("Go.").result;
    await agent.with({ tools: [double, "read_file"] }).run("Go.").result;
    const offered = requests.map(({ tools }) => tools.map(({ name }) => name));
    expect(offered[0]).toContain("execute");
    expect(offered[1]).toEqual(["double", "read_file"]);
  });

  test("runs a custom model under any name; one without a name is refused", async () => {
    const model = scriptedModel([{ say: "ok" }], "my model");
    const agent = createAgent({ model });
    const { message } = await agent.run("Go.").result;
    expect(message).toMatchObject({ content: "ok", model: "my model" });
    expect(() => createAgent({ model: { ...model, name: "" } })).toThrow(
      "agent `agent`: model needs a `name`, which events and usage show",
    );
    expect(() => createAgent({ model: "large" })).toThrow(
      "agent `agent`: model `large` must be provider:model, for example openai:gpt-5",
    );
  });

  test("decides calls by the program's own conditions, and by rules from a file", async () => {
    const file = join(await temporaryFolder(), "rules.json");
    const [ofFile] = z.array(RuleSpec).parse([{ deny: "double", arguments: { of: 3 } }]);
    if (!ofFile) throw new Error("There is no rule.");
    await saveRules(file, [ofFile]);
    const isSmall = ({ args }: ToolCall) => Number(args.of) < 10;
    const own = {
      id: "small",
      scope: "agent",
      priority: 0,
      decision: "allow",
      matcher: { custom: isSmall },
    } as const;
    const call = [3, 4, 40].map((of) => ({ tool: "double", args: { of } }));
    const permission_rules: Rule[] = [own, ...(await loadRules(file))];
    const agent = agentWith([{ call }, { say: "ok" }], {
      ...{ tools: [double], permission_rules, permissions: { mode: "dont_ask" } },
    });
    const { messages } = await agent.run("Double them.").result;
    const results = toolMessages(messages).map(({ content, error }) => error?.split(".")[0] ?? content);
    expect(results.toSorted()).toEqual(["8", ...Array(2).fill(expect.stringMatching(/^Permission denied/))]);
  });

  test("streams a well-formed run from its beginning, whenever it is requested", async () => {
    const handle = agentWith([{ say: "one two" }]).run("Hello");
    await handle.result;
    const events = await collect(handle.events());
    expect(checkGrammar(events)).toEqual([]);
    expect(await collect(handle.events(events.length - 1))).toEqual([events.at(-1)]);
  });

  test("continues a named thread", async () => {
    const agent = agentWith(({ messages }) => ({ say: `${messages.length}` }));
    await agent.run("a", { thread: "t1" }).result;
    expect((await agent.run("b", { thread: "t1" }).result).text).toBe("3");
    expect((await agent.run("c").result).text).toBe("1");
  });

  test("keeps the threads of different users apart", async () => {
    const agent = agentWith(({ messages }) => ({ say: `${messages.length}` }));
    await agent.run("a", { thread: "t1", user: "ada" }).result;
    expect((await agent.run("b", { thread: "t1", user: "bob" }).result).text).toBe("1");
  });

  test("accepts messages from elsewhere", async () => {
    const agent = agentWith(({ messages }) => ({ say: messages.map(({ content }) => content).join("|") }));
    const { text } = await agent.run([userMessage("a"), assistantMessage("b"), userMessage("c")]).result;
    expect(text).toBe("a|b|c");
  });

  test.each<[string, string | []]>([
    ["an empty text", " "],
    ["no message", []],
  ])("refuses %s immediately", (_, input) => {
    expect(() => agentWith([]).run(input)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });

  test("returns a failure of the model as the result", async () => {
    const { status, error } = await agentWith([{ fail: { code: "model_auth", message: "No key." } }]).run("x")
      .result;
    expect(status).toBe("error");
    expect(error).toMatchObject({ code: "model_auth", message: "No key." });
  });

  test("stops at its limit of model calls, and names the limit", async () => {
    const agent = agentWith(() => ({ call: [{ tool: "double", args: { of: 1 } }] }), {
      ...{ tools: [double], max_iterations: 2 },
    });
    expect(await agent.run("x").result).toMatchObject({ status: "error", stop_reason: "max_iterations" });
  });

  test("can be cancelled by a signal during a model call", async () => {
    const cancelled = new AbortController();
    const handle = agentWith([{ say: "slow", delay_ms: 60_000 }]).run("x", {
      signal: cancelled.signal,
    });
    for await (const { event } of handle.events()) if (event === "on_chat_model_start") cancelled.abort();
    expect(await handle.result).toMatchObject({ status: "cancelled" });
  });

  test("is a different agent with other options", async () => {
    const seen: ModelRequest[] = [];
    const first = agentWith((request) => {
      seen.push(request);
      return { say: "ok" };
    });
    const second = first.with({
      system_prompt: "Be brief.",
      tools: [double],
      hook_settings: { todos: false },
    });
    await first.run("x").result;
    await second.run("x").result;
    expect(seen.map(({ tools }) => tools.map(({ name }) => name))).toEqual([["write_todos"], ["double"]]);
    expect(seen[1]?.system.map(({ text }) => text)).toContain("Be brief.");
  });
});

describe("custom hooks", () => {
  const told = (name: string, lines: string[]) => (): Hook => ({
    name,
    async *wrapModelCall(request, next) {
      lines.push(`${name} in`);
      const completion = yield* next(request);
      lines.push(`${name} out`);
      return completion;
    },
  });

  test("are outside of Skein's, in order", async () => {
    const lines: string[] = [];
    await agentWith([{ say: "ok" }], { hooks: [told("a", lines), told("b", lines)] }).run("x").result;
    expect(lines).toEqual(["a in", "b in", "b out", "a out"]);
  });

  test("can have a position among Skein's", async () => {
    const lines: string[] = [];
    const script = [{ fail: { code: "model_overloaded" } }, { say: "ok" }];
    const hooks = [
      { hook: told("inside", lines), after: "retry" },
      { hook: told("outside", lines), before: "retry" },
    ];
    await agentWith(script, { hooks, hook_settings: { retry: { base_ms: 1 } } }).run("x").result;
    expect(lines).toEqual(["outside in", "inside in", "inside in", "inside out", "outside out"]);
  });

  test("are created for each run", async () => {
    let made = 0;
    const agent = agentWith(() => ({ say: "ok" }), {
      hooks: [() => ({ name: `made${++made}` })],
    });
    await agent.run("x").result;
    await agent.run("y").result;
    expect(made).toBe(2);
  });

  test("accept options by name if they are defined with a name", async () => {
    const seen: unknown[] = [];
    const mine = defineHook({
      name: "mine",
      options: z.object({ size: z.number().default(1) }),
      activeByDefault: () => true,
      create(options) {
        seen.push(options);
        return { name: "mine" };
      },
    });
    await agentWith([{ say: "ok" }], { hooks: [mine], hook_settings: { mine: { size: 5 } } }).run("x").result;
    expect(seen).toEqual([{ size: 5 }]);
  });
});

describe("options", () => {
  test("report every problem at once", () => {
    const make = () =>
      createAgent({
        name: "no/name",
        model: "unknown:model",
        context_window: 1,
        hook_settings: { todoes: false, retry: { attempts: 0 } },
        memory: { paths: ["/x"] },
      });
    for (const fault of [
      "agent `no/name`: name must be 1 to 64",
      "context_window must be at least 1000",
      "hook_settings.todoes unknown key `todoes`; did you mean `todos`?",
      "hook_settings.retry.attempts must be at least 1",
      "memory needs a `backend`",
      "There is no model provider `unknown`",
    ])
      expect(make).toThrow(fault);
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      "an unknown place for a hook",
      () => createAgent({ hooks: [{ hook: () => ({ name: "x" }), before: "retri" }] }),
      /no hook `retri`; did you mean `retry`/,
    ],
    ["an unknown option", () => createAgent({ name: "painter", ...{ colour: "red" } }), /colour/],
    [
      "two blocks of one id",
      () =>
        createAgent({
          system_prompt: [
            { id: "a", text: "x" },
            { id: "a", text: "y" },
          ],
        }),
      /two blocks with the id `a`/,
    ],
  ])("refuse %s", (_, make, message) => expect(make).toThrow(message));

  test("default to the demo of an environment without keys", () => {
    expect(createAgent({ env: {} }).definition).toMatchObject({ name: "agent", model: "scripted:demo" });
    expect(createAgent({ env: { OPENAI_API_KEY: "k" } }).definition.model).toBe("openai:gpt-5-mini");
  });

  test("count the first of several tools with the same name", async () => {
    const other = { ...double, description: "The other one." };
    const seen: ModelRequest[] = [];
    const script = (request: ModelRequest) => {
      seen.push(request);
      return { say: "ok" };
    };
    await agentWith(script, { tools: [double, other], hook_settings: { todos: false } }).run("x").result;
    expect(seen[0]?.tools.map(({ description }) => description)).toEqual(["Doubles a number."]);
  });
});
