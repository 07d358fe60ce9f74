// Records which tools a thread has read from, and defines rules about what it may do afterwards. The readings are derived
// from the thread's messages and state, so they survive restarts, summaries and forks, and disappear when their message is
// cut.

import { z } from "zod";
import { globMatcher } from "../../lib/glob.ts";
import { firstChars } from "../../lib/text.ts";
import { messageOf } from "./errors.ts";
import type { Message, ToolCall } from "./message.ts";

/** A call that brought text written by others into a thread. Records the tool and the subject, without contents. */
export const Reading = z.object({
  /** `ANY` stands for every tool. */
  tool: z.string(),
  /** The host or path that was read. */
  about: z.string().optional(),
  /** The subagent or the file through which the text arrived. */
  through: z.string().optional(),
});
export type Reading = z.infer<typeof Reading>;

const ToolPattern = z
  .string()
  .min(1)
  .max(200)
  .superRefine((value, context) => {
    try {
      globMatcher(value);
    } catch (error) {
      context.addIssue({ code: "custom", message: `must be valid: it ${messageOf(error)}` });
    }
  });
const Patterns = z.array(ToolPattern).min(1).max(64);

export const FlowRule = z
  .strictObject({
    after: Patterns.describe(
      "Tools that read, as names or globs. The rule applies after one of these tools has been called.",
    ),
    ask: Patterns.optional().describe("Tools whose calls a person must approve from then on."),
    deny: Patterns.optional().describe("Tools whose calls are denied from then on."),
    because: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe("Reason to show to the model and to the person who approves."),
  })
  .refine(({ ask, deny }) => ask !== undefined || deny !== undefined, "must have `ask` or `deny`");
export type FlowRule = z.infer<typeof FlowRule>;

/** A rule that a subagent's run inherits. Its patterns were validated when it was written. */
export const InheritedRule = z.object({
  after: z.array(z.string()),
  ask: z.array(z.string()).optional(),
  deny: z.array(z.string()).optional(),
  because: z.string().optional(),
});

/** The key in a thread's state for readings that its messages do not show. */
export const FLOW_STATE = "flow";

/** The maximum number of readings to store or pass on. */
const MAX_READINGS = 64;
/** Stands for every tool when a thread has too many readings to keep. Every pattern matches it. */
export const ANY = "*";

/** The parts of a thread from which its readings are derived. */
export interface ReadingThread {
  readonly messages: readonly Message[];
  readonly state: ReadonlyMap<string, unknown>;
  readonly lineage?: { readonly read?: readonly Reading[] | undefined } | undefined;
}

/**
 * Returns the readings of a thread: the parent thread's readings when this thread began, the readings of its
 * ended subagents, and the readings of its own calls. A denied call adds no reading. `except` is the call
 * that is being decided.
 */
export function readingsOf({ messages, state, lineage }: ReadingThread, except?: ToolCall): Reading[] {
  return distinct([
    ...(lineage?.read ?? []),
    ...storedReadings(state),
    ...readByChildren(state, except),
    ...readIn(messages, except),
  ]);
}

const Readings = z.array(Reading);

/** Returns the readings in the thread's state that its messages do not show. */
export const storedReadings = (state: ReadonlyMap<string, unknown>): Reading[] =>
  Readings.safeParse(state.get(FLOW_STATE)).data ?? [];

const Slot = z.record(z.string(), z.unknown());
const RecordedChild = z.object({ name: z.string(), call_id: z.string(), read: Readings });

/** Returns the recorded readings of the thread's subagents, except for the call that is being decided. */
export function readByChildren(state: ReadonlyMap<string, unknown>, except?: ToolCall): Reading[] {
  const slot = Slot.safeParse(state.get("subagents")).data ?? {};
  return Object.values(slot).flatMap((each) => {
    const child = RecordedChild.safeParse(each).data;
    return child && child.call_id !== except?.id ? through(child.read, child.name) : [];
  });
}

/** Returns the same readings, marked as having arrived through a subagent or a file. */
export const through = (readings: readonly Reading[], way: string): Reading[] =>
  readings.map((each) => ({ ...each, through: firstChars(way, MAX_ABOUT_CHARS) }));

function readIn(messages: readonly Message[], except: ToolCall | undefined): Reading[] {
  const made: { readonly call: ToolCall; isDenied: boolean }[] = [];
  const open = new Map<string, { isDenied: boolean }>();
  let hasSearched = false;
  for (const message of messages) {
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) {
        const each = { call, isDenied: false };
        made.push(each);
        open.set(call.id, each);
      }
    hasSearched ||= message.role === "assistant" && message.sources !== undefined;
    const answered = message.role === "tool" && message.denied ? open.get(message.tool_call_id) : undefined;
    if (answered) answered.isDenied = true;
  }
  // Call ids may repeat. The call that is being decided is the newest one with its id.
  const own = except && open.get(except.id);
  const called = made.flatMap((each) => (each.isDenied || each === own ? [] : readingIn(each.call)));
  return hasSearched ? [...called, { tool: WEB_SEARCH }] : called;
}

/** The tool that a model's provider may execute, without a call in the thread. */
export const WEB_SEARCH = "web_search";

/** A call with a name that no tool can have adds no reading. */
const NAME = /^[\w.:/-]{1,128}$/;
const MAX_ABOUT_CHARS = 100;

function readingIn({ name, args }: ToolCall): Reading[] {
  if (!NAME.test(name)) return [];
  const about = subjectIn(args);
  return [about === undefined ? { tool: name } : { tool: name, about }];
}

/**
 * Returns the host or the path that a call names, to show it to the person who decides. A page may have put
 * other text into the call, so only characters of hosts and paths are accepted.
 */
export function subjectIn(args: ToolCall["args"]): string | undefined {
  const texts = Object.values(args).filter((value) => typeof value === "string");
  const [host] = texts.flatMap(hostIn);
  if (host !== undefined) return host;
  const { path } = args;
  return typeof path === "string" && /^[\w./@-]{1,100}$/.test(path) ? path : undefined;
}

function hostIn(text: string): string[] {
  if (!/^https?:\/\//i.test(text) || text.length > 8192 || !URL.canParse(text)) return [];
  return [firstChars(new URL(text).host, MAX_ABOUT_CHARS)];
}

const keyOf = ({ tool, about, through }: Reading) => [tool, about, through].join("\n");

const distinct = (readings: readonly Reading[]) => [
  ...new Map(readings.map((each) => [keyOf(each), each])).values(),
];

/** Returns the readings that are not among the known ones. */
export function unknownReadings(readings: readonly Reading[], known: readonly Reading[]): Reading[] {
  const keys = new Set(known.map(keyOf));
  return distinct(readings).filter((each) => !keys.has(keyOf(each)));
}

/**
 * Limits the number of readings, but keeps at least one reading of each tool. If even the tools exceed the
 * limit, the last reading stands for every tool.
 */
export function bounded(readings: readonly Reading[], most = MAX_READINGS): Reading[] {
  const all = distinct(readings);
  if (all.length <= most) return all;
  const firsts = [...new Map(all.toReversed().map((each) => [each.tool, each])).values()].reverse();
  if (firsts.length > most) return [...firsts.slice(0, most - 1), { tool: ANY }];
  const others = all.filter((each) => !firsts.includes(each));
  return [...firsts, ...others.slice(0, most - firsts.length)];
}
