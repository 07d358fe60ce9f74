// Matches calls of the client's functions with their results. The two may arrive separately: the call in a response or
// with earlier items, and the result later.

import {
  type AssistantMessage,
  assistantMessage,
  type Message,
  type ToolCall,
  type ToolMessage,
  unanswered,
} from "../../agent/core/message.ts";
import { readJson } from "../../agent/core/output.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { refused } from "./given.ts";

/**
 * Returns the id of the call for a forced function, whose arguments are the run's answer. The id contains the run and
 * the function's name.
 */
export const forcedCallId = ({ id }: Pick<RunRecord, "id">, name: string) =>
  `call_${id.replace(/^run_/, "")}_${name}`;

const FORCED_CALL = /^call_(?<run>[0-9A-Za-z]{22})_(?<name>[a-zA-Z0-9_-]{1,64})$/;

/** The current thread. */
export interface CurrentThread {
  readonly messages: readonly Message[];
  /** The id of its newest run. */
  readonly run_id?: string | undefined;
  /** The open calls of the server's own tools, for which clients send no results. */
  readonly awaited?: ReadonlySet<string>;
}

/** Returns the results that may follow the thread's messages: those of its calls that have no result. */
export function resultsFor(known: CurrentThread, results: readonly ToolMessage[]): Message[] {
  const open = openCalls(known);
  return results.flatMap((result): Message[] => {
    const call = open.get(result.tool_call_id);
    if (call) return [{ ...result, name: call.name }];
    const forced = forcedCallIn(known, result.tool_call_id);
    return forced ? [forced, { ...result, name: forced.tool_calls?.[0]?.name ?? result.name }] : [];
  });
}

/**
 * Returns the messages that may follow the thread's messages. Throws `invalid_request` for a call without id or name,
 * and for a result without a waiting call.
 */
export function following(known: CurrentThread, messages: readonly Message[], param: string): Message[] {
  const open = openCalls(known);
  const taken = new Set<string>();
  return messages.flatMap((message): Message[] => {
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) {
        if (!call.id || !call.name) throw refused(param, "a `function_call` needs `call_id` and `name`.");
        open.set(call.id, call);
      }
      return [message];
    }
    if (message.role !== "tool") return [message];
    const id = message.tool_call_id;
    const call = open.get(id);
    if (call) taken.add(id);
    open.delete(id);
    if (call) return [{ ...message, name: call.name }];
    const late = taken.has(id) ? [] : resultsFor(known, [message]);
    taken.add(id);
    if (late.length > 0) return late;
    throw refused(
      param,
      `this conversation has no call \`${id}\` that waits for an output. Send the \`function_call\` before its output.`,
    );
  });
}

const openCalls = ({ messages, awaited }: CurrentThread) =>
  new Map<string, ToolCall>(
    unanswered(messages).flatMap((call) => (awaited?.has(call.id) ? [] : [[call.id, call]])),
  );

/** Returns the answer that the client received as this call, as a message with the call. */
function forcedCallIn({ messages, run_id }: CurrentThread, id: string): AssistantMessage | undefined {
  const { run, name } = FORCED_CALL.exec(id)?.groups ?? {};
  const last = messages.at(-1);
  if (!name || `run_${run}` !== run_id || last?.role !== "assistant" || last.tool_calls) return undefined;
  const args = readJson(last.content);
  return args && assistantMessage("", { id, name, args });
}
