// The generated tables in docs/: options of hooks, agents.yaml, server.yaml and commands. `<!-- table: NAME -->` and
// `<!-- /table -->` mark the position of a table on a page.

import { z } from "zod";
import { fileSchemas } from "../src/agent/agents/schema.ts";
import { AgentFields, ModelSpec } from "../src/agent/core/agent.ts";
import { Checks } from "../src/agent/hooks/guardrails/check.ts";
import { hooks } from "../src/agent/hooks/index.ts";
import { RuleSpec } from "../src/agent/hooks/permissions/rule.ts";
import { Turn } from "../src/agent/models/scripted.ts";
import { HttpServer, McpServerDefinitions, StdioServer } from "../src/agent/tools/mcp/options.ts";
import { Price, Quota } from "../src/engine/quotas/config.ts";
import { FileSchedules } from "../src/engine/schedules/file-schedules.ts";
import { BackendOptions, backends } from "../src/sandbox/index.ts";
import { VARIABLES } from "../src/server/config/environment.ts";
import { ServerConfig } from "../src/server/config/server.ts";
import { COMMANDS } from "../src/skein/cli/commands.ts";
import { en } from "../src/skein/cli/texts/en.ts";

type Schema = Exclude<z.core.JSONSchema._JSONSchema, boolean>;

/** A row, which is a key with its schema. */
interface Key {
  readonly path: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

const PLACE = /<!-- table: (\S+) -->\n[\s\S]*?<!-- \/table -->/g;

/** Returns a page with its tables updated. Throws if a table does not exist. */
export const withTables = (page: string): string =>
  page.replaceAll(PLACE, (_, name: string) => `<!-- table: ${name} -->\n\n${table(name)}\n<!-- /table -->`);

/** Returns the names of the tables on a page. */
export const tablesIn = (page: string): string[] => [...page.matchAll(PLACE)].map(([, name = ""]) => name);

/** Returns the keys without a description, by table. */
export const undescribed = (name: string): string[] =>
  keysOf(name).flatMap(({ path, schema }) => (schema.description ? [] : [path]));

function table(name: string): string {
  if (name === "environment") return markdown(["variable", "key of server.yaml"], variables());
  const command = COMMANDS.find((each) => `cli/${each.name.replaceAll(" ", "-")}` === name);
  if (command)
    return markdown(
      ["option", "variable", "default", "description"],
      Object.entries(command.options).map(optionRow),
    );
  return markdown(["key", "type", "default", "description"], keysOf(name).map(keyRow));
}

const markdown = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");

const variables = () => Object.entries(VARIABLES).map(([name, path]) => [code(name), code(path)]);

/** The help of an option ends with `[VARIABLE, default]`, or with one of the two. */
function optionRow([name, { value, about }]: [
  string,
  (typeof COMMANDS)[number]["options"][string],
]): string[] {
  const [, text = "", bracket = ""] = /^(.*?)(?: \[(.*)\])?$/.exec(about(en)) ?? [];
  const [, variable, rest = bracket] = /^([A-Z_]{4,}), (.*)$/.exec(bracket) ?? [];
  const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  return [
    code(`--${name}${value ? ` ${value}` : ""}`),
    variable ? code(variable) : "",
    rest ? code(rest) : "–",
    sentence,
  ];
}

const VARIABLE_OF = new Map(Object.entries(VARIABLES).map(([name, path]) => [path, name]));

function keyRow({ path, schema, isRequired }: Key): string[] {
  const variable = VARIABLE_OF.get(path);
  const description = `${schema.description ?? ""}${variable ? ` Variable: ${code(variable)}.` : ""}`;
  return [code(path), typeOf(schema), isRequired ? "required" : defaultOf(path, schema), description];
}

const code = (text: string) => `\`${text}\``;

/** Returns the type of a key in terms that YAML users know. */
function typeOf(schema: Schema): string {
  if (schema.title) return schema.title;
  if (schema.const !== undefined) return code(String(schema.const));
  if (schema.$ref) return "map";
  if (schema.enum && schema.enum.length < MANY)
    return schema.enum.map((each) => code(String(each))).join(", ");
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return [...new Set(either.map((each) => typeOf(each as Schema)))].join(" or ");
  if (schema.type === "array") return `list of ${plural(typeOf((schema.items ?? {}) as Schema))}`;
  if (schema.type === "object") return "map";
  if (schema.type === "integer" || schema.type === "number") return `${schema.type}${range(schema)}`;
  if (schema.format === "uri") return "URL";
  return typeof schema.type === "string" ? schema.type : "any";
}

/** The maximum number of names to list in a cell. */
const MANY = 8;

const plural = (type: string) => type.replaceAll(/\b(map|string|integer|number|list|URL)\b/g, "$1s");

function range({ minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below }: Schema): string {
  const isBounded = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  if (isBounded && minimum !== undefined && minimum >= 0) return `, ${minimum} to ${maximum}`;
  return [
    above === undefined ? "" : `, more than ${above}`,
    minimum === undefined || minimum < 0 ? "" : `, at least ${minimum}`,
    below === undefined ? "" : `, less than ${below}`,
    isBounded ? `, at most ${maximum}` : "",
  ].join("");
}

function defaultOf(path: string, { default: value, title }: Schema): string {
  if (value === undefined) return "–";
  if (Array.isArray(value)) return value.map((each) => code(String(each))).join(", ") || "none";
  if (typeof value === "object" || value === "") return "none";
  if (title === "duration" && typeof value === "number") return code(`${value}s`);
  const mib = Number(value) / 1024 ** 2;
  return `${code(String(value))}${path.endsWith("bytes") && Number.isInteger(mib) ? ` (${mib} MiB)` : ""}`;
}

/** Returns the schema of a table. `deep` lists the keys of nested maps, such as `judge.policy`. */
function schemaOf(name: string): { schema: z.ZodType; deep?: true; below?: string } {
  const [room = "", rest = ""] = name.split("/");
  const parts = {
    hooks,
    backends: BackendOptions,
    tools: () => [],
    mcpServers: McpServerDefinitions,
    schedules: FileSchedules,
  };
  const { agent, several } = fileSchemas(parts);
  const found = {
    hooks: hooks.find((hook) => hook.name === rest)?.options,
    guardrails: { check: Checks }[rest],
    permissions: { rule: RuleSpec }[rest],
    backends: backends.find(({ type }) => type === rest)?.options,
    "agents.yaml": { file: several, agent, interrupts: AgentFields.shape.interrupts.unwrap() }[rest],
    mcp: { http: HttpServer, stdio: StdioServer }[rest],
    models: { model: modelMap(), turn: Turn }[rest],
    quotas: { quota: Quota, price: Price }[rest],
  }[room];
  if (found) return { schema: found, ...(room === "hooks" || room === "guardrails" ? { deep: true } : {}) };
  if (room === "server.yaml") return { schema: ServerConfig, deep: true, below: rest };
  throw new Error(`There is no table \`${name}\`.`);
}

/** Returns the map form of a model. */
function modelMap(): z.ZodType {
  const [, map] = ModelSpec.options;
  return map;
}

function keysOf(name: string): Key[] {
  if (name === "environment" || name.startsWith("cli/")) return [];
  const { schema, deep, below } = schemaOf(name);
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" });
  const [named] = Object.values(json.$defs ?? {});
  const keys = leaves(json.$ref && named ? named : json, deep);
  if (below === undefined) return keys;
  const sections = below.split(",");
  return keys.filter(({ path }) => sections.some((each) => path === each || path.startsWith(`${each}.`)));
}

/** The keys whose maps have their own tables. */
const APART = /^(?:input|output|tool_args|quotas\.(?:tenant|user)|rules\[\])$/;

function leaves(schema: Schema, deep = false, path = ""): Key[] {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).flatMap(([name, each]) => {
    const inner = each as Schema;
    const key = { path: path + name, schema: inner, isRequired: required.includes(name) };
    if (!deep || inner.title || APART.test(key.path)) return [key];
    if (inner.properties) return leaves(inner, deep, `${key.path}.`);
    const items = inner.items as Schema | undefined;
    return [
      key,
      ...(items?.properties && !APART.test(`${key.path}[]`) ? leaves(items, deep, `${key.path}[].`) : []),
    ];
  });
}
