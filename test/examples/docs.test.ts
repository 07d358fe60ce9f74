// What the documentation says can be checked here: names, numbers, addresses.

import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { tablesIn, undescribed, withTables } from "../../script/docs-tables.ts";
import type { UserMay } from "../../src/agent/core/hook.ts";
import { hooks } from "../../src/agent/hooks/index.ts";
import { DEFAULTS } from "../../src/engine/stores/options.ts";
import { StreamEvent } from "../../src/protocol/event.ts";
import { backends } from "../../src/sandbox/index.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { isWirePath } from "../../src/server/config/wire-names.ts";
import { agentWith } from "../agent/hooks/made.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** The cells of the tables under a page's heading, a row each. */
function rows(file: string, heading: string): string[][] {
  const [, part] = `\n${read(file)}`.split(`\n${heading}\n`);
  if (part === undefined) throw new Error(`${file} has no heading "${heading}".`);
  const [section = ""] = part.split("\n##");
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map((cells) => cells.slice(1, -1));
}

/** What stands in backticks in the first cells. */
const firstNames = (table: string[][]) =>
  table.flatMap(([cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));

/** The defaults of a hook, or of a backend, by option. */
function defaultsOf(options: z.ZodType): [string, unknown][] {
  const { properties = {} } = z.toJSONSchema(options, { io: "input" });
  return Object.entries(properties).map(([name, schema]) => [name, z.looseObject({}).parse(schema).default]);
}

test("the hooks that users can change are those that declare it", () => {
  const [disabled, switched, configured] = rows("docs/guides/limit-overrides.md", "## Changeable hooks")
    .slice(2)
    .map(([, cell = ""]) => firstNames([[cell]]).toSorted());
  const named = (how: UserMay) => hooks.filter(({ userMay }) => userMay === how).map(({ name }) => name);
  expect(disabled).toEqual(named("disable").toSorted());
  expect(switched).toEqual(named("switch").toSorted());
  expect(configured).toEqual(named("configure").toSorted());
});

test("reference/hooks lists all hooks in order from the outside, and which of them are on by default", () => {
  const [, , ...listed] = rows("docs/reference/hooks/README.md", "## Built-in hooks");
  const isActive = ({ activeByDefault }: (typeof hooks)[number]) => activeByDefault(agentWith());
  expect(listed.map(([cell = "", on]) => [/^\[`(\w+)`\]/.exec(cell)?.[1], on?.startsWith("always")])).toEqual(
    hooks.map((hook) => [hook.name, isActive(hook)]),
  );
});

test("no link in the documentation is dead", () => {
  const slug = (title: string) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
  const anchors = (path: string) =>
    [...readFileSync(path, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => slug(title));
  const dead = [
    ...globSync("{docs,examples,test}/**/*.md", { cwd: ROOT }),
    ...globSync("*.md", { cwd: ROOT }),
  ].flatMap((file) =>
    [...read(file).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
      .filter(([, target = "", anchor]) => {
        const path = target === "" ? join(ROOT, file) : resolve(ROOT, dirname(file), target);
        return !existsSync(path) || (anchor !== undefined && !anchors(path).includes(anchor));
      })
      .map(([link]) => `${file}: ${link}`),
  );
  expect(dead).toEqual([]);
});

test("each page that the program names exists", () => {
  const named = globSync("src/**/*.ts", { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(/docsPage\("([^"#]+)/g)].map(([, page = ""]) => page),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((page) => !existsSync(join(ROOT, "docs", page)))).toEqual([]);
});

test("the project has one address, and links to pages that exist", () => {
  const { homepage } = z.object({ homepage: z.string() }).parse(JSON.parse(read("package.json")));
  const files = ["config/project/README.md", "package.json", "packages/client/package.json"];
  const found = files.flatMap((file) =>
    [...read(file).matchAll(/(https:\/\/github\.com\/[\w-]+\/skein)\b(?:\/blob\/main\/([\w/.-]+\w))?/g)].map(
      ([, address, page = "."]) => ({ file, address, isThere: existsSync(join(ROOT, page)) }),
    ),
  );
  expect(new Set(found.map(({ file }) => file))).toEqual(new Set(files));
  expect(found.filter(({ address, isThere }) => address !== homepage || !isThere)).toEqual([]);
});

describe("the README", () => {
  const part = (heading: string) => read("README.md").split(`\n${heading}\n`)[1]?.split("\n#")[0] ?? "";

  test.each([
    ["### As an image", "deploy-container"],
    ["### With compose", "deploy-compose"],
  ])("has the commands of the guide: %s", (heading, guide) => {
    const [, commands = ""] = /```sh\n(.*?)```/s.exec(part(heading)) ?? [];
    expect(read(`docs/guides/${guide}.md`)).toContain(commands);
    expect(commands).not.toBe("");
  });

  test("has the figures from performance.md", () => {
    const [, cells = ""] =
      /^\| tokens per second of one core \|(.*)$/m.exec(read("docs/concepts/performance.md")) ?? [];
    const told = part("## Why Skein").match(/\d+,000/g) ?? [];
    expect(told).toHaveLength(3);
    for (const figure of told) expect(cells).toContain(` ${figure} `);
  });
});

test("every table row is below a header", () => {
  const files = [
    ...globSync("{docs,examples,test}/**/*.md", { cwd: ROOT }),
    ...globSync("*.md", { cwd: ROOT }),
  ];
  const isRow = (line = "") => line.startsWith("|");
  const headless = files.flatMap((file) => {
    const lines = read(file)
      .replaceAll(/^```[\s\S]*?^```/gm, "")
      .split("\n");
    return lines
      .filter((line, at) => isRow(line) && !isRow(lines[at - 1]) && !/^\|[\s:|-]+$/.test(lines[at + 1] ?? ""))
      .map((line) => `${file}: ${line}`);
  });
  expect(headless).toEqual([]);
});

/** Whether a test of this file has this title. `…` stands for any text, ` > ` for a test within a `describe`. */
function hasTest(file: string, title: string): boolean {
  if (!existsSync(join(ROOT, file))) return false;
  const source = read(file);
  return title.split(" > ").every((part) => {
    const escaped = part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    const pattern = escaped.replaceAll(/ ?…/g, '[^"\\n]*');
    return new RegExp(`^\\s*(?:\\S.*\\()?["'\`]${pattern}["'\`],`, "m").test(source);
  });
}

test("each promise of security-promises.md names tests that exist", () => {
  const [, guarantees = ""] = read("docs/reference/security-promises.md").split("\n## Guarantees\n");
  const promises = guarantees.split(/^- /m).slice(1);
  expect(promises.length).toBeGreaterThan(25);
  const unheld = promises.flatMap((promise) => {
    const named = [...promise.matchAll(/^ {2}- (\S+): "(.*)"$/gm)];
    const missing = named.flatMap(([line, file = "", title = ""]) => (hasTest(file, title) ? [] : [line]));
    return named.length === 0 ? [promise] : missing;
  });
  expect(unheld).toEqual([]);
});

test("each attack in sandbox-security.md names tests that exist", () => {
  const cells = ["## Resource exhaustion", "## Attacks on the host", "## Escapes"]
    .flatMap((heading) => rows("docs/reference/sandbox-security.md", heading).slice(2))
    .map((row) => row.at(-1) ?? "");
  expect(cells.length).toBeGreaterThan(30);
  const titles = cells.flatMap((cell) => {
    let file = "";
    return cell.split(" · ").map((each) => {
      const [, named, title = ""] = /^(?:(\w+): )?(.*)$/.exec(each) ?? [];
      file = named ?? file;
      return [`test/sandbox/docker/${file}.test.ts`, title] as const;
    });
  });
  expect(titles.filter(([file, title]) => !hasTest(file, title))).toEqual([]);
});

test("errors.md describes every code: its status, its cause and its remedy", () => {
  const [, table = ""] = /const STATUS.*?\{(.*?)\};/s.exec(read("src/server/http/errors.ts")) ?? [];
  const statuses = [...table.matchAll(/(\w+): (\d+)/g)].map(([, code, status]) => [code, status]);
  const described = [
    ...read("docs/reference/errors.md").matchAll(
      /^### (\w+)\n\n- Status: (\d+)\n- Cause: .+\n- Remedy: .+\n(?!\S)/gm,
    ),
  ].map(([, code, status]) => [code, status]);
  expect(statuses.length).toBeGreaterThan(20);
  expect(described.toSorted()).toEqual(statuses.toSorted());
});

test("events.md lists every event of a run with its fields", () => {
  const listed = new Map(
    rows("docs/reference/events.md", "## Events of a run").map(([event = "", data = ""]) => [event, data]),
  );
  for (const { shape } of StreamEvent.options) {
    const row = listed.get(`\`${shape.event.value}\``) ?? "";
    if ("shape" in shape.data) {
      const fields = Object.entries<z.ZodType>(shape.data.shape).map(
        ([name, value]) => name + (value.isOptional() ? "?" : ""),
      );
      expect(firstNames([[row]]), shape.event.value).toEqual(fields);
    } else expect(row).toMatch(/delta.*reasoning_delta.*tool_call/);
  }
});

const routesOfOpenApi = () =>
  Object.keys(
    z.object({ paths: z.record(z.string(), z.unknown()) }).parse(parse(read("openapi.yaml"))).paths,
  );

test("the commands of the documentation call existing routes, and every route of a user", () => {
  const shown = globSync("docs/**/*.md", { cwd: ROOT }).flatMap((page) =>
    [...read(page).matchAll(/\$SKEIN(\/[^\s"'?]*)/g)].map(([, path = ""]) => ({ page, path })),
  );
  const fits = (path: string, route: string) =>
    new RegExp(`^${route.replace(/\{(?!path)\w+\}/g, "[^/]+").replace("{path}", ".+")}$`).test(path);
  const routes = routesOfOpenApi().filter((route) => !isWirePath(route));
  expect(shown.filter(({ path }) => !routes.some((route) => fits(path, route)))).toEqual([]);
  const ofUsers = routes.filter((route) => !/^\/(?:admin\/|health$|ready$)/.test(route));
  expect(ofUsers.filter((route) => !shown.some(({ path }) => fits(path, route)))).toEqual([]);
});

test("the pages in docs/reference/wires list every route of the wires, and only existing ones", () => {
  const pages = globSync("docs/reference/wires/*.md").map(read).join("\n");
  const told = [...pages.matchAll(/^\| `(?:GET|POST|PUT|PATCH|DELETE) (\/[^\s`]*)`/gm)].map(
    ([, path = ""]) => path,
  );
  const routes = routesOfOpenApi().filter(isWirePath);
  expect(routes.length).toBeGreaterThan(0);
  expect(new Set(told)).toEqual(new Set(routes.map((route) => route.replaceAll(/\{(\w+)\}/g, ":$1"))));
});

const pages = () => globSync("docs/**/*.md", { cwd: ROOT });

test("the generated tables of the pages are up to date", () => {
  expect(pages().filter((file) => withTables(read(file)) !== read(file))).toEqual([]);
});

test("a page has the table of each schema: hooks, backends, agents.yaml, server.yaml, MCP servers, models and quotas", () => {
  const names = pages().flatMap((file) => tablesIn(read(file)));
  const isShown = (name: string) => names.includes(name);
  const sections = names.flatMap((name) => /^server\.yaml\/(.*)/.exec(name)?.[1]?.split(",") ?? []);
  const needed = [
    ...hooks.filter(({ options }) => defaultsOf(options).length > 0).map(({ name }) => `hooks/${name}`),
    ...["agents.yaml/file", "agents.yaml/agent", "agents.yaml/interrupts", "mcp/http", "mcp/stdio"],
    ...[
      "guardrails/check",
      "permissions/rule",
      "models/model",
      "models/turn",
      "quotas/quota",
      "quotas/price",
    ],
    ...backends.map(({ type }) => `backends/${type}`),
    "environment",
  ];
  expect(needed.filter((name) => !isShown(name))).toEqual([]);
  expect(sections.toSorted()).toEqual(Object.keys(ServerConfig.shape).toSorted());
});

test("each row of a generated table describes its key", () => {
  const names = pages().flatMap((file) => tablesIn(read(file)));
  expect(names.flatMap((name) => undescribed(name).map((key) => `${name}: ${key}`))).toEqual([]);
});

describe("a figure on several pages is the same on each", () => {
  const UNITS: Readonly<Record<string, string>> = { hours: "h", days: "d", minutes: "m" };
  const asSetting = (amount: string) =>
    amount.replace(/(\d+) (ms|s|hours|days|minutes)$/, (_, number, unit) => number + (UNITS[unit] ?? unit));
  const AMOUNT = String.raw`\d+(?: (?:ms|s|MiB|hours|days|minutes))?`;
  const SETTING = "`([a-z_]+(?:\\.[a-z_]+)+)`";
  /** The row of a setting, in the generated tables of server.yaml. */
  const settings = new Map(
    [...read("docs/reference/server-yaml.md").matchAll(/^\| `([a-z_.]+)` \| .*$/gm)].map(
      ([row, name = ""]) => [name, row],
    ),
  );

  test("the default of a setting of server.yaml", () => {
    const after = new RegExp(`${SETTING}(?: (?:or|and) ${SETTING})? \\((${AMOUNT})\\)`, "g");
    const before = new RegExp(`(${AMOUNT})(?: [a-z ]+)? \\(${SETTING}\\)`, "g");
    const told = pages().flatMap((page) => [
      ...[...read(page).matchAll(after)].flatMap(([, one, other, amount = ""]) =>
        [one, other].map((name) => ({ page, name, amount })),
      ),
      ...[...read(page).matchAll(before)].map(([, amount = "", name]) => ({ page, name, amount })),
    ]);
    const compared = told.filter(({ name }) => name !== undefined && settings.has(name));
    expect(compared.length).toBeGreaterThan(12);
    const isDefault = ({ name = "", amount }: { name?: string | undefined; amount: string }) =>
      new RegExp(`[\`(]${asSetting(amount)}[\`)]`).test(settings.get(name) ?? "");
    expect(compared.filter((each) => !isDefault(each))).toEqual([]);
  });

  test("the attempts of a run whose process dies", () => {
    const { maxAttempts } = DEFAULTS;
    const told = pages().flatMap((page) => [...read(page).matchAll(/\b(?:dies|died|lost it) (\w+) times/g)]);
    expect(told.length).toBeGreaterThan(2);
    expect(new Set(told.map(([, count]) => count))).toEqual(
      new Set([maxAttempts === 5 ? "five" : maxAttempts]),
    );
  });

  test("the size of the first start", () => {
    const files = ["README.md", "docs/start/run-skein.md", "script/setup"];
    const sizes = files.map((file) => /(?:minute and|installs|up to) (\d+ MB)/.exec(read(file))?.[1]);
    expect(new Set(sizes)).toEqual(new Set(["250 MB"]));
  });

  test("the number of tutorials", () => {
    const tutorials = globSync("docs/start/*.md", { cwd: ROOT }).length - 1;
    const told = ["README.md", "docs/README.md", "docs/start/README.md"].map((file) =>
      /\b(\w+) (?:\[)?tutorials/i.exec(read(file))?.[1]?.toLowerCase(),
    );
    expect(told).toEqual(Array(3).fill(tutorials === 5 ? "five" : tutorials));
  });
});
