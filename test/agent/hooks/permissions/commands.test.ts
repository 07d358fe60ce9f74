import { describe, expect, test } from "vitest";
import { CONNECTIONS, INTRUSIONS, REMOVALS } from "./attacks.ts";
import { HARMLESS, SMUGGLED } from "./commands.ts";
import { type Spec, verdict, verdictOn } from "./given.ts";
import { HONEST, NAMED } from "./honest.ts";

const PROGRAMS = ["ls", "cat", "git", "find", "sed", "awk", "tar", "python3", "perl", "cd", "echo", "X"];
const allowed: Spec = { allow: "execute", command_prefix: PROGRAMS };
const denied: Spec = { deny: "execute", command_prefix: ["rm"] };

describe("a prefix that allows", () => {
  test.each(SMUGGLED)("does not allow %j", (command) => {
    // Languages run what their operator lets them run.
    const rules = /^(python3|perl)/.test(command) ? [{ ...allowed, command_prefix: ["ls"] }] : [allowed];
    expect(verdictOn(command, rules).decision).toBe("ask");
  });

  test.each([
    "ls",
    "  ls -la  \n",
    "ls; ls\t-l &&ls|ls||ls & ls &",
    'ls \'a b\' "c d" \'rm -rf src; $(x)\' "it\'s" "say \\"x\\""',
    "ls -- *.ts src/[ab]?.ts ~/x",
    "ls 2>&1 | cat >/dev/null 2> /dev/null </dev/null",
    "git log -p --oneline HEAD^ --author=ada@example.com origin/main..topic",
    "git diff --stat -- 'src/**' | sed -n 1,5p",
    "git commit -m 'one\ntwo'",
    "find . -name '*.ts' -newer x -type f",
    "sed -n '1,20p' x; sed -E s/a/b/g x",
    "awk '{ print $1 }' x",
    "tar -xzf x.tgz -C out",
    "cd src && ls",
    "cat résumé.txt",
  ])("allows %j", (command) => {
    expect(verdictOn(command, [allowed]).decision).toBe("allow");
  });

  test.each([
    ["cd", "cdrom"],
    ["git status", "git statusx"],
    ["git status", "git log"],
    ["git status", "git"],
    ["git status", "git -C /elsewhere status"],
    ["git status", "git stat*"],
    ["git", "/tmp/git status"],
    ["git", "./git status"],
    ["git", "Git status"],
  ])("%j does not cover %j", (prefix, command) => {
    expect(verdictOn(command, [{ allow: "execute", command_prefix: [prefix] }]).decision).toBe("ask");
  });

  test.each([
    ...["ls >out", "ls >>out", "ls 2>out", "ls >&out", "ls &>out", "ls &>/dev/null", "ls >|out", "ls <>out"],
    ...[
      "ls </etc/passwd",
      "ls >/dev/nullx",
      "ls >/dev/null/x",
      "ls >&1x",
      "ls 2>&1>out",
      "ls 3>&1",
      "ls x2>&1",
    ],
  ])("does not allow a line that reads or writes a file: %s", (command) => {
    expect(verdictOn(command, [allowed]).decision).toBe("ask");
  });

  test.each(["", " \n ", ";", "&&", "ls &&", "ls |", "| ls", "ls;;", "ls & & ls", "ls 'a", 'ls "a', "ls \\"])(
    "does not allow an incomplete line: %j",
    (command) => {
      expect(verdictOn(command, [allowed]).decision).toBe("ask");
    },
  );

  test.each(["ls 'a\r'", "ls 'a\u001b[2K'", "ls '\0'", 'ls "\u009b"', "ls '\ud800'", "ls\u00a0", "ls\va"])(
    "does not allow characters that are not text: %j",
    (command) => {
      expect(verdictOn(command, [allowed]).decision).toBe("ask");
    },
  );

  test.each(["find *", "git log *", "sed -n 1p [-]*", "tar ~", "find . -exe?"])(
    "does not let patterns become significant arguments: %s",
    (command) => {
      expect(verdictOn(command, [allowed]).decision).toBe("ask");
    },
  );

  test("matches whole words, quoted or not, except in the program's name", () => {
    const rules: Spec[] = [{ allow: "execute", command_prefix: ["git  status"] }];
    expect(verdictOn('git "status" -s', rules).decision).toBe("allow");
    expect(verdictOn('"git" status', rules).decision).toBe("ask");
  });

  test("requires that the same rule allows every command of the line", () => {
    const [git, npm] = ["git", "npm"].map((each): Spec => ({ allow: "execute", command_prefix: [each] }));
    expect(verdictOn("git pull && npm test", [git, npm] as Spec[]).decision).toBe("ask");
    const both: Spec = { allow: "execute", command_prefix: ["git", "npm"] };
    expect(verdictOn("git pull && npm test", [both]).decision).toBe("allow");
  });

  test("explains why it did not apply", () => {
    expect(verdictOn("ls $(x)", [allowed]).why).toBe(
      "mode default: no rule matches it; the command is not fully understood: it has an expansion (`$`)",
    );
  });

  test("applies only to a call that contains nothing but a command", () => {
    const call = { name: "execute", args: { command: "ls", env: { PATH: "/tmp" } } };
    expect(verdict(call, [allowed]).decision).toBe("ask");
    expect(verdict({ name: "execute", args: { command: ["ls"] } }, [allowed]).decision).toBe("ask");
    expect(verdict({ name: "other", args: { command: "ls" } }, [{ ...allowed, allow: "*" }]).decision).toBe(
      "ask",
    );
    expect(verdict({ name: "execute", args: { command: "ls", timeout: 5 } }, [allowed]).decision).toBe(
      "allow",
    );
  });

  test("reads at most 32,768 characters", () => {
    expect(verdictOn(`ls ${"a".repeat(32_765)}`, [allowed]).decision).toBe("allow");
    expect(verdictOn(`ls ${"a".repeat(32_766)}`, [allowed]).decision).toBe("ask");
  });
});

describe("a prefix that denies", () => {
  test.each(SMUGGLED)("matches %j", (command) => {
    expect(verdictOn(command, [denied], "bypass").decision).toBe("deny");
  });

  test.each(HARMLESS)("does not match %j", (command) => {
    expect(verdictOn(command, [denied], "bypass").decision).toBe("allow");
  });

  test.each([
    ["git push", "git -C /repo --no-pager push origin"],
    ["git push", "git -c a=b -c c=d push"],
    ["git push", "/usr/bin/git push"],
    ["git push", "git $ACTION"],
    ["git push", "git pus*"],
    ["rm", "sudo -n $X src"],
    ["rm", "timeout 5s r?"],
    ["/usr/bin/rm", "rm x"],
    ["rm -rf", "rm -r -f src"],
    ["rm -rf", "rm src -fr"],
    ["rm -rf", "rm -vfr src"],
    ["rm -rf", "rm $OPTIONS src"],
    ["rm --recursive", "rm src --recursive=yes"],
    ["rm -rf", "rm -Rf src"],
    ["rm -rf", "rm -R -f src"],
    ["rm -rf", "rm --recursive --force src"],
    ["rm -rf", "rm --rec --fo src"],
    ["rm --recursive", "rm -R src"],
    ["git push --force", "git push -f"],
    ["git push --force", "git push --force-with-lease"],
    ["git push --force", "git push origin --forc"],
    ["git push --force", "git push origin +main"],
    ["git commit --no-verify", "git commit -nm x"],
    ["npm install --global", "npm install -g x"],
    ["docker run --privileged", "docker run --priv x"],
  ])("%j covers %j too", (prefix, command) => {
    const rules: Spec[] = [{ deny: "execute", command_prefix: [prefix] }];
    expect(verdictOn(command, rules, "bypass").decision).toBe("deny");
  });

  test.each([
    ["git push", "git commit -m push"],
    ["git push", "git fetch"],
    ["rm -rf", "rm -r src"],
    ["rm -rf", "rm -r --verbose src"],
    ["git push --force", "git push --tags"],
    ["git commit --amend", "git commit -am x"],
    ["rm -rf", "rm *.o"],
    ["rm --recursive", "rm --recursively src"],
  ])("%j does not cover %j", (prefix, command) => {
    const rules: Spec[] = [{ deny: "execute", command_prefix: [prefix] }];
    expect(verdictOn(command, rules, "bypass").decision).toBe("allow");
  });

  test("matches commands of other tools, in any format", () => {
    const rules: Spec[] = [{ deny: "*", command_prefix: ["rm"] }];
    for (const args of [{ cmd: "ls; rm x" }, { command: ["rm", "x"] }, { commands: ["ls", "cd x; rm y"] }])
      expect(verdict({ name: "run", args }, rules, "bypass").decision).toBe("deny");
    expect(verdict({ name: "run", args: { text: "rm x" } }, rules, "bypass").decision).toBe("allow");
  });

  test("assumes the worst about commands that are too long", () => {
    expect(verdictOn("x".repeat(32_769), [denied], "bypass").decision).toBe("deny");
    expect(verdictOn(`ls ${"x".repeat(32_765)}`, [denied], "bypass").decision).toBe("allow");
    const args = { cmd: "x".repeat(30_000), script: "x".repeat(30_000), command: "x".repeat(30_000) };
    expect(verdict({ name: "execute", args }, [denied], "bypass").decision).toBe("deny");
  });

  test("asks as broadly as it denies", () => {
    const rules: Spec[] = [allowed, { ask: "execute", command_prefix: ["git"], priority: 1 }];
    expect(verdictOn("ls | xargs git add", rules, "bypass").decision).toBe("ask");
  });
});

describe("the rules of a coding agent", () => {
  const named: Spec = { allow: "execute", command_prefix: [...NAMED] };

  test.each(HONEST)("allow it to run %j", (command) => {
    expect(verdictOn(command, [named])).toMatchObject({ decision: "allow" });
  });

  test.each(HONEST)("allow it to run %j next to a rule that denies", (command) => {
    const sudo: Spec = { deny: "execute", command_prefix: ["sudo", "git filter-branch"] };
    expect(verdictOn(command, [named, sudo])).toMatchObject({ decision: "allow" });
  });

  test.each(INTRUSIONS)("do not allow another program to be run by %j", (command) => {
    expect(verdictOn(command, [named]).decision).toBe("ask");
    const program = command.split(" ")[0] ?? "";
    if (["env", "xargs"].includes(program)) return;
    expect(verdictOn(command, [{ allow: "execute", command_prefix: [program] }]).decision).toBe("ask");
  });

  test.each(REMOVALS)("that deny `rm` deny %j, in every mode", (command) => {
    for (const mode of ["bypass", "default", "accept_edits"] as const)
      expect(verdictOn(command, [denied], mode).decision).toBe("deny");
    expect(verdictOn(command, [{ deny: "execute", regex: "rm" }], "bypass").decision).toBe("deny");
  });

  test.each(CONNECTIONS)("that deny `curl` deny %j, in every mode", (command) => {
    const curl: Spec = { deny: "execute", command_prefix: ["curl"] };
    expect(verdictOn(command, [curl], "bypass").decision).toBe("deny");
  });

  const lines = ["npm test", "python3 x.py", "make all"];
  test.each(lines)("list commands that can run despite a rule that denies: %s", (command) => {
    const program = command.split(" ")[0] ?? "";
    const by = (scope: "agent" | "user"): Spec => ({ allow: "execute", command_prefix: [program], scope });
    expect(verdictOn(command, [denied, by("agent")]).decision).toBe("allow");
    expect(verdictOn(command, [denied, by("user")]).decision).toBe("deny");
    expect(verdictOn(command, [denied, { ask: "execute", command_prefix: [program] }]).decision).toBe("ask");
    expect(verdictOn(`${command} rm`, [denied, by("agent")]).decision).toBe("deny");
    expect(verdictOn(`${command} $x`, [denied, by("agent")]).decision).toBe("deny");
    expect(verdictOn(command, [denied, { allow: "execute" }]).decision).toBe("deny");
  });

  test("explain why a command counts as denied if its program is not visible", () => {
    expect(verdictOn("make all", [{ ...denied, id: "no-rm", message: "Use the trash." }])).toMatchObject({
      message: undefined,
      why: "rule `no-rm` of agent scope denies it; it is not fully understood and may run anything: it has `make`, which runs the contents of files",
    });
  });
});

describe("a regular expression", () => {
  test("allows only full matches, command by command", () => {
    const rules: Spec[] = [{ allow: "execute", regex: "git (status|log .*)" }];
    for (const command of ["git status", "git log -p && git status 2>&1", "git log --author='a b'"])
      expect(verdictOn(command, rules).decision).toBe("allow");
    for (const command of ["git status -s", "git status; ls", "git log $(x)", "git log *", "sudo git status"])
      expect(verdictOn(command, rules).decision).toBe("ask");
  });

  test.each([
    "sudo ls",
    "/usr/bin/env ls",
    "sh -c ls",
    "A=1 ls",
    "time ls",
    "export A=1; ls",
    "if ls",
    "'ls'",
  ])("never allows %s, even if it matches", (command) => {
    expect(verdictOn(command, [{ allow: "execute", regex: ".*" }]).decision).toBe("ask");
  });

  test.each([
    "rm -rf /",
    "rm   -rf /",
    "'rm' \"-rf\" /",
    "ls; /bin/rm -rf x",
    "sh -c 'rm  -rf x'",
    "sudo -n rm -rf x",
    "echo rm -rf x",
    "r\\m -rf x",
  ])("denies any partial match: %j", (command) => {
    const rules: Spec[] = [{ deny: "execute", regex: "rm -rf" }];
    expect(verdictOn(command, rules, "bypass").decision).toBe("deny");
  });

  test.each([
    "rm x",
    "ls && rm x",
    "/bin/rm x",
    "timeout 5 rm x",
    "sh -c 'ls; rm x'",
    'ls "$(rm x)"',
    "{ rm x; }",
  ])("that is anchored denies each command separately: %j", (command) => {
    expect(verdictOn(command, [{ deny: "execute", regex: "^rm " }], "bypass").decision).toBe("deny");
    expect(verdictOn("echo rm x", [{ deny: "execute", regex: "^rm " }], "bypass").decision).toBe("allow");
  });

  test("matches the arguments of other tools as JSON with sorted keys", () => {
    const call = { name: "write_file", args: { path: ".env", content: 'say "x"\n' } };
    const whole = String.raw`\{"content":"say \\"x\\"\\n","path":"\.env"\}`;
    expect(verdict(call, [{ allow: "write_file", regex: whole }]).decision).toBe("allow");
    expect(verdict(call, [{ allow: "write_file", regex: ".env" }]).decision).toBe("ask");
    for (const regex of ["^\\.env$", '^say "x"\\n$', '"path":"\\.env"'])
      expect(verdict(call, [{ deny: "write_file", regex }], "bypass").decision).toBe("deny");
    expect(verdict(call, [{ deny: "write_file", regex: "secret" }], "bypass").decision).toBe("allow");
  });

  test("that cannot search the whole text treats the rest as a match if it denies", () => {
    const call = { name: "write_file", args: { content: "x".repeat(3_000_000) } };
    expect(verdict(call, [{ deny: "write_file", regex: "[s]ecret" }], "bypass").decision).toBe("deny");
    expect(verdict(call, [{ allow: "write_file", regex: ".*" }]).decision).toBe("ask");
  });
});
