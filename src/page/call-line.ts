// The arguments of a call, in a line and in full.

import { visible } from "./components.tsx";

type Args = Readonly<Record<string, unknown>>;

/** What says most about a call, when it has it. */
const TELLING = ["command", "path", "file_path", "url", "query", "pattern", "question", "task", "name"];
const LONGEST_LINE = 200;

/** One line, for the head of a card. */
export function lineOf(args: Args | undefined): string {
  if (!args) return "";
  const name = TELLING.find((each) => typeof args[each] === "string");
  const text = name ? String(args[name]) : Object.keys(args).length === 0 ? "" : JSON.stringify(args);
  return visible(text.slice(0, LONGEST_LINE).replace(/\s+/g, " ")) + (text.length > LONGEST_LINE ? "…" : "");
}

/** By name; a text as it is, everything else as JSON. */
export const entriesOf = (args: Args): readonly (readonly [name: string, text: string])[] =>
  Object.entries(args).map(([name, value]) => [
    visible(name),
    visible(typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  ]);
