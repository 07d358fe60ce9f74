// Renders the events of a run as text for a terminal.

import { styleText } from "node:util";
import type { StreamEvent } from "../core/event.ts";

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
    const who = name !== undefined && event.event !== "on_subagent_start" ? `${styleText("dim", name)} ` : "";
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
      if ("delta" in event.data) return event.data.delta;
      return "reasoning_delta" in event.data ? styleText("dim", event.data.reasoning_delta) : "";
    case "on_chat_model_end":
      return "\n";
    case "on_tool_start":
      return `${styleText("cyan", `→ ${event.name}`)} ${styleText("dim", short(JSON.stringify(event.data.args)))}\n`;
    case "on_tool_progress":
      return styleText("dim", event.data.output);
    case "on_tool_end":
      if (event.data.error !== undefined)
        return styleText("red", `✗ ${event.name}: ${short(event.data.error)}\n`);
      return styleText("green", `✓ ${event.name} (${Math.round(event.data.duration_ms)} ms)\n`);
    case "on_subagent_start":
      return `${styleText("magenta", `${event.data.prefix ?? "⇢"} ${event.data.name}`)} ${styleText("dim", event.data.agent)}\n`;
    case "on_subagent_end": {
      const { status, summary } = event.data;
      const [mark, colour] = status === "failed" ? (["✗", "red"] as const) : (["⇠", "magenta"] as const);
      return `${styleText(colour, `${mark} ${status}`)} ${styleText("dim", short(summary))}\n`;
    }
    case "on_state":
      return event.data.key === "todos" ? todos(event.data.value) : "";
    case "warning":
      return styleText("yellow", `! ${event.data.message}\n`);
    case "error":
      return styleText("red", `✗ ${event.data.message} (${event.data.code})\n`);
    case "done":
      return event.data.status === "success"
        ? ""
        : styleText("yellow", `(${event.data.status}: ${event.data.stop_reason})\n`);
    default:
      return "";
  }
}

function todos(value: unknown): string {
  if (!Array.isArray(value) || value.length === 0) return "";
  const lines = value.map(
    ({ title, status }: { title: string; status: keyof typeof MARKS }) => `  ${MARKS[status]} ${title}`,
  );
  return `${styleText("magenta", lines.join("\n"))}\n`;
}

const short = (text: string) =>
  (text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text).replaceAll("\n", "⏎");
