// What releases are made of: changes in files, messages of commits, and the report of public types.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";

const SCRIPTS = fileURLToPath(new URL("../script/", import.meta.url));

/** A folder with these files, in which the scripts of the project run. */
function project(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "skein-release-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  const run = (program: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
    // The compiler's own process may print it when it is closed.
    return { code: status, output: stdout + stderr.replace(/^context canceled\n/m, "") };
  };
  return {
    write,
    run,
    read: (name: string) => readFileSync(join(folder, name), "utf8"),
    has: (name: string) => existsSync(join(folder, name)),
    script: (name: string, ...args: string[]) => run(process.execPath, join(SCRIPTS, name), ...args),
  };
}

const change = (level: string, text: string) => `---\n"skein": ${level}\n---\n\n${text}\n`;

describe("a changeset", () => {
  test.each([
    ["is well-formed", change("minor", "**Runs can be paused**: they continue later."), 0, /^$/],
    ["names no level", "**Runs can be paused**\n", 1, /paused.md: it does not begin with the lines/],
    [
      "names an unknown level",
      change("huge", "**Runs**"),
      1,
      /`huge` is no level; write patch, minor or major/,
    ],
    ["begins without bold text", change("patch", "Runs can be paused."), 1, /the change in bold/],
    ["is long", change("patch", "**Runs**: a\nb\nc\nd"), 1, /more than 3 lines/],
  ])("that %s is accepted or refused with the reason", (_, text, code, output) => {
    const { script } = project({ ".changeset/README.md": "# Changes", ".changeset/paused.md": text });
    expect(script("changesets.ts", "check")).toEqual({ code, output: expect.stringMatching(output) });
  });
});

describe("a release", () => {
  const packages = {
    "package.json": '{\n  "name": "skein",\n  "version": "0.1.0"\n}\n',
    "packages/client/package.json": '{\n  "name": "skein-client",\n  "version": "0.1.0"\n}\n',
    "package-lock.json": JSON.stringify({
      version: "0.1.0",
      packages: {
        "": { version: "0.1.0" },
        "packages/client": { version: "0.1.0" },
        other: { version: "1.0.0" },
      },
    }),
    "CHANGELOG.md": "# Changelog\n\nA part each.\n\n## 0.1.0\n\nThe first release.\n",
  };

  test("moves the changes into the changelog, the most important first, and sets the version of both packages", () => {
    const { script, read, has } = project({
      ...packages,
      ".changeset/README.md": "# Changes",
      ".changeset/a.md": change("patch", "**A cursor is checked**."),
      ".changeset/b.md": change("minor", "**Runs can be paused**:\nthey continue later."),
    });
    expect(script("changesets.ts", "release")).toEqual({ code: 0, output: "" });
    expect(read("CHANGELOG.md")).toBe(
      "# Changelog\n\nA part each.\n\n## 0.2.0\n\n- **Runs can be paused**:\n  they continue later.\n- **A cursor is checked**.\n\n## 0.1.0\n\nThe first release.\n",
    );
    expect(read("package.json")).toBe('{\n  "name": "skein",\n  "version": "0.2.0"\n}\n');
    expect(JSON.parse(read("packages/client/package.json"))).toMatchObject({ version: "0.2.0" });
    expect(JSON.parse(read("package-lock.json"))).toEqual({
      version: "0.2.0",
      packages: {
        "": { version: "0.2.0" },
        "packages/client": { version: "0.2.0" },
        other: { version: "1.0.0" },
      },
    });
    expect([has(".changeset/README.md"), has(".changeset/a.md"), has(".changeset/b.md")]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test.each([
    ["0.1.0", ["patch"], "0.1.1"],
    ["0.1.4", ["patch", "major"], "0.2.0"],
    ["1.2.3", ["minor", "patch"], "1.3.0"],
    ["1.2.3", ["minor", "major"], "2.0.0"],
  ])("after %s with changes of level %j is %s", (version, levels, next) => {
    const files = levels.map((level, at) => [`.changeset/${at}.md`, change(level, "**Change**")]);
    const { script, read } = project({
      ...packages,
      ...Object.fromEntries(files),
      "package.json": JSON.stringify({ version }),
    });
    expect(script("changesets.ts", "release").code).toBe(0);
    expect(JSON.parse(read("package.json"))).toEqual({ version: next });
  });

  test("without changes is refused, and changes no file", () => {
    const { script, read } = project(packages);
    expect(script("changesets.ts", "release")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/nothing to release/),
    });
    expect(read("CHANGELOG.md")).toBe(packages["CHANGELOG.md"]);
  });
});

describe("a commit message", () => {
  /** A repository whose second commit adds the check, and whose last one has this message. */
  function committed(message: string) {
    const repository = project({ "script/commits.ts": "" });
    const git = (...args: string[]) =>
      repository.run("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args);
    git("init", "--quiet");
    git("commit", "--quiet", "--allow-empty", "--message", "Before");
    git("add", ".");
    git("commit", "--quiet", "--message", "Add the check");
    git("commit", "--quiet", "--allow-empty", "--message", message);
    return { ...repository, git };
  }

  test.each([
    ["stores: refuse a forged cursor\n\nIt was an internal error.", 0, /^$/],
    [
      "Refuse a forged cursor\n\nIt was an internal error.",
      1,
      /`Refuse a forged cursor`: its title is not `area:/,
    ],
    ["stores: refuse a forged cursor.\n\nIt was an internal error.", 1, /without a full stop/],
    [`stores: refuse ${"x".repeat(100)}\n\nWhy.`, 1, /its title has 115 characters; 110 is the most/],
    ["stores: refuse a forged cursor", 1, /it has no body: say why/],
  ])("%j is accepted or refused with the reason", (message, code, output) => {
    expect(committed(message).script("commits.ts")).toEqual({ code, output: expect.stringMatching(output) });
  });

  test("is checked in a shallow clone too, for the commits after its first one", () => {
    const { git, run, script } = committed("stores: refuse a forged cursor");
    git("commit", "--quiet", "--allow-empty", "--message", "stores: say which\n\nTwo look alike.");
    run("git", "clone", "--quiet", "--depth", "2", `file://${run("pwd").output.trim()}`, "shallow");
    const shallow = (depth: string) => {
      run("git", "-C", "shallow", "fetch", "--quiet", "--depth", depth);
      return run(
        process.execPath,
        "-e",
        `process.chdir("shallow"); import(${JSON.stringify(join(SCRIPTS, "commits.ts"))})`,
      );
    };
    expect(shallow("2")).toEqual({ code: 0, output: "" });
    expect(shallow("3")).toMatchObject({ code: 1, output: expect.stringMatching(/no body/) });
    expect(script("commits.ts").code).toBe(1);
  });
});

describe("the report of public types", () => {
  const files = {
    "package.json": JSON.stringify({
      exports: { ".": { types: "./dist/index.d.ts" }, "./package.json": "./package.json" },
    }),
    "tsconfig.json": JSON.stringify({
      compilerOptions: {
        target: "es2024",
        lib: ["es2024"],
        module: "nodenext",
        allowImportingTsExtensions: true,
        noEmit: true,
      },
    }),
    "tsconfig.build.json": JSON.stringify({
      extends: "./tsconfig.json",
      compilerOptions: {
        noEmit: false,
        noCheck: true,
        rewriteRelativeImportExtensions: true,
        declaration: true,
        rootDir: "src",
      },
      include: ["src"],
    }),
    "src/index.ts": `import { inner } from "./inner.ts";
export { inner as outer };
/** Says hello. */
export const hello = (name: string) => inner({ name });
export type { Options as HelloOptions } from "./inner.ts";
`,
    "src/inner.ts": `export interface Options { /** Who. */ name: string; part?: Part }
interface Part { size: number }
interface Unused { size: number }
export const inner = (options: Options) => options.name.length;
export const unused = (it: Unused) => it;
`,
  };

  test("contains each exported declaration without comments, and the types that those use", () => {
    const { script, read } = project(files);
    expect(script("api-report.ts")).toEqual({ code: 0, output: "" });
    const [, exported] = read("docs/reference/api/skein.api.md").split("```");
    expect(exported).toBe(`ts
export { Options as HelloOptions };
export interface Options {
    name: string;
    part?: Part;
}

export declare const hello: (name: string) => number;

export { inner as outer };
export declare const inner: (options: Options) => number;
`);
    const [, used] = read("docs/reference/api/used.api.md").split("```");
    expect(used).toBe("ts\ninterface Part {\n    size: number;\n}\n");
  });

  test("is out of date once a type that an export uses changes, but not after other changes", () => {
    const { script, write } = project(files);
    script("api-report.ts");
    write(
      "src/inner.ts",
      files["src/inner.ts"].replace("Who.", "Whom.").replace("Unused { size", "Unused { width"),
    );
    expect(script("api-report.ts", "--check")).toEqual({ code: 0, output: "" });
    write("src/inner.ts", files["src/inner.ts"].replace("Part { size: number", "Part { size: string"));
    expect(script("api-report.ts", "--check")).toMatchObject({
      code: 1,
      output:
        "docs/reference/api/used.api.md is not up to date: a public type has changed. Run `npm run api`, and look at the diff.\n",
    });
  });
});
