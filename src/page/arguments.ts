// The arguments of a call, as a user edits them: one field per argument, or one JSON object for all. A field shows
// strings as they are and all other values as JSON.

import type { ToolCall } from "../client/client.ts";
import { isObject } from "./form.ts";
import { t } from "./texts.ts";

export interface ArgumentField {
  readonly name: string;
  readonly isJson: boolean;
  readonly text: string;
}

export const fieldsOf = (args: Readonly<Record<string, unknown>>): ArgumentField[] =>
  Object.entries(args).map(([name, value]) => ({
    name,
    isJson: typeof value !== "string",
    text: typeof value === "string" ? value : JSON.stringify(value, null, 2),
  }));

/** Returns the text of a call's arguments. Arguments that are not a JSON object are returned as the model wrote them. */
export const jsonOf = ({ args, malformed }: ToolCall): string => malformed ?? JSON.stringify(args, null, 2);

/** Parses all arguments of a call, or returns an error message. Blank text means no arguments. */
export function readObject(
  text: string,
): { readonly args: Record<string, unknown> } | { readonly fault: string } {
  const words = t().again;
  if (text.trim() === "") return { args: {} };
  try {
    const args: unknown = JSON.parse(text);
    return isObject(args) ? { args } : { fault: words.noObject };
  } catch (error) {
    return { fault: t().question.noJson(error instanceof Error ? error.message : String(error)) };
  }
}

/** Returns the arguments, or an error message for each field whose text is not JSON. */
export function argumentsOf(
  fields: readonly ArgumentField[],
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
