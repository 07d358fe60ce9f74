// A run as AG-UI events. What the client cannot read off events, such as words that are taken back, comes as a snapshot
// of all messages.

import { type Message, NO_USAGE, type Usage } from "../../../core/message.ts";
import type { RunRecord } from "../../../core/records.ts";
import { pointerStep } from "../../../lib/json-pointer.ts";
import type { EventName, StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { merge } from "../../../protocol/patch.ts";
import { isLongJson, longJson } from "../../json-parts.ts";
import type { Frame, LongFrame } from "../../sse.ts";
import type { Fold } from "../fold.ts";
import { resultText, shownContents, shownTodos } from "../shown.ts";
import {
  type AguiEvent,
  type Attribution,
  callIdOf,
  interruptOf,
  messagesOf,
  type Plain,
  stateOf,
} from "./history.ts";
import { eventsFor } from "./older-clients.ts";
import { createSpeaker, type Speaker } from "./speaker.ts";
import { createSubagents } from "./subagents.ts";

/** The client's own names of what it reads, and which events it knows. */
export interface Reader {
  readonly threadId: string;
  readonly runId: string;
  /** It knows the events of 1.0. */
  readonly isCurrent: boolean;
  /** The N of 0.0.N, for a client before 0.0.59. */
  readonly version?: number | undefined;
}

export interface ProjectOptions extends Reader {
  /** The thread before the run. */
  readonly messages: readonly Message[];
  readonly state: Plain;
  /** The client does not hold these messages: the run begins with them. */
  readonly showsMessages: boolean;
}

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

export function project(options: ProjectOptions): Fold<Frame | LongFrame> {
  const eventsOf = createFold(options);
  const known = eventsFor(options.version);
  return (event, run) => eventsOf(event, run).flatMap(known).map(frameOfAny);
}

export const frameOf = (event: AguiEvent): Frame => ({ data: JSON.stringify(event) });

/** A snapshot may hold all of a thread. */
const frameOfAny = (event: AguiEvent): Frame | LongFrame =>
  event.type.endsWith("_SNAPSHOT") && isLongJson(event) ? { data: longJson(event) } : frameOf(event);

/** A thread without an active run, told as a run that has ended. */
export function idleFrames(
  { threadId, runId, version }: Reader,
  thread: {
    readonly messages: readonly Message[];
    readonly state: Plain;
    readonly open: readonly Interrupt[];
  },
): (Frame | LongFrame)[] {
  const { messages, state, open } = thread;
  const asked = open.filter(({ kind }) => kind !== "tool");
  const outcome =
    asked.length > 0
      ? { type: "interrupt", interrupts: asked.map((each) => interruptOf(each)) }
      : { type: "success" };
  return [
    { type: "RUN_STARTED", threadId, runId },
    { type: "MESSAGES_SNAPSHOT", messages: messages.flatMap((message) => messagesOf(message)) },
    { type: "STATE_SNAPSHOT", snapshot: stateOf(state) },
    { type: "RUN_FINISHED", threadId, runId, outcome },
  ]
    .flatMap(eventsFor(version))
    .map(frameOfAny);
}

/** A message as snapshots show it. */
interface Written {
  readonly message: Message;
  readonly whose: Attribution;
}

function createFold({ threadId, runId, isCurrent, messages, state, showsMessages }: ProjectOptions) {
  const own = createSpeaker({});
  const subagents = createSubagents(isCurrent);
  const written: Written[] = messages.map((message) => ({ message, whose: {} }));
  const known = new Set(messages.map(({ id }) => id));
  const open = new Map<string, Interrupt>();
  let { todos, files } = state;
  let model = "";
  let isStarted = false;
  let hasSpoken = false;

  const stateSnapshot = (): AguiEvent => ({ type: "STATE_SNAPSHOT", snapshot: stateOf({ todos, files }) });
  const snapshot = (): AguiEvent => ({
    type: "MESSAGES_SNAPSHOT",
    messages: written.flatMap(({ message, whose }) => messagesOf(message, whose)),
  });

  const start = ({ id: run_id, thread_id, agent }: RunRecord): AguiEvent[] => {
    if (isStarted) return [];
    isStarted = true;
    const metadata = { run_id, thread_id, agent };
    return [
      { type: "RUN_STARTED", threadId, runId, metadata },
      ...(showsMessages ? [snapshot()] : []),
      stateSnapshot(),
    ];
  };

  /** Ends an attempt that failed, and takes its words back. If it is the last one, they come again with its message. */
  const takeBack = (speaker: Speaker): AguiEvent[] => {
    const hasBegun = speaker.hasBegun();
    const events = speaker.begin("");
    return hasBegun ? [...events, snapshot()] : events;
  };

  /** What one agent, the run's own or a subagent, does. */
  const ofSpeaker = (event: StreamEvent, speaker: Speaker, whose: Attribution): AguiEvent[] => {
    switch (event.event) {
      case "on_chat_model_start":
        return speaker.begin(event.data.message_id);
      case "on_chat_model_stream": {
        const { data } = event;
        if ("delta" in data) return speaker.say(data.delta);
        if ("reasoning_delta" in data) return speaker.think(data.reasoning_delta);
        return "tool_call" in data ? speaker.call(data.tool_call) : [];
      }
      case "on_chat_model_end":
        return event.data.error ? takeBack(speaker) : speaker.close();
      case "message_discard":
        return takeBack(speaker);
      case "on_message":
        return ofMessage(event.data.message, speaker, whose);
      case "on_tool_progress": {
        const { call_id, output } = event.data;
        const value = { toolCallId: callIdOf(call_id, whose), output };
        return [{ type: "CUSTOM", name: "tool_progress", value, ...whose }];
      }
      case "warning":
        return [{ type: "CUSTOM", name: "warning", value: event.data, ...whose }];
      default:
        return [];
    }
  };

  const ofMessage = (message: Message, speaker: Speaker, whose: Attribution): AguiEvent[] => {
    const isOwn = whose.subagentRunId === undefined;
    // A subagent's task is no message of the user's.
    const isShown = isOwn || message.role === "assistant" || message.role === "tool";
    if (!isShown || known.has(message.id)) return [];
    known.add(message.id);
    written.push({ message, whose });
    if (message.role === "assistant") {
      const events = speaker.complete(message);
      return speaker.differsFrom(message) ? [...events, snapshot()] : events;
    }
    if (message.role === "tool") {
      const { id: messageId, tool_call_id } = message;
      const toolCallId = callIdOf(tool_call_id, whose);
      if (isOwn) settle(tool_call_id);
      return [
        {
          type: "TOOL_CALL_RESULT",
          messageId,
          toolCallId,
          content: resultText(message),
          role: "tool",
          ...whose,
        },
      ];
    }
    // The client holds what the run begins with. What the user said to the running agent it may not.
    return hasSpoken ? [snapshot()] : [];
  };

  const settle = (callId: string) => {
    for (const [id, { call_id }] of open) if (call_id === callId) open.delete(id);
  };

  const ofSubagent = (event: StreamEvent, path: readonly string[]): AguiEvent[] => {
    if (event.event === "on_subagent_start") return subagents.start(path, event.data);
    if (event.event === "on_subagent_end") return subagents.end(path, event.data);
    const subagent = subagents.at(path);
    if (!subagent) return [];
    if (isCurrent) return ofSpeaker(event, subagent.speaker, subagents.whose(subagent));
    if (event.event !== "on_message" || event.data.message.role !== "assistant") return [];
    return subagents.wrote(subagent, event.data.message.content);
  };

  const ofState = ({ key, value, patch }: DataOf<"on_state">): AguiEvent[] => {
    if (key === "todos") {
      todos = value;
      return [{ type: "STATE_DELTA", delta: [{ op: "add", path: "/todos", value: shownTodos(value) }] }];
    }
    if (key !== "files") return [];
    const delta = patch
      ? fileChanges(files, patch)
      : [{ op: "add", path: "/files", value: shownContents(value) }];
    files = patch ? merge(files, patch) : value;
    return delta.length === 0 ? [] : [{ type: "STATE_DELTA", delta }];
  };

  const usageOf = (usage: Usage = NO_USAGE) => ({
    usage: [
      {
        model,
        inputTokens: usage.input_tokens,
        outputTokens: usage.output_tokens,
        totalTokens: usage.input_tokens + usage.output_tokens,
        cachedInputTokens: usage.cache_read_tokens,
        cacheWriteInputTokens: usage.cache_write_tokens,
      },
    ],
  });

  const ended = ({ status, stop_reason, usage }: DataOf<"done">): AguiEvent[] => {
    if (status === "error") {
      const message = `The run has reached a limit: ${stop_reason}.`;
      return [{ type: "RUN_ERROR", message, code: stop_reason, ...usageOf(usage) }];
    }
    const finished = { type: "RUN_FINISHED", threadId, runId, ...usageOf(usage) };
    if (status === "cancelled")
      // Clients before 1.0 know no such outcome.
      return [isCurrent ? { ...finished, outcome: { type: "cancelled" } } : finished];
    const waiting = status === "interrupted" ? [...open.values()] : [];
    const asked = waiting.filter(({ kind }) => kind !== "tool");
    if (asked.length > 0) {
      const interrupts = asked.map((each) => interruptOf(each, subagents.askerOf(each)));
      return [stateSnapshot(), snapshot(), { ...finished, outcome: { type: "interrupt", interrupts } }];
    }
    const pendingToolCallIds = waiting.map(({ call_id }) => call_id);
    const pending = isCurrent && pendingToolCallIds.length > 0 ? { pendingToolCallIds } : {};
    return [{ ...finished, outcome: { type: "success", ...pending } }];
  };

  const ofOwn = (event: StreamEvent): AguiEvent[] => {
    switch (event.event) {
      case "run_start":
        model = event.data.model;
        return [];
      case "on_chat_model_start":
        hasSpoken = true;
        return ofSpeaker(event, own, {});
      case "on_interrupt":
        open.set(event.data.id, event.data);
        return [];
      case "on_resume":
        open.delete(event.data.id);
        return [];
      case "on_state":
        return ofState(event.data);
      case "error": {
        const { message, code, usage } = event.data;
        return [...own.close(), { type: "RUN_ERROR", message, code, ...usageOf(usage) }];
      }
      case "done":
        return [...own.close(), ...ended(event.data)];
      default:
        return ofSpeaker(event, own, {});
    }
  };

  return (event: StreamEvent, run: RunRecord): AguiEvent[] => {
    const { path = [] } = event;
    const isOfSubagent =
      path.length > 0 || event.event === "on_subagent_start" || event.event === "on_subagent_end";
    return [...start(run), ...(isOfSubagent ? ofSubagent(event, path) : ofOwn(event))];
  };
}

/** As operations of JSON Patch. */
function fileChanges(before: unknown, patch: Plain): Plain[] {
  const known = shownContents(before);
  const added = shownContents(Object.fromEntries(Object.entries(patch).filter(([, each]) => each !== null)));
  return [
    ...Object.keys(patch)
      .filter((path) => patch[path] === null && path in known)
      .map((path) => ({ op: "remove", path: `/files/${pointerStep(path)}` })),
    ...Object.entries(added).map(([path, content]) => ({
      op: "add",
      path: `/files/${pointerStep(path)}`,
      value: content,
    })),
  ];
}
