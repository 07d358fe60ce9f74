// The agents of a file before validation, merged with `defaults`, with the places of their fields.

import type { Fault } from "../lib/check.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface RawAgent {
  readonly name: string;
  /** As in the file, not validated. */
  readonly fields: Fields;
  /** A field's place in the file. */
  placeOf(field: string): Fault["path"];
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether the whole file is one agent: it has a name of its own. */
export const isSingle = (data: unknown): data is Fields =>
  isFields(data) && "name" in data && !("agents" in data);

/** Skips values that are not maps. */
export function draftsOf(data: unknown): RawAgent[] {
  if (isSingle(data)) {
    const { name, mcp_servers: _, plugins: __, ...fields } = data;
    return [{ name: String(name), fields, placeOf: (field) => [field] }];
  }
  if (!isFields(data) || !isFields(data.agents)) return [];
  const defaults = isFields(data.defaults) ? data.defaults : {};
  return Object.entries(data.agents).flatMap(([name, own]) =>
    isFields(own) ? [draft(name, own, defaults)] : [],
  );
}

/** Each field is the agent's own or the default; `hooks` are merged one by one. */
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
