// Renders a run's events as text for a terminal.

import { firstChars } from "../../lib/text.ts";
import { type AgentHandlers, readAgent } from "../../protocol/agent-reader.ts";
import type { End } from "../../protocol/end.ts";
import { WAITING_TEXT } from "../../protocol/end-texts.ts";
import type { EventData, StreamEvent } from "../../protocol/event.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import { markdown } from "./markdown.ts";
import { type Paint, visible } from "./paint.ts";
import { t } from "./texts.ts";

const PREVIEW = 200;
const MARKS = { pending: "☐", in_progress: "▶", done: "☑" } as const;

/** A piece of the terminal's output. */
interface Piece {
  readonly text: string;
  /** The stream that the piece belongs to, such as a tool's output. Pieces of the same stream continue the same line. */
  readonly of?: string;
  /** Ends the current line. */
  readonly endsLine?: true;
}

/**
 * Returns a function that converts an event to styled text, with `spoken` as the style of the agent's answer. The text
 * is empty for events that are not shown.
 */
export function renderer(paint: Paint, spoken = paint): (event: StreamEvent) => string {
  const speech = speechWith(spoken);
  const calls = callRows(paint);
  const read = readTurn<Piece>({
    ...calls,
    delta: (kind, text) =>
      kind === "text"
        ? [{ of: "text", text: speech.write(text) }]
        : [{ of: "reasoning", text: paint("dim", text) }],
    stepEnd: () => [{ text: speech.end(), endsLine: true }],
    toolProgress: (_, { call_id, output }) => [{ of: `output of ${call_id}`, text: paint("dim", output) }],
    todos: (value) => [{ text: todos(value, paint) }],
    subagent: subagentRows(paint),
    end: (end) => [{ text: endLine(end, paint) }],
  });
  const lined = lines();
  return (event) => read(event, undefined).map(lined).join("");
}

/** Returns a function that starts a new line if the current one belongs to another stream. */
function lines(): (piece: Piece) => string {
  /** The stream of the current line, until the line ends. */
  let open: string | undefined;
  return ({ text, of, endsLine }) => {
    const isOther = open !== undefined && open !== (endsLine ? "text" : of);
    const begin = text !== "" && isOther ? "\n" : "";
    if (endsLine) {
      const isLineOpen = text !== "" || open !== undefined;
      open = undefined;
      return `${begin}${text}${isLineOpen ? "\n" : ""}`;
    }
    if (text !== "") open = text.endsWith("\n") ? undefined : of;
    return begin + text;
  };
}

/** Formats the agent's text as Markdown if the terminal supports styles. Otherwise, returns it unchanged. */
function speechWith(paint: Paint) {
  const hasStyles = paint("bold", "?") !== "?";
  return hasStyles ? markdown(paint) : { write: visible, end: () => "" };
}

/** Shows the tool calls and warnings of the run's agent and of its subagents. */
function callRows(paint: Paint) {
  return {
    toolStart: (name, { args }) => [{ text: callLine({ name, args }, paint) }],
    toolEnd: (name, data) => [{ text: resultLine({ name, ...data }, paint) }],
    warning: ({ message }) => [{ text: paint("yellow", `! ${message}\n`) }],
  } satisfies Partial<AgentHandlers<Piece>>;
}

/** Shows subagents, each with its name, indented by depth. */
function subagentRows(paint: Paint): (event: StreamEvent, path: readonly string[]) => Piece[] {
  const calls = readAgent(callRows(paint));
  /** The names of the active subagents by path. */
  const names = new Map<string, string>();

  const shown = (event: StreamEvent): readonly Piece[] => {
    if (event.event === "on_subagent_start") return [{ text: startLine(event.data, paint) }];
    if (event.event === "on_subagent_end") return [{ text: endOfSubagent(event.data, paint) }];
    return calls.see(event);
  };
  return (event, path) => {
    const place = event.event === "on_subagent_end" ? placeOf(path, event.data.id) : placeOf(path);
    const name = names.get(place);
    if (event.event === "on_subagent_start") names.set(placeOf(path, event.data.id), event.data.name);
    if (event.event === "on_subagent_end") names.delete(place);
    const who = name !== undefined && event.event !== "on_subagent_start" ? `${paint("dim", name)} ` : "";
    return shown(event).map(({ text }) => ({ text: `${"  ".repeat(path.length)}${who}${text}` }));
  };
}

const placeOf = (path: readonly string[], ...id: readonly string[]) => JSON.stringify([...path, ...id]);

/** Returns true if the event is part of the agent's answer, and not of its reasoning or tool calls. */
export function isSpeech(event: StreamEvent): boolean {
  if (event.path && event.path.length > 0) return false;
  if (event.event === "on_chat_model_stream") return "delta" in event.data;
  return event.event === "on_chat_model_end";
}

function endLine({ as, reason, message }: End, paint: Paint): string {
  // The questions that follow explain why the run waits.
  if (as === "asks") return "";
  const words = t().run;
  const told = message && (words.ends[reason] ?? message);
  if (as === "failed") return paint("red", `✗ ${told} (${reason})\n`);
  const text = as === "waits" ? (words.waits ?? WAITING_TEXT) : told;
  return text && paint("yellow", `${text}\n`);
}

const startLine = ({ prefix = "⇢", name, agent }: EventData<"on_subagent_start">, paint: Paint) =>
  `${paint("magenta", `${prefix} ${name}`)} ${paint("dim", agent)}\n`;

function endOfSubagent({ status, summary }: EventData<"on_subagent_end">, paint: Paint): string {
  const [mark, colour] = status === "failed" ? (["✗", "red"] as const) : (["⇠", "magenta"] as const);
  return `${paint(colour, `${mark} ${t().run.statuses[status] ?? status}`)} ${paint("dim", short(summary))}\n`;
}

export const callLine = ({ name, args }: { readonly name: string; readonly args: unknown }, paint: Paint) =>
  `${paint("cyan", `→ ${name}`)} ${paint("dim", short(JSON.stringify(args)))}\n`;

export interface Result {
  readonly name: string;
  readonly error?: string | undefined;
  /** Undefined for a message in the history. */
  readonly duration_ms?: number;
  /** True if the call has no result yet. */
  readonly interrupted?: true | undefined;
}

export function resultLine({ name, error, duration_ms: ms, interrupted }: Result, paint: Paint): string {
  if (interrupted) return paint("yellow", `⏸ ${name}\n`);
  if (error !== undefined) return paint("red", `✗ ${name}: ${short(error)}\n`);
  return paint("green", `✓ ${name}${ms === undefined ? "" : ` (${t().run.ms(Math.round(ms))})`}\n`);
}

function todos(value: unknown, paint: Paint): string {
  if (!Array.isArray(value) || value.length === 0) return "";
  const lines = value.map(
    ({ title, status }: { title: string; status: keyof typeof MARKS }) => `  ${MARKS[status]} ${title}`,
  );
  return `${paint("magenta", lines.join("\n"))}\n`;
}

const short = (text: string) =>
  (text.length > PREVIEW ? `${firstChars(text, PREVIEW)}…` : text).replaceAll("\n", "⏎");
