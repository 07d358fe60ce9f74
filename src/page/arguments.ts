// The arguments of a call as a person edits them: texts as they are, everything else as JSON.

import { t } from "./texts.ts";

export interface Field {
  readonly name: string;
  readonly isJson: boolean;
  readonly text: string;
}

export const fieldsOf = (args: Readonly<Record<string, unknown>>): Field[] =>
  Object.entries(args).map(([name, value]) => ({
    name,
    isJson: typeof value !== "string",
    text: typeof value === "string" ? value : JSON.stringify(value, null, 2),
  }));

/** The arguments, or for each field that is no JSON what is wrong with it. */
export function argumentsOf(
  fields: readonly Field[],
): { readonly args: Record<string, unknown> } | { readonly faults: ReadonlyMap<string, string> } {
  const args: [string, unknown][] = [];
  const faults = new Map<string, string>();
  for (const { name, isJson, text } of fields) {
    try {
      args.push([name, isJson ? JSON.parse(text) : text]);
    } catch (error) {
      faults.set(name, t().question.noJson(error instanceof Error ? error.message : String(error)));
    }
  }
  return faults.size > 0 ? { faults } : { args: Object.fromEntries(args) };
}
