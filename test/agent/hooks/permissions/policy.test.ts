import { describe, expect, test } from "vitest";
import { instructionsOf } from "../../../../src/agent/hooks/permissions/instructions.ts";
import { decide, isDeniedForGood, type Mode } from "../../../../src/agent/hooks/permissions/policy.ts";
import { type Rule, ruleOf, type Scope } from "../../../../src/agent/hooks/permissions/rule.ts";
import { ruleFor } from "../../../../src/agent/hooks/permissions/stored-rules.ts";
import { callOf, policyOf, type Spec, toolNamed, verdict, verdictOn } from "./given.ts";

const all = (decision: Rule["decision"], scope: Scope, more: Partial<Spec> = {}): Spec => ({
  ...{ scope, decision, matcher: { all: true }, id: `${decision} ${JSON.stringify(scope)}` },
  ...more,
});
const call = { name: "execute", args: { command: "ls" } };

describe("the order of rules", () => {
  test.each(["global", "agent", { agent: "coder" }] as const)(
    "a deny rule of scope %j is absolute",
    (scope) => {
      const allows = [all("allow", "user", { priority: 1000 }), all("allow", "session")];
      const decided = verdict(call, [...allows, all("deny", scope, { priority: -1 })], "bypass");
      expect(decided).toMatchObject({ decision: "deny", rule: { decision: "deny" } });
    },
  );

  test("a user's rule cannot exempt a command that an operator's deny rule treats as unknown", () => {
    const deny: Spec = { deny: "execute", command_prefix: ["rm"], scope: "global" };
    const npm = (scope: Scope): Spec => ({ allow: "execute", command_prefix: ["npm"], scope, priority: 9 });
    expect(verdictOn("npm run build", [deny, npm("user")]).decision).toBe("deny");
    expect(verdictOn("npm run build", [deny, npm("global")]).decision).toBe("allow");
  });

  test.each(["user", "session"] as const)("a deny rule of scope %s is not absolute", (scope) => {
    expect(verdict(call, [all("deny", scope), all("allow", "user", { priority: 1 })]).decision).toBe("allow");
  });

  test("is user before session before agent before global", () => {
    const scopes = ["global", "agent", "session", "user"] as const;
    for (const [index, scope] of scopes.entries()) {
      const weaker = scopes.slice(0, index).map((each) => all("ask", each, { priority: 9 }));
      expect(verdict(call, [...weaker, all("allow", scope)]).rule?.scope).toBe(scope);
    }
  });

  test("follows priority within a scope, then the given order; the first match decides", () => {
    const [low, high] = [all("allow", "agent", { priority: 1 }), all("ask", "agent", { priority: 2 })];
    expect(verdict(call, [low, high]).decision).toBe("ask");
    expect(verdict(call, [all("allow", "agent"), all("ask", "agent")]).decision).toBe("allow");
    expect(verdict(call, [all("ask", "agent"), all("allow", "agent")]).decision).toBe("ask");
  });

  test("ignores a rule for another agent or session", () => {
    expect(verdict(call, [all("deny", { agent: "other" }), all("deny", { session: "th_2" })]).decision).toBe(
      "ask",
    );
    expect(verdict(call, [all("deny", { session: "th_1" })]).decision).toBe("deny");
  });
});

describe("the mode, if no rule matches", () => {
  const tools = ["read_file", "write_todos", "look_up", "write_file", "delete_file", "execute", "unknown"];
  test.each<[Mode, string[]]>([
    ["default", ["allow", "allow", "ask", "ask", "ask", "ask", "ask"]],
    ["plan", ["allow", "allow", "allow", "deny", "deny", "deny", "deny"]],
    ["accept_edits", ["allow", "allow", "ask", "allow", "ask", "ask", "ask"]],
    ["dont_ask", ["allow", "allow", "deny", "deny", "deny", "deny", "deny"]],
    ["bypass", ["allow", "allow", "allow", "allow", "allow", "allow", "allow"]],
  ])("%s", (mode, decisions) => {
    expect(tools.map((name) => verdict({ name, args: {} }, [], mode).decision)).toEqual(decisions);
  });

  test.each([
    ...[".git/hooks/pre-commit", ".git/config", "sub/.git/info/attributes", ".GIT/hooks/x", "/work/.git"],
    ...["a/../.git/config", "x\n/../.git/hooks/post-checkout", ".git /config", "r.g\u200cit/config"],
    ...["git~1/config", "bare/HEAD", ".husky/pre-push", ".bashrc", "home/.ssh/authorized_keys", ".npmrc"],
    ".vscode/tasks.json",
    ...[".config/git/config", "lib/sitecustomize.py", "venv/x.pth"],
    ...[".vim/plugin/x.vim", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".less", ".mise.toml", "x/.any"],
    ...["lefthook.yaml", ".local/bin/ls", "r.git/config"],
  ])("accept_edits asks about %j, which is executed without being named in a command", (path) => {
    const asked = verdict({ name: "write_file", args: { path, content: "" } }, [], "accept_edits");
    expect(asked).toMatchObject({ decision: "ask", why: expect.stringContaining("is executed without") });
    expect(
      verdict({ name: "write_file", args: { files: [{ to: path }] } }, [], "accept_edits").decision,
    ).toBe("ask");
  });

  test.each(["src/git.ts", ".gitignore", "sub/.editorconfig", ".env", "docs/head.md", "package.json"])(
    "accept_edits allows writing %j with any content",
    (path) => {
      const args = { path, content: ".git/hooks/pre-commit" };
      expect(verdict({ name: "write_file", args }, [], "accept_edits").decision).toBe("allow");
    },
  );

  test.each([
    ["AGENTS.md", "ask"],
    ["/workspace/agents.md", "ask"],
    ["docs/../AGENTS.md", "ask"],
    ["skills/new/SKILL.md", "ask"],
    ["docs/AGENTS.md", "allow"],
    ["skills/new/notes.md", "allow"],
    ["other/SKILL.md", "allow"],
  ])("accept_edits asks about files that the agent reads as its instructions: %s", (path, decision) => {
    const instructs = instructionsOf(
      { memory: { paths: ["AGENTS.md"] }, skills: { paths: ["./skills/"] } } as never,
      "/workspace",
    );
    const policy = { ...policyOf([], "accept_edits"), instructs };
    const decided = decide(callOf("write_file", { path, content: "" }), toolNamed("write_file"), policy);
    expect(decided.decision).toBe(decision);
  });

  test("a rule can allow such a file by its arguments", () => {
    const args = { path: ".git/config", content: "" };
    const rule: Spec = { allow: "write_file", arguments: args };
    expect(verdict({ name: "write_file", args }, [rule], "accept_edits").decision).toBe("allow");
  });

  test("plan denies destructive tools even if they claim to be read-only, and the model learns why", () => {
    const message = "Plan mode: write operations not allowed";
    expect(verdict({ name: "wipe", args: {} }, [], "plan")).toMatchObject({ decision: "deny", message });
  });

  test("rules take precedence over it", () => {
    expect(verdict(call, [{ allow: "execute" }], "plan").decision).toBe("allow");
    expect(verdict(call, [{ ask: "execute" }], "bypass").decision).toBe("ask");
    expect(verdict({ name: "read_file", args: {} }, [{ ask: "read_file" }]).decision).toBe("ask");
  });

  test("dont_ask denies calls that a rule would ask about, and gives the reason", () => {
    const rules: Spec[] = [{ ask: "execute", id: "careful", message: "Run it?" }];
    expect(verdict(call, rules, "dont_ask")).toMatchObject({
      decision: "deny",
      why: "rule `careful` of agent scope asks for it, and mode dont_ask does not ask",
    });
  });
});

describe("a file that can determine which commands run is decided like those commands", () => {
  const written = (path: string) => ({ name: "write_file", args: { path, content: "" } });
  const deny: Spec = { deny: "execute", command_prefix: ["rm"], id: "no-rm", message: "Use the trash." };
  const ask: Spec = { ask: "*", regex: "rm" };

  test.each([".git/config", ".gitconfig", "r/HEAD", ".less", ".github/workflows/ci.yml", "x.git/config"])(
    "%s",
    (path) => {
      for (const rules of [[deny], [{ allow: "write_file" }, deny]] as const)
        expect(verdict(written(path), rules, "bypass")).toMatchObject({
          decision: "deny",
          message: undefined,
        });
      expect(verdict(written(path), [ask], "bypass").decision).toBe("ask");
      expect(verdict(written(path), [ask], "dont_ask").decision).toBe("deny");
      expect(verdict(written(path), [], "bypass").decision).toBe("allow");
    },
  );

  test("but no other file, and no reading", () => {
    for (const path of ["src/a.ts", ".gitignore", "docs/head.md"])
      expect(verdict(written(path), [deny], "bypass").decision).toBe("allow");
    const read = { name: "read_file", args: { path: ".git/config" } };
    expect(verdict(read, [deny], "bypass").decision).toBe("allow");
  });

  test("unless an operator's rule allows this exact call; a person can only answer the question", () => {
    const call = written(".github/workflows/ci.yml");
    const by = (scope: "agent" | "user"): Spec => ({ allow: "write_file", arguments: call.args, scope });
    expect(verdict(call, [deny, by("agent")]).decision).toBe("allow");
    expect(verdict(call, [deny, by("user")]).decision).toBe("deny");
    expect(verdict(call, [ask, by("user")]).decision).toBe("allow");
  });

  test("and rules about other tools, or for all commands, have no effect on it", () => {
    for (const other of [{ deny: "look_up", regex: "rm" }, { deny: "execute" }] as const)
      expect(verdict(written(".git/config"), [other], "bypass").decision).toBe("allow");
  });

  test("and the model sees the reason", () => {
    expect(verdict(written(".git/config"), [deny], "bypass").why).toBe(
      "`.git/config` may determine which commands run: rule `no-rm` of agent scope denies it",
    );
  });
});

test("every decision contains the rule that made it, with its message, or the mode", () => {
  const rules: Spec[] = [{ deny: "execute", regex: "ls", message: "Use the tool `ls`." }];
  expect(verdict(call, rules)).toMatchObject({
    ...{ decision: "deny", rule: { id: "deny execute regex ls" }, message: "Use the tool `ls`." },
    why: "rule `deny execute regex ls` of agent scope denies it",
  });
  expect(verdict(call, [])).toEqual({ decision: "ask", why: "mode default: no rule matches it" });
});

describe("a rule matches a tool", () => {
  test.each([
    ["read_*", "read_file", true],
    ["mcp__{github,gitlab}__*", "mcp__gitlab__search", true],
    ["read_*", "evil/read_file", false],
    ["*", "any/thing", true],
    ["read_file", "read_files", false],
    ["read_?ile", "Read_file", false],
  ])("%j and %j: %s", (pattern, name, expected) => {
    expect(verdict({ name, args: {} }, [{ allow: pattern }]).decision === "allow").toBe(expected);
  });

  test("by its category, if it has one", () => {
    const rules: Spec[] = [{ matcher: { category: "write" }, decision: "allow" }];
    expect(verdict({ name: "write_file", args: {} }, rules).decision).toBe("allow");
    expect(verdict({ name: "unknown", args: {} }, rules).decision).toBe("ask");
    expect(decide(callOf("write_file"), undefined, policyOf(rules)).decision).toBe("ask");
  });

  test("if all its conditions are met", () => {
    const rules: Spec[] = [{ allow: "write_*", category: "write" }];
    expect(verdict({ name: "write_file", args: {} }, rules).decision).toBe("allow");
    expect(verdict({ name: "write_letter", args: {} }, rules).decision).toBe("ask");
  });

  test("by a condition of the program; one that throws denies and never allows", () => {
    const custom = (decision: Rule["decision"], test: () => boolean): Rule => ({
      ...{ id: "own", scope: "user", priority: 0, decision, matcher: { custom: test } },
    });
    const broken = () => {
      throw new Error("broken");
    };
    const seen: unknown[] = [];
    const own: Rule = {
      ...custom("allow", () => true),
      matcher: { custom: (...given) => seen.push(given) > 0 },
    };
    expect(verdict(call, [own]).decision).toBe("allow");
    expect(seen).toEqual([[callOf(call.name, call.args), expect.objectContaining({ name: "execute" })]]);
    expect(verdict(call, [custom("allow", broken)]).decision).toBe("ask");
    expect(verdict(call, [custom("deny", broken)]).decision).toBe("deny");
  });

  test("even if its arguments are too deeply nested to read: it then denies, but does not allow", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`);
    const rules = (decision: "allow" | "deny"): Spec[] => [
      { scope: "user", decision, matcher: { regex: ".*" } },
    ];
    expect(verdict({ name: "execute", args: deep }, rules("allow")).decision).toBe("ask");
    expect(verdict({ name: "execute", args: deep }, rules("deny")).decision).toBe("deny");
  });
});

describe("a remembered answer", () => {
  const args = { command: "git push; $X", timeout: 5 };
  const [name, rule] = ["execute", ruleFor(callOf("execute", args), "allow", "session")];

  test("allows only exactly that call", () => {
    expect(verdict({ name, args }, [rule])).toMatchObject({ decision: "allow", rule: { id: rule.id } });
    expect(verdict({ name, args: { timeout: 5, command: "git push; $X" } }, [rule]).decision).toBe("allow");
    for (const other of [{ ...args, timeout: 6 }, { ...args, more: 1 }, { command: args.command }, {}])
      expect(verdict({ name, args: other }, [rule]).decision).toBe("ask");
    expect(verdict({ name: "execute2", args }, [rule]).decision).toBe("ask");
    expect(verdict({ name: "Execute", args }, [rule]).decision).toBe("ask");
  });

  test("for a tool whose name looks like a pattern applies only to that tool", () => {
    const odd = ruleFor(callOf("a*[b]{c,d}\\?"), "allow", "session");
    expect(verdict({ name: "a*[b]{c,d}\\?", args: {} }, [odd]).decision).toBe("allow");
    expect(verdict({ name: "axbc?", args: {} }, [odd]).decision).toBe("ask");
  });

  test("is the same rule each time and survives being saved", () => {
    expect(ruleFor(callOf("execute", { ...args }), "deny", "session").id).toBe(rule.id);
    expect(ruleFor(callOf("execute", { ...args, timeout: 6 }), "allow", "session").id).not.toBe(rule.id);
    expect(ruleOf(JSON.parse(JSON.stringify(rule)))).toEqual(rule);
    expect(rule.description).toBe('execute {"command":"git push; $X","timeout":5}');
  });

  test("does not override an absolute deny", () => {
    expect(verdict({ name, args }, [rule, { deny: "execute", command_prefix: ["git push"] }]).decision).toBe(
      "deny",
    );
  });

  test("with very long arguments is refused", () => {
    const long = callOf("write_file", { content: "x".repeat(16_384) });
    expect(() => ruleFor(long, "allow", "session")).toThrow(
      "The call has 16398 characters of arguments; at most 16384 can be remembered.",
    );
  });
});

describe("a tool is always denied", () => {
  const isHidden = (name: string, rules: readonly Spec[], mode: Mode = "default") =>
    isDeniedForGood(name, toolNamed(name), policyOf(rules, mode));

  test("if a rule denies it for all arguments", () => {
    expect(isHidden("execute", [{ deny: "exec*" }])).toBe(true);
    expect(isHidden("execute", [{ deny: "*", category: "execute" }])).toBe(true);
    expect(isHidden("execute", [all("deny", "global"), all("allow", "user")])).toBe(true);
    expect(isHidden("execute", [all("deny", "session"), all("allow", "agent")])).toBe(true);
    expect(isHidden("write_file", [{ deny: "exec*" }])).toBe(false);
  });

  test("unless some arguments could be allowed or asked about", () => {
    expect(isHidden("execute", [{ deny: "execute", command_prefix: ["rm"] }])).toBe(false);
    expect(isHidden("execute", [all("deny", "session"), all("ask", "user")])).toBe(false);
    const some: Spec = { allow: "execute", command_prefix: ["ls"], scope: "user" };
    expect(isHidden("execute", [all("deny", "session"), some])).toBe(false);
    expect(isHidden("execute", [all("deny", "session"), { ...some, allow: "other" }])).toBe(true);
    expect(
      isHidden("execute", [all("deny", "session"), { deny: "execute", regex: "x", scope: "user" }]),
    ).toBe(true);
  });

  test("but not because of a mode, which can change", () => {
    expect(isHidden("write_file", [], "plan")).toBe(false);
    expect(isHidden("write_file", [], "dont_ask")).toBe(false);
  });
});

describe("more work than a decision can take", () => {
  const line = (commands: number) => Array.from({ length: commands }, (_, n) => `true ${n}`).join("; ");
  const prefixed = (rules: number, decision: Rule["decision"]): Spec[] =>
    Array.from({ length: rules }, (_, rule) => ({
      ...{ decision, scope: "user", id: `r${rule}` },
      matcher: { tool: "execute", command_prefix: Array.from({ length: 100 }, (_, n) => `p${rule}-${n} x`) },
    }));
  const execute = (commands: number) => ({ name: "execute", args: { command: line(commands) } });

  test("is refused by rules that deny, and not allowed by rules that allow", () => {
    expect(verdict(execute(1500), prefixed(200, "deny"), "bypass").decision).toBe("deny");
    expect(verdict(execute(1500), prefixed(200, "allow")).decision).toBe("ask");
    const regexes = Array.from({ length: 200 }, (_, n): Spec => ({ deny: "*", regex: `(x?){200}y${n}$` }));
    const todos = Array.from({ length: 300 }, (_, n) => ({ id: `${n}`, title: "x".repeat(700) }));
    expect(verdict({ name: "write_todos", args: { todos } }, regexes, "bypass").decision).toBe("deny");
  });

  test("does not come from more rules, because a command is parsed once for all of them", () => {
    const readsFor = (count: number) => {
      let reads = 0;
      const args = {
        get command() {
          reads++;
          return line(1500);
        },
      };
      const regexes = Array.from(
        { length: count },
        (_, n): Spec => ({ deny: "execute", regex: `x${n}[a-z]` }),
      );
      verdict({ name: "execute", args }, [...regexes, ...prefixed(count, "deny")], "bypass");
      return reads;
    };
    expect(readsFor(70)).toBe(readsFor(1));
  });

  test("does not come from an agent's rules for a long line", () => {
    expect(verdict(execute(1500), prefixed(2, "deny"), "bypass").decision).toBe("allow");
    const regex: Spec = { deny: "execute", regex: "rm -rf" };
    expect(verdict(execute(1500), Array(20).fill(regex), "bypass").decision).toBe("allow");
  });
});
