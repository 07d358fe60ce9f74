import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Rule, ruleOf } from "../../../../src/agent/hooks/permissions/rule.ts";
import { loadRules, saveRules } from "../../../../src/agent/hooks/permissions/stored-rules.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-rules-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Root may read every file. */
async function asAnyUser<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work();
  chmodSync(folder, 0o755);
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.("root");
  }
}

function fileOf(text: string): string {
  const path = join(folder, "rules.json");
  writeFileSync(path, text);
  return path;
}

test("a file can contain rules in the short and the long form", async () => {
  const file = fileOf(`[
    { "allow": "read_file" },
    { "ask": "execute", "command_prefix": ["git"], "message": "May it?" },
    { "id": "no-rm", "scope": "global", "priority": 10, "matcher": { "regex": "rm -rf" }, "decision": "deny" },
    { "scope": { "agent": "coder" }, "matcher": { "all": true }, "decision": "ask", "description": "All else" }
  ]`);
  expect(await loadRules(file)).toEqual([
    {
      ...{ id: "allow read_file", scope: "agent", priority: 0 },
      ...{ matcher: { tool: "read_file" }, decision: "allow" },
    },
    {
      ...{ id: 'ask execute command_prefix ["git"]', scope: "agent", priority: 0, message: "May it?" },
      ...{ matcher: { tool: "execute", command_prefix: ["git"] }, decision: "ask" },
    },
    {
      ...{ id: "no-rm", scope: "global", priority: 10 },
      ...{ matcher: { regex: "rm -rf" }, decision: "deny" },
    },
    {
      ...{ id: "ask all true", scope: { agent: "coder" }, priority: 0, description: "All else" },
      ...{ matcher: { all: true }, decision: "ask" },
    },
  ]);
});

test("saved rules are loaded unchanged", async () => {
  const path = join(folder, "saved.json");
  const rules = [
    ruleOf({ deny: "*", regex: "^rm$", scope: { session: "th_1" }, priority: -3 }),
    ruleOf({ matcher: { arguments: { path: "a", n: [1, null] } }, decision: "allow", message: "x" }),
  ];
  await saveRules(path, rules);
  expect(await loadRules(path)).toEqual(rules);
  await saveRules(path, []);
  expect(await loadRules(path)).toEqual([]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a failed save keeps the old rules and leaves nothing else", async () => {
  const home = mkdtempSync(join(folder, "home-"));
  const path = join(home, "rules.json");
  await saveRules(path, [ruleOf({ allow: "ls" })]);
  const own: Rule = { ...ruleOf({ allow: "ls" }), matcher: { custom: () => true } };
  await expect(saveRules(path, [own])).rejects.toMatchObject({ code: "config_invalid" });
  rmSync(path);
  await saveRules(join(home, "other.json"), []);
  await expect(saveRules(join(home, "other.json", "rules.json"), [])).rejects.toThrow("ENOTDIR");
  await expect(saveRules(home, [])).rejects.toThrow("EISDIR");
  expect(readdirSync(home)).toEqual(["other.json"]);
  expect(readdirSync(folder).filter((name) => name.includes("draft"))).toEqual([]);
});

test("after many simultaneous saves, one of them is stored completely", async () => {
  const path = join(folder, "raced.json");
  const saves = Array.from({ length: 8 }, (_, index) =>
    saveRules(path, Array(50).fill(ruleOf({ allow: `tool_${index}` }))),
  );
  await Promise.all(saves);
  const rules = await loadRules(path);
  expect(rules).toHaveLength(50);
  expect(new Set(rules.map(({ id }) => id)).size).toBe(1);
});

describe("a file is refused with its name and the location of the error", () => {
  test.each([
    ["[", "must be JSON: "],
    ["{}", "must be a list"],
    ['[{ "allow": "x", "deny": "y" }]', "[0]: must have exactly one of allow, deny, ask"],
    ['[{ "priority": 1 }]', "[0]: must have exactly one of allow, deny, ask"],
    ['[{ "allow": "x" }, { "alow": "x" }]', "[1]: unknown key `alow`; did you mean `allow`?"],
    ['[{ "allow": "[x" }]', "[0].allow: must be valid: it has a `[` without `]`"],
    ['[{ "deny": "x", "regex": "(?=a)" }]', "[0].regex: must be valid: it is not valid RE2"],
    ['[{ "deny": "x", "command_prefix": ["rm; ls"] }]', "[0].command_prefix[0]: must be plain words"],
    ['[{ "deny": "x", "command_prefix": ["-rf"] }]', "[0].command_prefix[0]: must be plain words"],
    ['[{ "allow": "x", "command_prefix": ["git *"] }]', "[0].command_prefix[0]: must be plain words"],
    [
      '[{ "allow": "x", "command_prefix": ["ls", "sudo apt-get"] }]',
      "[0].command_prefix[1]: must not begin with `sudo`, which may run anything",
    ],
    [
      '[{ "decision": "allow", "matcher": { "command_prefix": ["sh"] } }]',
      "[0].matcher.command_prefix[0]: must not begin with `sh`",
    ],
    ['[{ "decision": "allow" }]', "[0]: must have exactly one of"],
    ['[{ "decision": "allow", "regex": "x", "matcher": { "all": true } }]', "[0]: must have exactly one of"],
    ['[{ "allow": "x", "decision": "deny", "matcher": { "all": true } }]', "[0]: must have exactly one of"],
    ['[{ "decision": "allow", "matcher": {} }]', "[0].matcher: must name a condition"],
    ['[{ "decision": "maybe", "matcher": { "all": true } }]', "[0].decision: must be one of `allow`"],
    ['[{ "decision": "deny", "matcher": { "tol": "x" } }]', "[0].matcher: unknown key `tol`; did you mean"],
    ['[{ "allow": "x", "scope": "team" }]', "[0].scope: must be "],
    ['[{ "allow": "x", "priority": 1.5 }]', "[0].priority: must be a whole number"],
  ])("%s", async (text, problem) => {
    const file = fileOf(text);
    const refusal = loadRules(file);
    await expect(refusal).rejects.toMatchObject({ code: "config_invalid" });
    await expect(refusal).rejects.toThrow(`${file}: ${problem}`);
  });

  test("and with all problems at once", async () => {
    const file = fileOf('[{ "allow": "[" }, { "ask": "x", "regex": "(" }]');
    const problems = await loadRules(file).catch((error: Error) => error.message.split("\n"));
    expect(problems).toHaveLength(2);
  });

  test("even if it is missing, not a file, or not readable", async () => {
    await expect(loadRules(join(folder, "none.json"))).rejects.toThrow("none.json: the file does not exist");
    await expect(loadRules(folder)).rejects.toThrow("the file is not a file");
    const file = fileOf("[]");
    chmodSync(file, 0);
    await expect(asAnyUser(() => loadRules(file))).rejects.toThrow("may not be read");
    chmodSync(file, 0o600);
  });
});
