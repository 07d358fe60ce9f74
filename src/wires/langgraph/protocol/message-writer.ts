// Converts a message that is being written to events of the protocol: block after block, each with its start, deltas
// and end.

import type { AssistantMessage, Usage } from "../../../agent/core/message.ts";
import { isObject } from "../../../lib/json.ts";
import type { CallDelta } from "../../../protocol/agent-reader.ts";
import { shownArgs, usageShape } from "../history.ts";

export type Data = Readonly<Record<string, unknown>>;

type Block =
  | { readonly type: "text" | "reasoning"; readonly index: number; text: string }
  | {
      readonly type: "tool_call";
      readonly index: number;
      /** The index of the call in its message. */
      readonly call: number;
      readonly id: string;
      readonly name: string;
      args: string;
      /** The number of characters of the arguments that were sent. */
      told: number;
    };

export interface MessageWriter {
  readonly id: string;
  /** True if the start of the message was sent. */
  readonly isBegun: boolean;
  say(type: "text" | "reasoning", text: string): Data[];
  callDelta(delta: CallDelta): Data[];
  end(usage: Usage | undefined): Data[];
  /** Returns the whole message at once. */
  tell(message: AssistantMessage): Data[];
}

/**
 * Each delta of a call repeats all of its arguments so far, so a delta is sent only when they have grown by this
 * factor.
 */
const GROWTH = 1.25;

export function messageWriter(id: string, metadata: Data): MessageWriter {
  let isBegun = false;
  let blocks = 0;
  let open: Block | undefined;

  const begin = (): Data[] => {
    if (isBegun) return [];
    isBegun = true;
    return [{ event: "message-start", role: "ai", id, metadata }];
  };
  const finish = (): Data[] => {
    if (!open) return [];
    const { index } = open;
    const content = finished(open);
    open = undefined;
    return [{ event: "content-block-finish", index, content }];
  };
  const start = (block: Block): Data[] => {
    const before = [...begin(), ...finish()];
    open = block;
    blocks++;
    return [...before, { event: "content-block-start", index: block.index, content: begun(block) }];
  };

  const say = (type: "text" | "reasoning", text: string): Data[] => {
    const told: Data[] = [];
    if (open?.type !== type) told.push(...start({ type, index: blocks, text: "" }));
    if (open?.type !== type) return told;
    open.text += text;
    const delta =
      type === "text" ? { type: "text-delta", text } : { type: "reasoning-delta", reasoning: text };
    return [...told, { event: "content-block-delta", index: open.index, delta }];
  };

  const call = (index: number, id: string, name: string): Data[] =>
    start({ type: "tool_call", index: blocks, call: index, id, name, args: "", told: 0 });

  const addArguments = (args: string): Data[] => {
    if (open?.type !== "tool_call") return [];
    open.args += args;
    // Clients see these arguments under other names, so they are sent at the end of the call.
    if (open.name === "task" || open.args.length <= open.told * GROWTH) return [];
    open.told = open.args.length;
    const fields = chunkOf(open, open.args);
    return [{ event: "content-block-delta", index: open.index, delta: { type: "block-delta", fields } }];
  };

  const end = (usage: Usage | undefined): Data[] =>
    isBegun ? [...finish(), { event: "message-finish", ...(usage ? { usage: usageShape(usage) } : {}) }] : [];

  return {
    id,
    end,
    get isBegun() {
      return isBegun;
    },
    say,
    callDelta({ index, id: callId, name, args_delta }) {
      const isOpen = open?.type === "tool_call" && open.call === index;
      const isNew = callId !== undefined && name !== undefined && !isOpen;
      return [...(isNew ? call(index, callId, name) : []), ...addArguments(args_delta)];
    },
    tell({ content, reasoning = [], tool_calls = [], usage }) {
      const calls = tool_calls.flatMap(({ id, name, args }, index) => [
        ...call(index, id, name),
        ...addArguments(JSON.stringify(args)),
      ]);
      return [
        ...begin(),
        ...reasoning.flatMap(({ text }) => say("reasoning", text)),
        ...(content === "" ? [] : say("text", content)),
        ...calls,
        ...end(usage),
      ];
    },
  };
}

const begun = (block: Block): Data =>
  block.type === "tool_call" ? chunkOf(block, "") : contentOf(block, "");

function finished(block: Block): Data {
  if (block.type !== "tool_call") return contentOf(block, block.text);
  const { id, name } = block;
  const args = argumentsIn(block.args);
  if (args) return { type: "tool_call", id, name, args: shownArgs(name, args) };
  return {
    type: "invalid_tool_call",
    id,
    name,
    args: block.args,
    error: "The arguments are not a JSON object.",
  };
}

const contentOf = ({ type }: { type: "text" | "reasoning" }, text: string): Data =>
  type === "text" ? { type, text } : { type, reasoning: text };

const chunkOf = ({ id, name }: { id: string; name: string }, args: string): Data => ({
  type: "tool_call_chunk",
  id,
  name,
  args,
});

function argumentsIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
