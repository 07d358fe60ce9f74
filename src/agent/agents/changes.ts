// Compares two agents files. Lists agents and MCP servers that were added, removed or changed, field by field, as written
// in the files.

import { isObject } from "../../lib/json.ts";
import { firstChars } from "../../lib/text.ts";

/** A file as written, with variables unresolved and `defaults` merged into each agent. */
export interface WrittenAgents {
  readonly agents: Readonly<Record<string, Fields>>;
  /** The model aliases in the file. */
  readonly models: Readonly<Record<string, unknown>>;
  readonly mcp_servers: Readonly<Record<string, Fields>>;
}
type Fields = Readonly<Record<string, unknown>>;

export interface AgentsFileChange {
  readonly kind: "added" | "removed" | "changed";
  /** The changed entry, such as `agent coder` or `MCP server files`. */
  readonly what: string;
  /** The changed fields, such as `hooks.timeout.tool: 600 → 10m`. */
  readonly fields: readonly string[];
}

/**
 * Returns the changes in the order in which the entries appear in the new file, with removed entries last.
 * Does not show values that may be secret.
 */
export function changesBetween(before: WrittenAgents, after: WrittenAgents): AgentsFileChange[] {
  return [
    ...changesOf("agent", before.agents, after.agents),
    ...changesOf("model", asFields(before.models), asFields(after.models)),
    ...changesOf("MCP server", before.mcp_servers, after.mcp_servers),
  ];
}

function changesOf(
  kind: string,
  before: Record<string, Fields>,
  after: Record<string, Fields>,
): AgentsFileChange[] {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return [
    ...Object.entries(after).flatMap(([name, fields]): AgentsFileChange[] => {
      const what = `${kind} ${name}`;
      const old = Object.hasOwn(before, name) ? before[name] : undefined;
      if (!old) return [{ kind: "added", what, fields: [] }];
      const lines = fieldChanges([], old, fields);
      return lines.length > 0 ? [{ kind: "changed", what, fields: lines }] : [];
    }),
    ...removed.map((name): AgentsFileChange => ({ kind: "removed", what: `${kind} ${name}`, fields: [] })),
  ];
}

/** Converts models to maps, because the short form of a model is only a name. */
const asFields = (models: Readonly<Record<string, unknown>>): Record<string, Fields> =>
  Object.fromEntries(
    Object.entries(models).map(([name, spec]) => [name, isObject(spec) ? spec : { model: spec }]),
  );

const isScalar = (value: unknown) => typeof value !== "object" || value === null;

function fieldChanges(path: readonly string[], before: unknown, after: unknown): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => fieldChanges([...path, name], before[name], after[name]));
  }
  return [`${path.join(".")}: ${isSecret(path) ? "changed" : difference(before, after)}`];
}

/** True for the headers and the environment of MCP servers, and for the keys of models. */
const isSecret = (path: readonly string[]) =>
  path[0] === "headers" || path[0] === "env" || path.at(-1) === "api_key";

function difference(before: unknown, after: unknown): string {
  const isList = (value: unknown): value is unknown[] => Array.isArray(value) && value.every(isScalar);
  if (!isList(before) || !isList(after)) return `${shown(before)} → ${shown(after)}`;
  const added = after.filter((each) => !before.includes(each)).map((each) => `+ ${shown(each)}`);
  const removed = before.filter((each) => !after.includes(each)).map((each) => `- ${shown(each)}`);
  return [...added, ...removed].join(", ") || "another order";
}

const MAX_SHOWN = 80;

function shown(value: unknown): string {
  if (value === undefined) return "(default)";
  const text = (typeof value === "string" ? value : JSON.stringify(value)).replace(/\s+/g, " ");
  return text.length > MAX_SHOWN ? `${firstChars(text, MAX_SHOWN)}…` : text;
}
