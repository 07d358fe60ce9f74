import { spawnSync } from "node:child_process";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Hook } from "../../../../src/agent/core/hook.ts";
import type { ItemStore } from "../../../../src/agent/core/items.ts";
import { type ToolCall, toolMessages } from "../../../../src/agent/core/message.ts";
import { defineTool, type TraceRecorder } from "../../../../src/agent/core/tool.ts";
import { filesystem } from "../../../../src/agent/hooks/filesystem/index.ts";
import { permissions } from "../../../../src/agent/hooks/permissions/index.ts";
import { compileRule } from "../../../../src/agent/hooks/permissions/match.ts";
import type { Rule } from "../../../../src/agent/hooks/permissions/rule.ts";
import {
  addSessionRule,
  clearSessionRules,
  ruleFor,
  sessionRules,
} from "../../../../src/agent/hooks/permissions/stored-rules.ts";
import { type Script, scriptedModel } from "../../../../src/agent/models/scripted.ts";
import { createMemoryStores } from "../../../../src/engine/stores/memory/index.ts";
import { sharedTick } from "../../../../src/lib/ticks.ts";
import type { Answer } from "../../../../src/protocol/interrupt.ts";
import { type Play, type Played, plainTool, play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { needing } from "../../../support/needing.ts";
import { agentWith, made } from "../made.ts";
import { workspace } from "../workspace.ts";
import { callOf } from "./given.ts";

const ran: string[] = [];
const tool = (name: string, category: "execute" | "write") =>
  defineTool({
    ...{ name, description: "", parameters: z.object({ command: z.string() }), annotations: { category } },
    execute({ command }) {
      ran.push(command);
      return `ran ${command}`;
    },
  });
const tools = [tool("execute", "execute"), tool("write_file", "write")];

/** One turn in which the model runs these commands. */
function running(commands: readonly string[], options: Record<string, unknown>, more: Play = {}) {
  ran.length = 0;
  const call = commands.map((command) => ({ tool: "execute", args: { command } }));
  const hooks = [...(more.hooks ?? []), made(permissions, { options })];
  return play({ script: [{ call }, { say: "ok" }], tools, ...more, hooks });
}

test("an agent has the hook if its configuration sets it", () => {
  expect(permissions.activeByDefault(agentWith())).toBe(false);
  const sample = {
    mode: "default",
    rules: [
      { allow: "read_file" },
      { ask: "execute", command_prefix: ["git"] },
      { deny: "execute", regex: "rm -rf" },
    ],
  };
  expect(permissions.options.parse(sample)).toMatchObject({ rules: [{}, {}, {}] });
  expect(permissions.options.safeParse({ rules: [{ custom: "x" }] }).success).toBe(false);
});

test("a person is asked before the agent writes its own instructions", async () => {
  const backend = await workspace({});
  const hook = made(permissions, {
    ...{ backend, options: { mode: "accept_edits" }, agent: { memory: { paths: ["AGENTS.md"] } } },
  });
  const call = ["AGENTS.md", "notes.md"].map((command) => ({ tool: "write_file", args: { command } }));
  const { outcome } = await play({ script: [{ call }, { say: "ok" }], tools, hooks: [hook] });
  expect(outcome.status).toBe("interrupted");
  expect(ran).toContain("notes.md");
  expect(ran).not.toContain("AGENTS.md");
});

test("rules that take long to prepare yield to other work before the run begins", async () => {
  let turns = 0;
  const busy: Hook = {
    name: "busy",
    async beforeAgent() {
      await turn();
      await sharedTick("acme");
      for (const until = performance.now() + 20; performance.now() < until; );
      void turn().then(() => turns++);
    },
  };
  const seen: number[] = [];
  const after: Hook = { name: "after", beforeAgent: () => void seen.push(turns) };
  const hooks = [busy, made(permissions, { options: { rules: [{ allow: "exec*" }] } }), after];
  await play({ script: [{ say: "ok" }], tools, hooks });
  expect(seen).toEqual([1]);
});

test("a rule is compiled once, however many policies include it", () => {
  const rule = ruleFor(callOf("execute", { command: "ls" }), "allow", "user");
  expect(compileRule(rule)).toBe(compileRule(rule));
  expect(compileRule({ ...rule })).not.toBe(compileRule(rule));
});

test("a denied call does not run, and the model learns why", async () => {
  const rules = [
    { deny: "execute", command_prefix: ["rm"], message: "Nothing is removed here." },
    { deny: "execute", command_prefix: ["git"], id: "no-git" },
  ];
  const { messages, outcome } = await running(["sudo rm x", "git fetch"], { mode: "bypass", rules });
  expect(ran).toEqual([]);
  expect(toolMessages(messages).map(({ error }) => error)).toEqual([
    "Nothing is removed here.",
    "Permission denied for `execute`: rule `no-git` of agent scope denies it. Do not try to achieve the same in another way.",
  ]);
  expect(toolMessages(messages).map(({ denied }) => denied)).toEqual([true, true]);
  expect(outcome.status).toBe("success");
});

test("among parallel calls, allowed ones run, denied ones are answered, and the others wait", async () => {
  const rules = [
    { allow: "execute", command_prefix: ["ls"] },
    { deny: "execute", command_prefix: ["rm"] },
  ];
  const { messages, outcome, events } = await running(["git push", "ls", "rm x"], { rules });
  expect(ran).toEqual(["ls"]);
  expect(toolMessages(messages)).toHaveLength(2);
  expect(outcome).toMatchObject({ status: "interrupted", calls: [{ args: { command: "git push" } }] });
  expect(dataOf(events, "on_tool_end").filter((end) => end.interrupted)).toHaveLength(1);
});

test("each call of a message is decided in a separate tick of the event loop", async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const calls = Array.from({ length: 40 }, (_, n) => `rm ${n}`);
  await running(calls, { mode: "bypass", rules: [{ deny: "execute", command_prefix: ["rm"] }] });
  isOver = true;
  expect(ran).toEqual([]);
  // The first one may be over when counting begins.
  expect(turns).toBeGreaterThanOrEqual(calls.length - 1);
});

test("a call that cannot run needs no approval", async () => {
  const call = [
    { tool: "execute", args: { comand: "ls" } },
    { tool: "exekute", args: {} },
  ];
  const { messages, outcome } = await running([], {}, { script: [{ call }, { say: "ok" }] });
  expect(outcome.status).toBe("success");
  expect(toolMessages(messages).map(({ error }) => error)).toEqual([
    expect.stringContaining("Invalid arguments."),
    expect.stringContaining("There is no tool `exekute`"),
  ]);
});

test("the model does not see tools that it can never call, and they are still denied", async () => {
  const shown: string[][] = [];
  const script: Script = (request) => {
    shown.push(request.tools.map(({ name }) => name));
    return { say: "ok" };
  };
  await running([], { rules: [{ deny: "write_*" }, { deny: "execute", regex: "rm" }] }, { script });
  expect(shown).toEqual([["execute"]]);
  const { messages } = await running(["ls"], { rules: [{ deny: "execute", id: "never" }], mode: "bypass" });
  expect(toolMessages(messages)[0]?.error).toContain("rule `never`");
});

test("every decision has a span in the trace", async () => {
  const spans: { name: string; attributes: unknown; ended: number }[] = [];
  const recorder: TraceRecorder = {
    startSpan(name, attributes) {
      const kept = { name, attributes, ended: 0 };
      spans.push(kept);
      const span = { set: () => span, recordEvent: () => span, end: () => void kept.ended++ };
      return span;
    },
    recordEvent() {},
  };
  const options = { rules: [{ deny: "execute", command_prefix: ["rm"], id: "no-rm" }] };
  await running(["rm x", "ls"], {}, { hooks: [made(permissions, { options, recorder })] });
  const span = { name: "permission.decision", ended: 1 };
  const denied = { decision: "deny", rule: "no-rm", why: "rule `no-rm` of agent scope denies it" };
  expect(spans).toMatchObject([
    { ...span, attributes: { run_id: /^run_/, tool_name: "execute", tool_call_id: "call_1_1", ...denied } },
    { ...span, attributes: { decision: "ask", why: "mode default: no rule matches it" } },
  ]);
});

/** A run in which a tool changes the thread's rules, as an answer does, before each of the commands. */
function remembering(
  change: (call: ToolCall) => Rule | undefined,
  commands: readonly string[],
  state: ReadonlyMap<string, unknown> = new Map(),
) {
  const remember = plainTool(
    "remember",
    async function* (_args, call, run) {
      const rule = change(call);
      yield* rule ? addSessionRule(run, rule) : clearSessionRules(run);
      return "ok";
    },
    { requiresPermission: false },
  );
  const script = commands.flatMap((command) => [
    { call: [{ tool: "remember" }] },
    ...(command ? [{ call: [{ tool: "execute", args: { command } }] }] : []),
  ]);
  const more = { tools: [...tools, remember], script: [...script, { say: "ok" }], input: { state } };
  return running([], {}, more);
}
const command = (command: string) => callOf("execute", { command });

test("a remembered answer applies immediately, to the whole thread, until it is deleted", async () => {
  const allowed = ruleFor(command("git push"), "allow", "session");
  const { state } = await remembering(() => allowed, ["git push"]);
  expect(ran).toEqual(["git push"]);
  const again = await running(["git push", "git push -f"], {}, { input: { state } });
  expect(ran).toEqual(["git push"]);
  expect(again.outcome).toMatchObject({ calls: [{ args: { command: "git push -f" } }] });
  const cleared = await remembering(() => undefined, ["git push"], state);
  expect(ran).toEqual([]);
  expect(cleared.outcome.status).toBe("interrupted");
});

test("a later answer about the same call replaces the earlier one", async () => {
  const decisions = ["allow", "deny"] as const;
  let turn = 0;
  const answer = () => ruleFor(command("ls"), decisions[turn++] ?? "ask", "session");
  const { state } = await remembering(answer, ["", ""]);
  expect(sessionRules(state)).toMatchObject([{ decision: "deny" }]);
});

test("a thread's rules apply only to that thread regardless of their scope, and there are at most 200", async () => {
  const claimed = { ...ruleFor(command("ls"), "allow", "user"), scope: "global" };
  expect(sessionRules(new Map([["grants", [claimed]]]))).toMatchObject([{ scope: "session" }]);
  expect(sessionRules(new Map([["grants", "nonsense"]]))).toEqual([]);
  const many = Array.from({ length: 200 }, (_, index) => ruleFor(command(`ls ${index}`), "allow", "session"));
  const oneMore = () => ruleFor(command("one more"), "allow", "session");
  const { messages } = await remembering(oneMore, [""], new Map([["grants", many]]));
  expect(toolMessages(messages)[0]?.error).toContain("already has 200 rules");
});

/** A turn whose calls need approval, resumed with each answer in turn. */
async function answered(
  commands: readonly string[],
  ...given: readonly (Omit<Answer, "id"> & { call: number })[]
) {
  const asked = await running(commands, {});
  const calls = asked.outcome.status === "interrupted" ? asked.outcome.calls : [];
  let last: Played = asked;
  for (const { call, ...answer } of given) {
    const { messages, state } = last;
    const answers = [{ id: `approval_${calls[call]?.id}`, ...answer }];
    last = await running([], {}, { script: [{ say: "ok" }], say: null, input: { messages, state, answers } });
  }
  return last;
}

test("a person's answer about a call counts even if a rule would now allow the call", async () => {
  const { messages, events } = await answered(
    ["ls", "ls"],
    { call: 0, decision: "approve", remember: "session" },
    { call: 1, decision: "deny", message: "Not twice." },
  );
  expect(toolMessages(messages)).toMatchObject([{ content: "ran ls" }, { error: "Not twice." }]);
  expect(dataOf(events, "on_resume")).toMatchObject([{ decision: "deny" }]);
});

describe("an answer that is remembered for more than the same call", () => {
  const offered = async (command: string) => {
    const { events } = await running([command], {});
    return dataOf(events, "on_interrupt")[0]?.remember_options?.flatMap(
      ({ remember_as, command_prefix }) => command_prefix?.join(" | ") ?? remember_as,
    );
  };

  test.each([
    ["echo 1", "echo"],
    ["git status -s", "git status"],
    ["npm run build", "npm run build"],
    ["python3 tools/report.py --all", "python3 tools/report.py"],
    ["docker ps", "docker ps"],
    ["cd app && npm test", "cd | npm test"],
  ])("offers the commands that begin like `%s`: %s", async (command, prefix) => {
    expect(await offered(command)).toEqual(["call", prefix, "tool"]);
  });

  test.each([
    "echo $(rm -rf /)",
    "echo `rm -rf /`",
    "echo 1\nrm -rf /",
    "echo 1 > ~/.bashrc",
    "PATH=. echo 1",
    "sh -c 'echo 1'",
    "env echo 1",
    'ec"ho" 1',
    "cat a; cat b; ls; wc x; head y",
  ])("does not offer a prefix that could hide another command: %s", async (command) => {
    expect(await offered(command)).toEqual(["call", "tool"]);
  });

  const statusOf = async (command: string) => {
    const { state } = await answered(["echo 1"], {
      ...{ call: 0, decision: "approve", remember: "session", remember_as: "command" },
    });
    const { outcome } = await running([command], {}, { input: { state } });
    return outcome.status;
  };

  test("allows the commands that it names, and still asks about others", async () => {
    for (const command of ["echo 2", "echo 2 && echo 3"]) expect(await statusOf(command)).toBe("success");
    for (const command of ["echo 1; rm x", "echoes 1", "rm x"])
      expect(await statusOf(command)).toBe("interrupted");
  });

  test("allows every call of the tool and of no other, and denies denied calls", async () => {
    const wide = { call: 0, remember: "session", remember_as: "tool" } as const;
    const { state } = await answered(["echo 1"], { ...wide, decision: "approve" });
    expect(sessionRules(state)).toMatchObject([{ matcher: { tool: "execute" }, decision: "allow" }]);
    expect((await running(["rm x"], {}, { input: { state } })).outcome.status).toBe("success");
    const denied = await answered(["echo 1"], { ...wide, decision: "deny" });
    const { messages } = await running(["rm x"], {}, { input: { state: denied.state } });
    expect(toolMessages(messages)[0]?.error).toContain("denied");
  });
});

test("an edited call is shown, checked and run in its edited form", async () => {
  const args = { command: "ls -l" };
  const { messages, events } = await answered(["ls"], { call: 0, decision: "edit", args });
  expect(toolMessages(messages)).toMatchObject([{ content: "ran ls -l" }]);
  expect(dataOf(events, "on_tool_start")).toMatchObject([{ args }]);
  expect(dataOf(events, "on_resume")).toMatchObject([{ decision: "edit" }]);
});

test("a call runs as answered even if the answer cannot be remembered", async () => {
  const long = `ls ${"x".repeat(20_000)}`;
  const { messages, events } = await answered([long], { call: 0, decision: "approve", remember: "session" });
  expect(toolMessages(messages)).toMatchObject([{ content: `ran ${long}` }]);
  expect(dataOf(events, "warning")).toMatchObject([{ code: "not_remembered" }]);
});

test("rule files that were not loaded cause an error", () => {
  expect(() => made(permissions, { options: { files: ["rules.json"] } })).toThrow("belong in agents.yaml");
});

test("no one is asked about a call whose arguments cannot be read", async () => {
  const script: Script = (_, call) => (call ? { say: "ok" } : { call: [{ tool: "book", malformed: "{" }] });
  const hooks = [made(permissions, { options: { rules: [{ ask: "*" }] } })];
  const { events, outcome } = await play({ script, tools: [plainTool("book")], hooks });
  expect(dataOf(events, "on_interrupt")).toEqual([]);
  expect(outcome.status).toBe("success");
});

describe("a user's answer for all threads", () => {
  const remembered = async (decision: "allow" | "deny") => {
    const { items } = createMemoryStores();
    const rule = ruleFor(command("rm x"), decision, "user");
    const owner = { tenant: "acme", user: "ada" };
    const shelf = { owner, of: { agent: "test" }, kind: "settings" } as const;
    await items.put(shelf, { key: `rule:${rule.id}`, value: rule });
    await items.put(shelf, { key: "rule:broken", value: "nonsense" });
    return items;
  };
  const runs = async (items: ItemStore, options: Record<string, unknown>) => {
    ran.length = 0;
    const script = [{ call: [{ tool: "execute", args: { command: "rm x" } }] }, { say: "ok" }];
    await play({ script, tools, hooks: [made(permissions, { options, items })] });
    return ran.length > 0;
  };

  test("takes precedence over the agent's ask rules", async () => {
    expect(await runs(await remembered("allow"), { rules: [{ ask: "execute" }] })).toBe(true);
    expect(await runs(await remembered("deny"), { rules: [{ allow: "execute" }] })).toBe(false);
  });

  test.each(["agent", "global"])("never overrides a deny rule of %s scope", async (scope) => {
    const rules = [{ deny: "execute", command_prefix: ["rm"], scope, priority: -9 }];
    expect(await runs(await remembered("allow"), { mode: "bypass", rules })).toBe(false);
  });

  test("shows the model no tool that the agent denies, and no search of a provider that it does not allow", async () => {
    const offered: string[][] = [];
    const rules = [{ deny: "execute", scope: "user" }];
    const { items } = createMemoryStores();
    const shelf = {
      owner: { tenant: "acme", user: "ada" },
      of: { agent: "test" },
      kind: "settings",
    } as const;
    for (const name of ["execute", "web_search"]) {
      const rule = { ...ruleFor(callOf(name, {}), "allow", "user", { remember_as: "tool" }), priority: 9 };
      await items.put(shelf, { key: `rule:${rule.id}`, value: rule });
    }
    const script: Script = (request) => {
      offered.push(request.tools.map(({ name }) => name));
      return { say: "ok" };
    };
    const search = { ...plainTool("web_search"), ofProvider: {} };
    const model = { ...scriptedModel(script), searches: true } as const;
    await play({ model, tools: [search] });
    expect(offered.splice(0)).toEqual([["web_search"]]);
    await play({
      model,
      tools: [...tools, search],
      hooks: [made(permissions, { options: { rules }, items })],
    });
    expect(offered).toEqual([["write_file"]]);
  });

  test("never allows a call that the mode refuses", async () => {
    for (const mode of ["plan", "dont_ask"])
      expect(await runs(await remembered("allow"), { mode }), mode).toBe(false);
  });
});

// What a person is asked about a call.
async function asked(tool: string, args: Record<string, unknown>): Promise<string> {
  const backend = await workspace({});
  const files = made(filesystem, { backend, agent: { backend: { type: "local" } } });
  const hooks = [made(permissions, { options: { rules: [{ ask: "*" }] } }), files];
  const { events } = await play({
    script: [{ call: [{ tool, args }] }],
    tools: [plainTool("book")],
    hooks,
    backend,
  });
  return dataOf(events, "on_interrupt")[0]?.prompt ?? "";
}

/** Whether the command creates the file `pwned` under these rules. */
async function starts(
  files: Readonly<Record<string, string>>,
  command: string,
  rules: readonly unknown[],
): Promise<boolean> {
  const backend = await workspace(files);
  const hooks = [
    made(permissions, { backend, options: { mode: "bypass", rules } }),
    made(filesystem, { backend, agent: { backend: { type: "local" } } }),
  ];
  await play({ script: [{ call: [{ tool: "execute", args: { command } }] }, { say: "ok" }], hooks, backend });
  return (await backend.glob("pwned", ".", new AbortController().signal)).matches.length > 0;
}

describe("where a rule denies commands, other commands start no programs from files or keys", () => {
  const { test } = needing(
    ["git", "less"].every((program) => spawnSync(program, ["--version"]).status === 0),
    "git and less",
  );
  /** A folder that git takes for a repository, with a command in its configuration. */
  const REPOSITORY = {
    "r/HEAD": "ref: refs/heads/x\n",
    "r/config":
      '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch pwned; false"\n',
    ...{ "r/objects/x": "", "r/refs/x": "" },
  };
  const HOOKS = {
    ".git/HEAD": "ref: refs/heads/x\n",
    ".git/config":
      '[user]\n\tname = a\n\temail = a@b\n[core]\n\tfsmonitor = "touch pwned; false"\n\tpager = touch pwned\n\teditor = touch pwned\n',
    ...{ ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/pre-commit": "#!/bin/sh\ntouch pwned\n" },
  };

  const KEYS = { ".lesskey": "#env\nLESSOPEN=|touch pwned; cat %s\n" };

  for (const [what, files, command] of [
    ["a folder that looks like a repository", REPOSITORY, "cd r; git status"],
    ["a monitor of files", HOOKS, "git status"],
    ["a hook", HOOKS, "chmod +x .git/hooks/pre-commit; git commit --allow-empty -m x"],
    ["an editor", HOOKS, "git commit --allow-empty"],
    ["keys of less", KEYS, 'cp .lesskey "$HOME"; less .lesskey | cat'],
  ] as const)
    test(what, async () => {
      // Such a command runs where a rule names it.
      const named = { allow: "execute", priority: 1 };
      expect(await starts(files, command, [named])).toBe(true);
      expect(await starts(files, command, [{ ask: "execute", command_prefix: ["rm"] }, named])).toBe(false);
    });

  test("where rules only allow, except for a repository's hooks, which are part of its use", async () => {
    const allowed = { allow: "execute", command_prefix: ["git", "cd", "cp", "less", "cat", "chmod"] };
    for (const [files, command] of [
      [REPOSITORY, "cd r; git status"],
      [KEYS, 'cp .lesskey "$HOME"; less .lesskey | cat'],
    ] as const)
      expect(await starts(files, command, [allowed])).toBe(false);
    const commit = "chmod +x .git/hooks/pre-commit; git commit --allow-empty -m x";
    expect(await starts(HOOKS, commit, [allowed])).toBe(true);
  });
});

test.each([
  ["execute", { command: "make test" }, "run the command `make test`"],
  ["write_file", { path: "a.txt", content: "hé" }, "write 3 bytes to the file `a.txt`"],
  ["edit_file", { path: "a.txt", old_text: "a", new_text: "b" }, "change the file `a.txt`"],
  ["book", { seat: "12A" }, 'call `book` with {"seat":"12A"}'],
])("a question about %s explains what would happen and why it is asked", async (tool, args, what) => {
  expect(await asked(tool, args)).toBe(`May the agent ${what}? (rule \`ask *\` of agent scope asks for it)`);
});

test("a question mentions how many characters are omitted", async () => {
  const command = `echo ${"a".repeat(2000)}; rm -rf .`;
  const question = await asked("execute", { command });
  const [, shown = "", more] =
    /^May the agent run the command `(echo a+)… \((\d+) more characters: see its arguments\)\? \(rule/.exec(
      question,
    ) ?? [];
  expect(shown.length + Number(more)).toBe(`${command}\``.length);
});
