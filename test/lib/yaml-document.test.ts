import { expect, test } from "vitest";
import { z } from "zod";
import { readYaml } from "../../src/lib/yaml/document.ts";

const Server = z.strictObject({
  name: z.string().optional(),
  port: z.int().min(1).optional(),
  secure: z.boolean().optional(),
  mode: z.enum(["fast", "careful"]).optional(),
  url: z.url().optional(),
  api_key: z.string().min(40).optional(),
  tags: z.array(z.string().regex(/^[a-z]+$/, "must be lower-case letters")).optional(),
  auth: z
    .discriminatedUnion("type", [z.strictObject({ type: z.literal("basic"), user: z.string() })])
    .optional(),
  prompt: z.union([z.string(), z.strictObject({ file: z.string() }), z.array(z.string())]).optional(),
  todos: z.union([z.boolean(), z.strictObject({ limit: z.int() })]).optional(),
});
const Servers = z.strictObject({
  servers: z.record(z.string().regex(/^[a-z]+$/, "must be lower-case letters"), Server),
});

function problemsOf(text: string, env = {}, schema: z.ZodType = Servers): string[] {
  const document = readYaml("a.yaml", text, env);
  const checked = document.check(schema);
  return "problems" in checked ? document.linesOf(checked.problems) : [];
}

function read(text: string, env = {}): z.output<typeof Server> | undefined {
  const document = readYaml("a.yaml", `servers: { main: ${text} }`, env);
  const checked = document.check(Servers);
  if ("problems" in checked) throw new Error(document.linesOf(checked.problems).join("\n"));
  return checked.value.servers.main;
}

test("reports every error at once, with its location and the correct form", () => {
  const text = `servers:
  main:
    nmae: x
    port: 0
    secure: maybe
    mode: fats
    url: nowhere
    tags: [ok, No]
    auth: { type: basik }
    prompt: { fle: a.md }
    todos: [1]
  Bad: {}
  empty:
extra: 1
`;
  expect(problemsOf(text)).toEqual([
    "a.yaml:3:5: servers.main: unknown key `nmae`; did you mean `name`?",
    "a.yaml:4:11: servers.main.port: `0` must be at least 1",
    "a.yaml:5:13: servers.main.secure: `maybe` must be true or false",
    "a.yaml:6:11: servers.main.mode: `fats` must be one of `fast`, `careful`; did you mean `fast`?",
    "a.yaml:7:10: servers.main.url: `nowhere` must be a URL, such as https://example.com",
    "a.yaml:8:16: servers.main.tags[1]: `No` must be lower-case letters",
    "a.yaml:9:19: servers.main.auth.type: `basik` must be `basic`; did you mean `basic`?",
    "a.yaml:10:5: servers.main.prompt.file: is missing: must be a string",
    "a.yaml:10:15: servers.main.prompt: unknown key `fle`; did you mean `file`?",
    "a.yaml:11:5: servers.main.todos: must be true or false, or a map",
    "a.yaml:12:3: servers: `Bad` must be lower-case letters",
    "a.yaml:13:9: servers.empty: is empty: must be a map",
    "a.yaml:14:1: unknown key `extra`; use one of servers",
  ]);
});

/** Texts in here have `%{` where they mean the beginning of a variable. */
const written = (text: string) => text.replaceAll("%{", "$" + "{");
const told = (problems: readonly string[]) => problems.map((problem) => problem.replaceAll("$" + "{", "%{"));

test("fills in variables with their defaults", () => {
  const env = { NAME: "ada", EMPTY: "" };
  const greeting = written("{ name: 'hello %{NAME}, %{OTHER:-you}%{EMPTY:-!}%{NONE:-}' }");
  expect(read(greeting, env)?.name).toBe("hello ada, you!");
  expect(read(written("{ name: 'a $%{NAME} and a $NAME' }"), env)?.name).toBe(
    written("a %{NAME} and a $NAME"),
  );
});

test("reads a variable as the number or boolean that is expected there", () => {
  const env = { PORT: "8080", SECURE: "false", NAME: "42" };
  const text = written(`{ port: "%{PORT}", secure: "%{SECURE}", todos: "%{SECURE}", name: "%{NAME}" }`);
  expect(read(text, env)).toEqual({ port: 8080, secure: false, todos: false, name: "42" });
  expect(told(problemsOf(written("servers:\n  main:\n    port: %{NAME}"), { NAME: "many" }))).toEqual([
    "a.yaml:3:11: servers.main.port: `%{NAME}` must be a number",
  ]);
});

test("a variable cannot add structure", () => {
  const NAME = "x\nport: 1 # {a: [";
  expect(read(written('{ name: "%{NAME}" }'), { NAME })).toEqual({ name: NAME });
});

test("reports each missing variable together with all other errors", () => {
  const text = `servers:
  main:
    port: %{PORT}
    tags: [a, "%{A}%{B}"]
    mode: fast!
    name: %{1}`;
  expect(told(problemsOf(written(text), { B: "" }))).toEqual([
    "a.yaml:3:11: servers.main.port: environment variable `PORT` is not set; set it, or write `%{PORT:-default}`",
    "a.yaml:4:15: servers.main.tags[1]: environment variable `A` is not set; set it, or write `%{A:-default}`",
    "a.yaml:4:15: servers.main.tags[1]: environment variable `B` is not set; set it, or write `%{B:-default}`",
    "a.yaml:5:11: servers.main.mode: `fast!` must be one of `fast`, `careful`; did you mean `fast`?",
    "a.yaml:6:11: servers.main.name: `%{` does not begin a variable here; write `%{NAME}`, `%{NAME:-default}`, or `$%{` for itself",
  ]);
});

test("explains that a variable between brackets needs quotes", () => {
  const text = written("servers: { main: { port: %{PORT}, mode: fast } }");
  expect(told(problemsOf(text, { PORT: "1" }))).toEqual([
    'a.yaml:1:27: a variable inside `{ }` or `[ ]` must be in quotes: "%{NAME}"',
  ]);
});

test("never shows a variable's value, or a value whose key suggests a secret", () => {
  const Talkative = z.strictObject({
    mode: z.enum(["fast"]).optional(),
    api_key: z.string().min(40).optional(),
    header: z.string().superRefine((value, context) => {
      context.addIssue({ code: "custom", message: `must not be ${value}` });
    }),
  });
  const text = written("mode: %{MODE}\napi_key: written-here\nheader: Bearer %{TOKEN}");
  const env = { MODE: "sk-hidden-mode", TOKEN: "sk-hidden-token" };
  expect(told(problemsOf(text, env, Talkative))).toEqual([
    "a.yaml:1:7: mode: `%{MODE}` must be `fast`",
    "a.yaml:2:10: api_key: must have at least 40 characters",
    "a.yaml:3:9: header: `Bearer %{TOKEN}` must not be Bearer %{TOKEN}",
  ]);
});

test("refuses invalid YAML with the location of the error", () => {
  const problem = (text: string) => problemsOf(text)[0];
  expect(problem("servers: [1, 2\nb: 3")).toMatch(/^a\.yaml:2:1: Flow sequence/);
  expect(problem("a: 1\nb: 2\na: 3")).toBe("a.yaml:3:1: duplicate key `a`; keep one of them");
  expect(problem("servers: { main: { tags: *x } }")).toBe(
    "a.yaml:1:26: there is no anchor `&x` before this alias",
  );
  expect(problem("servers: &a { main: *a }")).toBe("a.yaml:1:21: the alias `*a` contains itself");
  expect(problem("servers: !secret x")).toMatch(/^a\.yaml:1:10: Unresolved tag/);
  expect(problem("servers: {}\n---\nservers: {}")).toMatch(/^a\.yaml:2:1: a second document begins here/);
  expect(problem("servers:\n  __proto__: {}")).toMatch(/^a\.yaml:2:3: `__proto__` cannot be a key/);
  expect(problem("a: one: two")).toBe("a.yaml:1:4: a text with `: ` in it must be in quotes");
  expect(problem("servers:\n  a: {}\n b: {}")).toBe(
    "a.yaml:3:2: the indentation is wrong: keys of one map must begin in the same column, and `b` does not",
  );
  expect(problem("")).toBe("a.yaml:1:1: is empty: must be a map");
});

test("replaces an alias with its anchor, and finds errors behind it", () => {
  const text =
    "servers:\n  a: &same { port: 80, name: x }\n  b: *same\n  c: { tags: &t [No] }\n  d: { tags: *t }";
  expect(problemsOf(text)).toEqual([
    "a.yaml:4:18: servers.c.tags[0]: `No` must be lower-case letters",
    "a.yaml:4:18: servers.d.tags[0]: `No` must be lower-case letters",
  ]);
});

test("merges maps with `<<` from keys that begin with `x-`, and finds errors behind them", () => {
  const text = `x-base: &base { port: "\${PORT}", name: x }
servers:
  a: { <<: *base, name: y }
  b:
    <<: [{ tags: [No] }, *base]
`;
  const { data } = readYaml("a.yaml", text, { PORT: "80" });
  expect(data).toEqual({
    servers: { a: { port: "80", name: "y" }, b: { port: "80", name: "x", tags: ["No"] } },
  });
  expect(problemsOf(text, { PORT: "80" })).toEqual([
    "a.yaml:5:19: servers.b.tags[0]: `No` must be lower-case letters",
  ]);
  expect(problemsOf("servers:\n  a: { <<: 5 }")).toEqual([
    "a.yaml:2:8: `<<` takes a map or a list of maps, such as `<<: *name` for a map marked `&name`",
  ]);
});

test("warns about a value that uses another program's notation for variables", () => {
  const text = `a: $OPENAI_API_KEY
b: { authorization: Bearer $TOKEN }
c: "%KEY%"
d: os.environ/KEY
e: costs $5, or $USD 5 a \${KEY:-month}
`;
  const { doubts, linesOf } = readYaml("a.yaml", text, {});
  const right = (name: string) =>
    `is used as a literal value; to use the environment variable, write \`\${${name}}\``;
  expect(linesOf(doubts)).toEqual([
    `a.yaml:1:4: a: \`$OPENAI_API_KEY\` ${right("OPENAI_API_KEY")}`,
    `a.yaml:2:21: b.authorization: \`Bearer $TOKEN\` ${right("TOKEN")}`,
    `a.yaml:3:4: c: \`%KEY%\` ${right("KEY")}`,
    `a.yaml:4:4: d: \`os.environ/KEY\` ${right("KEY")}`,
  ]);
});

test("ends quickly on hostile texts", () => {
  const lines = (count: number, line: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => line(index)).join("\n");
  const bomb = lines(
    9,
    (level) => `k${level}: &k${level} [${Array(9).fill(level ? `*k${level - 1}` : "x")}]`,
  );
  expect(problemsOf(bomb)[0]).toMatch(/aliases .* multiply too much/);
  expect(problemsOf(`a: ${"[".repeat(50_000)}`)).toEqual([expect.stringMatching(/nested too deeply/)]);
  const wide = problemsOf(lines(20_000, (index) => `k${index}: 1`));
  // The first unknown keys, and the key that is missing.
  expect(wide).toHaveLength(21);
  expect(problemsOf(lines(20_000, () => "k: 1"))).toHaveLength(100);
});
