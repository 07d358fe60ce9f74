// Tool calls as an editor shows them.

import type { ToolCall, ToolCallContent, ToolKind } from "@agentclientprotocol/sdk";
import type { ToolMessage, ToolCall as WrittenCall } from "../../agent/core/message.ts";
import { firstChars } from "../../lib/text.ts";
import { blocksOf, text } from "./content.ts";

const KINDS: Readonly<Record<string, ToolKind>> = {
  read_file: "read",
  ls: "read",
  glob: "search",
  grep: "search",
  write_file: "edit",
  edit_file: "edit",
  execute: "execute",
  write_todos: "think",
};

export const kindOf = (name: string): ToolKind => KINDS[name] ?? "other";

const LONGEST_TITLE = 120;

/** The arguments that describe a call best. */
const TELLING = ["command", "path", "pattern", "url", "query"];

/** Returns the tool and its main argument on one line. */
export function titleOf(name: string, args: Readonly<Record<string, unknown>>): string {
  const telling = TELLING.map((key) => args[key]).find((value) => typeof value === "string");
  const title = (telling === undefined ? name : `${name} ${telling}`).replaceAll(/\s+/g, " ");
  return title.length > LONGEST_TITLE ? `${firstChars(title, LONGEST_TITLE)}…` : title;
}

/** Returns a call as shown before it runs. */
export function shownCall({ id, name, args }: Pick<WrittenCall, "id" | "name" | "args">): ToolCall {
  return {
    toolCallId: id,
    title: titleOf(name, args),
    kind: kindOf(name),
    rawInput: args,
    ...locationsOf(args),
    ...changeOf(name, args),
  };
}

/** ACP accepts absolute paths only. */
function locationsOf({ path }: Readonly<Record<string, unknown>>): Pick<ToolCall, "locations"> {
  return typeof path === "string" && path.startsWith("/") ? { locations: [{ path }] } : {};
}

/** Returns the change that a call would make to a file, as a diff. */
function changeOf(
  name: string,
  { path, content, old_text, new_text }: Readonly<Record<string, unknown>>,
): { content?: ToolCallContent[] } {
  if (typeof path !== "string") return {};
  if (name === "write_file" && typeof content === "string")
    return { content: [{ type: "diff", path, oldText: null, newText: content }] };
  if (name === "edit_file" && typeof old_text === "string" && typeof new_text === "string")
    return { content: [{ type: "diff", path, oldText: old_text, newText: new_text }] };
  return {};
}

/** Returns the end of a call. The diff of a change stays on the screen. */
export function shownResult({
  tool_call_id,
  name,
  content,
  error,
}: ToolMessage): Pick<ToolCall, "toolCallId" | "status" | "content"> {
  if (error !== undefined)
    return {
      toolCallId: tool_call_id,
      status: "failed",
      content: [{ type: "content", content: text(error) }],
    };
  const isShown = kindOf(name) !== "edit";
  return {
    toolCallId: tool_call_id,
    status: "completed",
    ...(isShown ? { content: blocksOf(content).map((block) => ({ type: "content", content: block })) } : {}),
  };
}
