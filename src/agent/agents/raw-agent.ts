// The agents in a file before validation. They are merged with `defaults`, and include the positions of their
// fields.

import { z } from "zod";
import type { Fault } from "../../lib/check.ts";
import { isObject } from "../../lib/json.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface RawAgent {
  readonly name: string;
  /** The fields as they appear in the file, before validation. */
  readonly fields: Fields;
  /** Returns a field's position in the file. */
  placeOf(field: string): Fault["path"];
}

/** True if the whole file describes one agent, because it has a `name`. */
export const isSingle = (data: unknown): data is Fields =>
  isObject(data) && "name" in data && !("agents" in data);

/** Returns the agents in a file. Skips values that are not maps. */
export function draftsOf(data: unknown): RawAgent[] {
  if (isSingle(data)) {
    const { name, mcp_servers: _, plugins: __, models: ___, schedules: ____, ...fields } = data;
    return [{ name: String(name), fields, placeOf: (field) => [field] }];
  }
  if (!isObject(data) || !isObject(data.agents)) return [];
  const defaults = isObject(data.defaults) ? data.defaults : {};
  return Object.entries(data.agents).flatMap(([name, own]) =>
    isObject(own) ? [draft(name, own, defaults)] : [],
  );
}

/**
 * Merges an agent with the defaults. A field of the agent replaces the default, but `hooks` are merged one by
 * one.
 */
function draft(name: string, own: Fields, defaults: Fields): RawAgent {
  const hooks =
    isObject(own.hooks) && isObject(defaults.hooks) ? { ...defaults.hooks, ...own.hooks } : undefined;
  return {
    name,
    fields: { ...defaults, ...own, ...(hooks ? { hooks } : {}) },
    placeOf: (field) =>
      field in defaults && !(field in own) ? ["defaults", field] : ["agents", name, field],
  };
}

/** Returns the names and globs under `tools`. */
export const namedTools = ({ tools }: Fields) => z.array(z.string()).safeParse(tools).data ?? [];
