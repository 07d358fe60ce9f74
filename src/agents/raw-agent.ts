// The agents of a file before anything is checked: each with what it takes from `defaults`, and with the way
// back to where it stands.

import type { Fault } from "../lib/check.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface RawAgent {
  readonly name: string;
  /** Whatever the file says; nothing about it is certain. */
  readonly fields: Fields;
  /** Where a field stands in the file. */
  placeOf(field: string): Fault["path"];
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether the whole file is one agent: it has a name of its own. */
export const isSingle = (data: unknown): data is Fields =>
  isFields(data) && "name" in data && !("agents" in data);

/** Passes over what is no agent at all. */
export function draftsOf(data: unknown): RawAgent[] {
  if (isSingle(data)) {
    const { name, mcp_servers: _, ...fields } = data;
    return [{ name: String(name), fields, placeOf: (field) => [field] }];
  }
  if (!isFields(data) || !isFields(data.agents)) return [];
  const defaults = isFields(data.defaults) ? data.defaults : {};
  return Object.entries(data.agents).flatMap(([name, own]) =>
    isFields(own) ? [draft(name, own, defaults)] : [],
  );
}

/** A field is the agent's own or the default as a whole; only `hooks` are taken over one by one. */
function draft(name: string, own: Fields, defaults: Fields): RawAgent {
  const hooks =
    isFields(own.hooks) && isFields(defaults.hooks) ? { ...defaults.hooks, ...own.hooks } : undefined;
  return {
    name,
    fields: { ...defaults, ...own, ...(hooks ? { hooks } : {}) },
    placeOf: (field) =>
      field in defaults && !(field in own) ? ["defaults", field] : ["agents", name, field],
  };
}
