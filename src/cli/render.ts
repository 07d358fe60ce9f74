// Renders the events of a run as text for a terminal.

import { styleText } from "node:util";
import type { StreamEvent } from "../core/event.ts";

/**
 * Escapes control and format characters, so that text from models, tools and servers cannot move the cursor, hide or reorder
 * what is shown, or reach the clipboard. It works on each character alone: a sequence split between two texts is escaped as
 * well. Line breaks and tabs stay, and the joiners that emoji and some scripts are written with.
 */
export const visible = (text: string) =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{C}\n\t\u200c\u200d]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** Every text of an event is shown through this or `visible`. */
const painted = (style: Parameters<typeof styleText>[0], text: string) => styleText(style, visible(text));

const PREVIEW = 200;
const MARKS = { pending: "☐", in_progress: "▶", done: "☑" } as const;

/** Returns a function from event to text; empty for events that are not shown. */
export function renderer(): (event: StreamEvent) => string {
  /** Names of the active subagents by path. */
  const names = new Map<string, string>();
  return (event) => {
    const { path = [] } = event;
    const place = event.event === "on_subagent_end" ? placeOf(path, event.data.id) : placeOf(path);
    const name = names.get(place);
    if (event.event === "on_subagent_start") names.set(placeOf(path, event.data.id), event.data.name);
    if (event.event === "on_subagent_end") names.delete(place);
    if (path.length > 0 && !SHOWN_OF_SUBAGENTS.has(event.event)) return "";
    const text = renderOwn(event);
    const who = name !== undefined && event.event !== "on_subagent_start" ? `${painted("dim", name)} ` : "";
    return text && `${"  ".repeat(path.length)}${who}${text}`;
  };
}

const placeOf = (path: readonly string[], ...id: readonly string[]) => JSON.stringify([...path, ...id]);

const SHOWN_OF_SUBAGENTS: ReadonlySet<StreamEvent["event"]> = new Set([
  "on_tool_start",
  "on_tool_end",
  "on_subagent_start",
  "on_subagent_end",
  "warning",
]);

function renderOwn(event: StreamEvent): string {
  switch (event.event) {
    case "on_chat_model_stream":
      if ("delta" in event.data) return visible(event.data.delta);
      return "reasoning_delta" in event.data ? painted("dim", event.data.reasoning_delta) : "";
    case "on_chat_model_end":
      return "\n";
    case "on_tool_start":
      return `${painted("cyan", `→ ${event.name}`)} ${painted("dim", short(JSON.stringify(event.data.args)))}\n`;
    case "on_tool_progress":
      return painted("dim", event.data.output);
    case "on_tool_end":
      if (event.data.error !== undefined)
        return painted("red", `✗ ${event.name}: ${short(event.data.error)}\n`);
      return painted("green", `✓ ${event.name} (${Math.round(event.data.duration_ms)} ms)\n`);
    case "on_subagent_start":
      return `${painted("magenta", `${event.data.prefix ?? "⇢"} ${event.data.name}`)} ${painted("dim", event.data.agent)}\n`;
    case "on_subagent_end": {
      const { status, summary } = event.data;
      const [mark, colour] = status === "failed" ? (["✗", "red"] as const) : (["⇠", "magenta"] as const);
      return `${painted(colour, `${mark} ${status}`)} ${painted("dim", short(summary))}\n`;
    }
    case "on_state":
      return event.data.key === "todos" ? todos(event.data.value) : "";
    case "warning":
      return painted("yellow", `! ${event.data.message}\n`);
    case "error":
      return painted("red", `✗ ${event.data.message} (${event.data.code})\n`);
    case "done":
      return event.data.status === "success"
        ? ""
        : painted("yellow", `(${event.data.status}: ${event.data.stop_reason})\n`);
    default:
      return "";
  }
}

function todos(value: unknown): string {
  if (!Array.isArray(value) || value.length === 0) return "";
  const lines = value.map(
    ({ title, status }: { title: string; status: keyof typeof MARKS }) => `  ${MARKS[status]} ${title}`,
  );
  return `${painted("magenta", lines.join("\n"))}\n`;
}

const short = (text: string) =>
  (text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text).replaceAll("\n", "⏎");
