// Makes any history acceptable to providers. A repaired history begins with the user, ends with a message to answer and
// contains no empty parts. Every tool call has a valid id, a valid name and exactly one result. Equal histories produce
// equal bytes.

import { createHash } from "node:crypto";
import type {
  AssistantMessage,
  Content,
  Message,
  Part,
  ProviderBlock,
  Reasoning,
  ToolCall,
  ToolMessage,
} from "../core/message.ts";

/** A step of a conversation. Every call of an assistant includes its result. */
export type HistoryStep =
  | { readonly role: "system" | "user"; readonly content: readonly Part[] }
  | {
      readonly role: "assistant";
      readonly text: string;
      /** Contains only reasoning that must be sent back to the same model. */
      readonly reasoning: readonly Reasoning[];
      readonly calls: readonly AnsweredCall[];
      /** Contains only blocks that may be sent back to the provider that wrote them. */
      readonly blocks: readonly ProviderBlock[];
    };

export interface AnsweredCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Never empty. */
  readonly output: readonly Part[];
  readonly failed: boolean;
}

interface RepairOptions {
  /** The model that will receive the history, as `provider:model`. */
  readonly model: string;
  /** The format of ids that the provider accepts. */
  readonly callId: RegExp;
  /**
   * True if the model accepts its own ids in any format. The model created these ids and may depend on them.
   */
  readonly keepsOwnIds: boolean;
  /** The provider whose blocks are kept. If undefined, the blocks of every provider are omitted. */
  readonly blocksOf?: string | undefined;
  /** The ids that closed turns before these messages use. See `repairClosed`. */
  readonly after?: CallIds | undefined;
}

/** The format that both Anthropic and OpenAI accept. */
export const CALL_ID = /^[a-zA-Z0-9_-]{1,40}$/;

/**
 * The ids that can be sent back to models unchanged, such as `functions.read:0` and ids with a base64
 * signature. Longer ids were already shortened when they arrived.
 */
const OWN_ID = /^[\w.:+/=-]{1,255}$/;

export function repair(
  messages: readonly Message[],
  { model, callId, keepsOwnIds, blocksOf, after }: RepairOptions,
): HistoryStep[] {
  const drafts = pair(messages, { ids: new CallIds(callId, after), author: keepsOwnIds ? model : undefined });
  const loop = loopStart(drafts);
  const steps = drafts.map((draft, index) =>
    finish(draft, { thinks: index > loop && isBy(draft, model), blocksOf }),
  );
  return withEnds(steps);
}

/**
 * Repairs closed turns, which no later message changes. With `isBeginning`, no other turns precede them. Adds
 * the ids of the turns to `taken`. Returns undefined if one of their calls has no result.
 */
export function repairClosed(
  messages: readonly Message[],
  taken: CallIdScope,
  { isBeginning, blocksOf }: { readonly isBeginning: boolean } & Pick<RepairOptions, "blocksOf">,
): HistoryStep[] | undefined {
  const drafts = pair(messages, taken);
  if (drafts.some((draft) => draft.role === "assistant" && draft.calls.some(({ result }) => !result)))
    return undefined;
  const steps = drafts.map((draft) => finish(draft, { thinks: false, blocksOf }));
  return isBeginning ? withBeginning(steps) : steps;
}

/**
 * Returns the index at which the most recent turn begins, with a user message after an answer. Returns 0 if
 * no turn precedes it.
 */
export function newestTurn(messages: readonly Message[]): number {
  return Math.max(
    0,
    messages.findLastIndex((_, index) => beginsTurn(messages, index)),
  );
}

/** True if everything before the message is complete, and later messages do not change it. */
export function beginsTurn(messages: readonly Message[], index: number): boolean {
  const [before, message] = [messages[index - 1], messages[index]];
  if (message?.role !== "user" || filled(message.content).length === 0) return false;
  return before?.role === "assistant" && !before.tool_calls?.length && before.content.trim() !== "";
}

type Draft = Extract<HistoryStep, { role: "system" | "user" }> | DraftReply;

interface DraftReply {
  readonly role: "assistant";
  readonly message: AssistantMessage;
  readonly calls: readonly DraftCall[];
}

/** The ids in use, and the model whose own ids stay unchanged. */
export interface CallIdScope {
  readonly ids: CallIds;
  readonly author: string | undefined;
}

interface DraftCall {
  readonly id: string;
  readonly call: ToolCall;
  result?: ToolMessage;
}

/**
 * Assigns each result to the most recent preceding message that has an open call with the result's id. Drops
 * results without such a call, which are orphans or duplicates.
 */
function pair(messages: readonly Message[], { ids, author }: CallIdScope): Draft[] {
  const drafts: Draft[] = [];
  const waiting = new Map<string, DraftCall[]>();
  for (const message of messages) {
    switch (message.role) {
      case "system":
      case "user": {
        const content = filled(message.content);
        if (content.length > 0) drafts.push({ role: message.role, content });
        break;
      }
      case "assistant": {
        const isOwn = author !== undefined && message.model === author;
        const calls = (message.tool_calls ?? []).map((call) => ({ id: ids.take(call.id, isOwn), call }));
        for (const draft of calls.toReversed())
          waiting.set(draft.call.id, [...(waiting.get(draft.call.id) ?? []), draft]);
        if (calls.length > 0 || message.content.trim() !== "")
          drafts.push({ role: "assistant", message, calls });
        break;
      }
      case "tool": {
        const draft = waiting.get(message.tool_call_id)?.pop();
        if (draft) draft.result = message;
        break;
      }
    }
  }
  return drafts;
}

/**
 * Returns the index at which the current tool loop begins, which is the user's last message. A message that
 * arrived during tool calls does not begin another loop, because providers see it in the same turn as the
 * results.
 */
function loopStart(drafts: readonly Draft[]): number {
  return drafts.findLastIndex((draft, index) => {
    const before = drafts[index - 1];
    return draft.role !== "assistant" && !(before?.role === "assistant" && before.calls.length > 0);
  });
}

const isBy = (draft: Draft, model: string) => draft.role === "assistant" && draft.message.model === model;

function finish(
  draft: Draft,
  { thinks, blocksOf }: { readonly thinks: boolean } & Pick<RepairOptions, "blocksOf">,
): HistoryStep {
  if (draft.role !== "assistant") return draft;
  const { message, calls } = draft;
  const isOfProvider = blocksOf !== undefined && message.model?.startsWith(`${blocksOf}:`);
  return {
    role: "assistant",
    text: message.content.trim() === "" ? "" : message.content.toWellFormed(),
    reasoning: thinks ? (message.reasoning ?? []) : [],
    calls: calls.map(answered),
    blocks: isOfProvider ? (message.provider_blocks ?? []) : [],
  };
}

function answered({ id, call, result }: DraftCall): AnsweredCall {
  const name = call.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unknown";
  const error = result ? result.error : "No result was recorded.";
  const output = result ? filled(result.content) : [];
  if (error !== undefined)
    output.unshift(text(error.trim() === "" ? "The call failed." : error.toWellFormed()));
  if (output.length === 0) output.push(text("(no output)"));
  return { id, name, args: wellFormed(call.args), output, failed: error !== undefined };
}

/** Ensures that the first step comes from a user and that the last step requests an answer. */
function withEnds(steps: HistoryStep[]): HistoryStep[] {
  withBeginning(steps);
  const last = steps.at(-1);
  const isEmpty = steps.every((step) => step.role === "system");
  // A reply at the end means that the reply, or its run, was cut off. Without the reply, the model would
  // repeat it. Newer models reject a request that ends with a reply.
  if (isEmpty || (last?.role === "assistant" && last.calls.length === 0)) steps.push(user("Continue."));
  return steps;
}

function withBeginning(steps: HistoryStep[]): HistoryStep[] {
  const first = steps.findIndex((step) => step.role !== "system");
  if (steps[first]?.role === "assistant")
    steps.splice(first, 0, user("(The beginning of this conversation is left out.)"));
  return steps;
}

const text = (content: string): Part => ({ type: "text", text: content });
const user = (content: string): HistoryStep => ({ role: "user", content: [text(content)] });

/** Returns the non-empty parts. */
function filled(content: Content): Part[] {
  const parts = typeof content === "string" ? [text(content)] : content;
  return parts.flatMap((part) => {
    if (part.type !== "text") return [part];
    return part.text.trim() === "" ? [] : [text(part.text.toWellFormed())];
  });
}

/** Replaces half characters that cuts have left, because providers reject them anywhere in a request. */
function wellFormed(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const json = JSON.stringify(args);
  if (!/\\ud[89a-f]/i.test(json)) return args;
  return JSON.parse(json, (_, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value));
}

/**
 * Assigns unique ids that the provider accepts. Uses a call's own id if possible, and otherwise derives one
 * from it.
 */
export class CallIds {
  readonly #pattern: RegExp;
  readonly #before: CallIds | undefined;
  #used = new Set<string>();
  #repeats = new Map<string, number>();

  /** Continues after the ids of `before`, which must not assign any more ids. */
  constructor(pattern: RegExp, before?: CallIds) {
    this.#pattern = pattern;
    this.#before = before;
  }

  copy(): CallIds {
    const copy = new CallIds(this.#pattern, this.#before);
    copy.#used = new Set(this.#used);
    copy.#repeats = new Map(this.#repeats);
    return copy;
  }

  /**
   * Assigns an id. With `isAuthors`, the model that receives the id also created it and may derive meaning
   * from it.
   */
  take(id: string, isAuthors: boolean): string {
    const isOwn = isAuthors && OWN_ID.test(id);
    let repeat = this.#repeatsOf(id);
    const another = () => (isOwn && COUNTED.test(id) ? countedOn(id, repeat) : digest(`${id}#${repeat}`));
    let made = repeat === 0 && id !== "" && (isOwn || this.#pattern.test(id)) ? id : another();
    while (this.#isUsed(made)) {
      repeat++;
      made = another();
    }
    this.#repeats.set(id, repeat + 1);
    this.#used.add(made);
    return made;
  }

  #isUsed(made: string): boolean {
    const before = this.#before;
    return this.#used.has(made) || (before ? before.#isUsed(made) : false);
  }

  #repeatsOf(id: string): number {
    const before = this.#before;
    return this.#repeats.get(id) ?? (before ? before.#repeatsOf(id) : 0);
  }
}

/**
 * Kimi derives the tool and the number of the call from ids such as `functions.read:0`. Some servers restart
 * at 0 in every reply.
 */
const COUNTED = /:\d{1,9}$/;
const countedOn = (id: string, by: number) =>
  id.replace(COUNTED, (count) => `:${Number(count.slice(1)) + by}`);

/** Returns nine letters and digits, which even the strictest provider accepts. */
const digest = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 9);
