// Renders the events of a run as text for a terminal.

import type { StreamEvent } from "../protocol/event.ts";
import { markdown } from "./markdown.ts";
import { type Paint, visible } from "./paint.ts";

const PREVIEW = 200;
const MARKS = { pending: "☐", in_progress: "▶", done: "☑" } as const;

/**
 * Returns a function from event to text; empty for events that are not shown. What it returns is painted; what the agent
 * says, with `spoken`.
 */
export function renderer(paint: Paint, spoken = paint): (event: StreamEvent) => string {
  const speech = speechWith(spoken);
  /** Names of the active subagents by path. */
  const names = new Map<string, string>();
  /** What the last line belongs to, while it has no end. */
  let open: string | undefined;
  let hasAsked = false;

  /** Begins a new line when the last one belongs to something else. */
  const lined = (event: StreamEvent, text: string): string => {
    if (event.event === "on_chat_model_end") {
      const begin = text !== "" && open !== undefined && open !== "text" ? "\n" : "";
      const isLineOpen = text !== "" || open !== undefined;
      open = undefined;
      return `${begin}${text}${isLineOpen ? "\n" : ""}`;
    }
    if (text === "") return "";
    const of = streamOf(event);
    const begin = open === undefined || open === of ? "" : "\n";
    open = of === undefined || text.endsWith("\n") ? undefined : of;
    return begin + text;
  };

  return (event) => {
    const { path = [] } = event;
    const place = event.event === "on_subagent_end" ? placeOf(path, event.data.id) : placeOf(path);
    const name = names.get(place);
    if (event.event === "on_subagent_start") names.set(placeOf(path, event.data.id), event.data.name);
    if (event.event === "on_subagent_end") names.delete(place);
    if (path.length > 0 && !SHOWN_OF_SUBAGENTS.has(event.event)) return "";
    hasAsked ||= event.event === "on_interrupt";
    // The questions show why the run waits.
    if (hasAsked && event.event === "done" && event.data.status === "interrupted") return "";
    const text = speech(event) ?? renderOwn(event, paint);
    const who = name !== undefined && event.event !== "on_subagent_start" ? `${paint("dim", name)} ` : "";
    return lined(event, text && `${"  ".repeat(path.length)}${who}${text}`);
  };
}

/** What the agent says: as Markdown where there are styles, else as it is. `undefined` for other events. */
function speechWith(paint: Paint): (event: StreamEvent) => string | undefined {
  const hasStyles = paint("bold", "?") !== "?";
  const { write, end } = hasStyles ? markdown(paint) : { write: visible, end: () => "" };
  return (event) => {
    if (event.path && event.path.length > 0) return undefined;
    if (event.event === "on_chat_model_stream" && "delta" in event.data) return write(event.data.delta);
    return event.event === "on_chat_model_end" ? end() : undefined;
  };
}

/** What arrives in parts that may end anywhere in a line. */
function streamOf(event: StreamEvent): string | undefined {
  if (event.event === "on_tool_progress") return `output of ${event.data.call_id}`;
  if (event.event !== "on_chat_model_stream") return undefined;
  return "reasoning_delta" in event.data ? "reasoning" : "text";
}

/** Whether it is what the agent says, not what it thinks or does. */
export function isSpeech(event: StreamEvent): boolean {
  if (event.path && event.path.length > 0) return false;
  if (event.event === "on_chat_model_stream") return "delta" in event.data;
  return event.event === "on_chat_model_end";
}

const placeOf = (path: readonly string[], ...id: readonly string[]) => JSON.stringify([...path, ...id]);

const SHOWN_OF_SUBAGENTS: ReadonlySet<StreamEvent["event"]> = new Set([
  "on_tool_start",
  "on_tool_end",
  "on_subagent_start",
  "on_subagent_end",
  "warning",
]);

function renderOwn(event: StreamEvent, paint: Paint): string {
  switch (event.event) {
    case "on_chat_model_stream":
      return "reasoning_delta" in event.data ? paint("dim", event.data.reasoning_delta) : "";
    case "on_tool_start":
      return callLine({ name: event.name, args: event.data.args }, paint);
    case "on_tool_progress":
      return paint("dim", event.data.output);
    case "on_tool_end":
      return resultLine({ name: event.name, ...event.data }, paint);
    case "on_subagent_start":
      return `${paint("magenta", `${event.data.prefix ?? "⇢"} ${event.data.name}`)} ${paint("dim", event.data.agent)}\n`;
    case "on_subagent_end": {
      const { status, summary } = event.data;
      const [mark, colour] = status === "failed" ? (["✗", "red"] as const) : (["⇠", "magenta"] as const);
      return `${paint(colour, `${mark} ${status}`)} ${paint("dim", short(summary))}\n`;
    }
    case "on_state":
      return event.data.key === "todos" ? todos(event.data.value, paint) : "";
    case "warning":
      return paint("yellow", `! ${event.data.message}\n`);
    case "error":
      return paint("red", `✗ ${event.data.message} (${event.data.code})\n`);
    case "done":
      return event.data.status === "success"
        ? ""
        : paint("yellow", `(${event.data.status}: ${event.data.stop_reason})\n`);
    default:
      return "";
  }
}

export const callLine = ({ name, args }: { readonly name: string; readonly args: unknown }, paint: Paint) =>
  `${paint("cyan", `→ ${name}`)} ${paint("dim", short(JSON.stringify(args)))}\n`;

export interface Result {
  readonly name: string;
  readonly error?: string | undefined;
  /** Absent in a history. */
  readonly duration_ms?: number;
  /** It has no result yet. */
  readonly interrupted?: true | undefined;
}

export function resultLine({ name, error, duration_ms: ms, interrupted }: Result, paint: Paint): string {
  if (interrupted) return paint("yellow", `⏸ ${name}\n`);
  if (error !== undefined) return paint("red", `✗ ${name}: ${short(error)}\n`);
  return paint("green", `✓ ${name}${ms === undefined ? "" : ` (${Math.round(ms)} ms)`}\n`);
}

function todos(value: unknown, paint: Paint): string {
  if (!Array.isArray(value) || value.length === 0) return "";
  const lines = value.map(
    ({ title, status }: { title: string; status: keyof typeof MARKS }) => `  ${MARKS[status]} ${title}`,
  );
  return `${paint("magenta", lines.join("\n"))}\n`;
}

const short = (text: string) =>
  (text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text).replaceAll("\n", "⏎");
