// Converts a run to AG-UI events. Changes that the protocol has no event for, such as retracted text, are sent as a
// snapshot of all messages.

import { type Message, NO_USAGE, type Usage } from "../../agent/core/message.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { pointerStep } from "../../lib/json-pointer.ts";
import type { AgentHandlers } from "../../protocol/agent-reader.ts";
import type { End } from "../../protocol/end.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import { isLongJson, longJson } from "../../server/http/json-parts.ts";
import type { Frame, LongFrame } from "../../server/http/sse.ts";
import type { Fold } from "../fold.ts";
import { resultText, shownContents, shownTodos } from "../shown.ts";
import {
  type AguiEvent,
  type Attribution,
  callIdOf,
  interruptOf,
  messagesOf,
  type PlainObject,
  stateOf,
} from "./history.ts";
import { eventsFor } from "./older-clients.ts";
import { createSpeaker, type Speaker } from "./speaker.ts";
import { createSubagents } from "./subagents.ts";

/** The client's own ids, and the version of its events. */
export interface Reader {
  readonly threadId: string;
  readonly runId: string;
  /** True if the client supports the events of 1.0. */
  readonly isCurrent: boolean;
  /** For a client before 0.0.59, the number N in its version 0.0.N. */
  readonly version?: number | undefined;
}

export interface ProjectOptions extends Reader {
  /** The thread before the run. */
  readonly messages: readonly Message[];
  readonly state: PlainObject;
  /** True if the client does not have these messages, in which case its stream starts with them. */
  readonly showsMessages: boolean;
}

export function project(options: ProjectOptions): Fold<Frame | LongFrame> {
  const eventsOf = createTable(options);
  const known = eventsFor(options.version);
  return (event, run) => eventsOf(event, run).flatMap(known).map(frameOfAny);
}

export const frameOf = (event: AguiEvent): Frame => ({ data: JSON.stringify(event) });

/** A snapshot may contain a whole thread. */
const frameOfAny = (event: AguiEvent): Frame | LongFrame =>
  event.type.endsWith("_SNAPSHOT") && isLongJson(event) ? { data: longJson(event) } : frameOf(event);

/** Returns the frames for a thread without an active run, as the events of a run that has ended. */
export function idleFrames(
  { threadId, runId, version }: Reader,
  thread: {
    readonly messages: readonly Message[];
    readonly state: PlainObject;
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

/** A message in the form that snapshots use. */
interface SnapshotMessage {
  readonly message: Message;
  readonly whose: Attribution;
}

function createTable({ threadId, runId, isCurrent, messages, state, showsMessages }: ProjectOptions) {
  const own = createSpeaker({});
  const written: SnapshotMessage[] = messages.map((message) => ({ message, whose: {} }));
  const known = new Set(messages.map(({ id }) => id));
  let { todos, files } = state;
  let model = "";

  const stateSnapshot = (): AguiEvent => ({ type: "STATE_SNAPSHOT", snapshot: stateOf({ todos, files }) });
  const snapshot = (): AguiEvent => ({
    type: "MESSAGES_SNAPSHOT",
    messages: written.flatMap(({ message, whose }) => messagesOf(message, whose)),
  });
  /** Returns false if the client already has the message. */
  const add = (message: Message, whose: Attribution): boolean => {
    if (known.has(message.id)) return false;
    known.add(message.id);
    written.push({ message, whose });
    return true;
  };

  /**
   * Ends a failed attempt and retracts its text. If it was the last attempt, the run's message contains the text again.
   */
  const takeBack = (speaker: Speaker): AguiEvent[] => {
    const hasBegun = speaker.hasBegun();
    const events = speaker.begin("");
    return hasBegun ? [...events, snapshot()] : events;
  };

  /** Converts the events of one agent, either the run's own or a subagent. */
  const agentTable = (speaker: Speaker, whose: Attribution): Partial<AgentHandlers<AguiEvent>> => ({
    step: ({ id }) => speaker.begin(id),
    delta: (kind, text) => (kind === "text" ? speaker.say(text) : speaker.think(text)),
    callDelta: speaker.call,
    stepEnd: ({ failed }) => (failed ? takeBack(speaker) : speaker.close()),
    assistant(message) {
      if (!add(message, whose)) return [];
      const events = speaker.complete(message);
      return speaker.differsFrom(message) ? [...events, snapshot()] : events;
    },
    result(message) {
      if (!add(message, whose)) return [];
      const { id: messageId, tool_call_id } = message;
      const toolCallId = callIdOf(tool_call_id, whose);
      const content = resultText(message);
      return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool", ...whose }];
    },
    toolProgress(_, { call_id, output }) {
      const value = { toolCallId: callIdOf(call_id, whose), output };
      return [{ type: "CUSTOM", name: "tool_progress", value, ...whose }];
    },
    warning: (value) => [{ type: "CUSTOM", name: "warning", value, ...whose }],
  });
  const subagents = createSubagents(isCurrent, agentTable);

  /** The client has the run's input but may not have the steering messages. */
  const said = (message: Message, isSteering: boolean): AguiEvent[] =>
    add(message, {}) && isSteering ? [snapshot()] : [];

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

  const endOf = ({ as, status, reason: code, message, usage, questions }: End): AguiEvent[] => {
    if (as === "failed" || as === "limit") return [{ type: "RUN_ERROR", message, code, ...usageOf(usage) }];
    const finished = { type: "RUN_FINISHED", threadId, runId, ...usageOf(usage) };
    // Clients before 1.0 do not support this outcome.
    if (as === "cancelled") return [isCurrent ? { ...finished, outcome: { type: "cancelled" } } : finished];
    const waiting = status === "interrupted" ? questions : [];
    const asked = waiting.filter(({ kind }) => kind !== "tool");
    if (asked.length > 0) {
      const interrupts = asked.map((each) => interruptOf(each, subagents.askerOf(each)));
      return [stateSnapshot(), snapshot(), { ...finished, outcome: { type: "interrupt", interrupts } }];
    }
    const pendingToolCallIds = waiting.map(({ call_id }) => call_id);
    const pending = isCurrent && pendingToolCallIds.length > 0 ? { pendingToolCallIds } : {};
    return [{ ...finished, outcome: { type: "success", ...pending } }];
  };

  return readTurn<AguiEvent, RunRecord>(
    {
      ...agentTable(own, {}),
      start: ({ id: run_id, thread_id, agent }) => [
        { type: "RUN_STARTED", threadId, runId, metadata: { run_id, thread_id, agent } },
        ...(showsMessages ? [snapshot()] : []),
        stateSnapshot(),
      ],
      run(_, data) {
        model = data.model;
        return [];
      },
      user: said,
      system: said,
      todos(value) {
        todos = value;
        return [{ type: "STATE_DELTA", delta: [{ op: "add", path: "/todos", value: shownTodos(value) }] }];
      },
      files(value, { before, patch }) {
        files = value;
        const delta = patch
          ? fileChanges(before, patch)
          : [{ op: "add", path: "/files", value: shownContents(value) }];
        return delta.length === 0 ? [] : [{ type: "STATE_DELTA", delta }];
      },
      subagent: subagents.eventsOf,
      end: (end) => [...own.close(), ...subagents.end(), ...endOf(end)],
    },
    { files },
  );
}

/** Returns JSON Patch operations. */
function fileChanges(before: unknown, patch: PlainObject): PlainObject[] {
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
