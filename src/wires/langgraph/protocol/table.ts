// Converts a run to events of LangGraph's streaming protocol.

import type { Message } from "../../../agent/core/message.ts";
import { inCallOrder } from "../../../agent/core/open-interrupts.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import { type AgentHandlers, type AgentReader, readSubagent } from "../../../protocol/agent-reader.ts";
import type { End } from "../../../protocol/end.ts";
import type { EventData, StreamEvent } from "../../../protocol/event.ts";
import { readTurn } from "../../../protocol/turn-reader.ts";
import { interruptsOf, shownArgs } from "../history.ts";
import { type Data, messageWriter } from "./message-writer.ts";
import { namespaceOf, type ShownThread, type Speaker, Speakers } from "./speakers.ts";
import { type LangGraphEvent, type Position, Teller } from "./told.ts";

/** Called with each event of a run, in order. It may start at any event, and then sends the thread's state first. */
export type ProtocolFold = (event: StreamEvent, at: Position, run: RunRecord) => LangGraphEvent[];

export function project(thread: ShownThread): ProtocolFold {
  const { messages, isPast } = thread;
  const keptCalls = new Set(messages.flatMap(callsOf).map(({ id }) => id));
  const teller = new Teller();
  const speakers = new Speakers(thread, teller);
  const readers = new Map<Speaker, AgentReader<LangGraphEvent>>();
  /** The calls that have no result. */
  const calls = new Set<string>();
  /** The subagents of calls that the thread no longer has. */
  const gone = new Set<string>();
  let now: RunRecord | undefined;
  let hasBegun = false;

  const isGone = (callId: string) => isPast && !keptCalls.has(callId);
  const lifecycle = (namespace: readonly string[], data: Data) => teller.tell("lifecycle", namespace, data);
  const custom = (name: string, payload: Data) => teller.tell("custom", [], { name, payload });

  function begin({ agent: graph_name }: RunRecord, isStart: boolean): LangGraphEvent[] {
    if (hasBegun) return [];
    hasBegun = true;
    const running = () => lifecycle([], { event: "running", graph_name });
    if (isStart) return [running()];
    return teller.beforeFirst(() => [running(), ...speakers.snapshotOfAll()]);
  }

  const metadata = (model: string): Data => ({ model, run_id: now?.id, thread_id: now?.thread_id });

  function onTool({ namespace }: Speaker, name: string, callId: string, data: Data): LangGraphEvent[] {
    if (namespace.length === 0 && isGone(callId)) return [];
    const own = name === "task" ? [...namespace, namespaceOf(callId)] : namespace;
    return [{ ...teller.tell("tools", own, { ...data, tool_call_id: callId }), node: "tools" }];
  }

  /** Converts the events of one agent, either the run's own or a subagent. */
  const agentTable = (speaker: Speaker): Partial<AgentHandlers<LangGraphEvent>> => ({
    step({ id, model }) {
      speaker.writer = messageWriter(id, metadata(model));
      return [];
    },
    delta: (kind, text) => speakers.write(speaker, speaker.writer?.say(BLOCKS[kind], text) ?? []),
    callDelta: (delta) => speakers.write(speaker, speaker.writer?.callDelta(delta) ?? []),
    stepEnd: ({ failed, error, usage }) =>
      failed
        ? speakers.withdraw(speaker, error ?? DISCARDED)
        : speakers.write(speaker, speaker.writer?.end(usage) ?? []),
    assistant(message, isStreamed) {
      if (speaker === speakers.root) for (const { id } of callsOf(message)) calls.add(id);
      if (!isStreamed) speaker.writer = messageWriter(message.id, metadata(message.model ?? ""));
      const whole = isStreamed ? [] : (speaker.writer?.tell(message) ?? []);
      return [...speakers.write(speaker, whole), ...speakers.add(speaker, message)];
    },
    user: (message) => speakers.add(speaker, message),
    system: (message) => speakers.add(speaker, message),
    result(message) {
      if (speaker === speakers.root) calls.delete(message.tool_call_id);
      return speakers.add(speaker, message);
    },
    toolStart: (tool_name, { call_id, args }) =>
      onTool(speaker, tool_name, call_id, {
        event: "tool-started",
        tool_name,
        input: shownArgs(tool_name, args),
      }),
    toolProgress: (name, { call_id, output: delta }) =>
      onTool(speaker, name, call_id, { event: "tool-output-delta", delta }),
    toolEnd(name, { call_id, output = "", error, interrupted }) {
      if (interrupted) return [];
      const data =
        error === undefined ? { event: "tool-finished", output } : { event: "tool-error", message: error };
      return onTool(speaker, name, call_id, data);
    },
    warning: (data) => [custom("warning", { type: "warning", ...data })],
  });

  const readerOf = (speaker: Speaker): AgentReader<LangGraphEvent> => {
    const reader = readers.get(speaker) ?? readSubagent(agentTable(speaker));
    readers.set(speaker, reader);
    return reader;
  };

  function onSubagent(event: StreamEvent, path: readonly string[]): readonly LangGraphEvent[] {
    if (gone.has(path[0] ?? "")) return [];
    const speaker = speakers.at(path);
    if (event.event === "on_subagent_start") return onSubagentStart(speaker, event.data);
    if (event.event === "on_subagent_end") return onSubagentEnd(speaker, event.data);
    return readerOf(speaker).see(event);
  }

  function onSubagentStart({ namespace }: Speaker, data: EventData<"on_subagent_start">): LangGraphEvent[] {
    const { id, call_id: tool_call_id, agent: graph_name } = data;
    if (namespace.length === 0 && isGone(tool_call_id)) {
      gone.add(id);
      return [];
    }
    const cause = { type: "toolCall", tool_call_id };
    return [lifecycle([...namespace, namespaceOf(id)], { event: "started", graph_name, cause })];
  }

  function onSubagentEnd(
    { namespace }: Speaker,
    { id, status }: EventData<"on_subagent_end">,
  ): LangGraphEvent[] {
    if (namespace.length === 0 && gone.has(id)) return [];
    return [lifecycle([...namespace, namespaceOf(id)], { event: SUBAGENT_ENDS[status] })];
  }

  function onEnd(
    { as, status, message, questions }: End,
    { agent: graph_name }: RunRecord,
  ): LangGraphEvent[] {
    const deferred = status === "interrupted" && questions.length === 0 ? [...calls] : [];
    const data =
      as === "failed" || as === "limit"
        ? { event: "failed", error: message }
        : { event: status === "success" ? "completed" : "interrupted" };
    return [
      ...deferred.map((call_id) => custom("deferred", { type: "deferred", call_id })),
      ...speakers.snapshotOfState(),
      ...interruptsOf(inCallOrder(questions, [...calls])).map(({ id, value }) =>
        teller.tell("input.requested", [], { interrupt_id: id, payload: value }),
      ),
      lifecycle([], { ...data, graph_name }),
    ];
  }

  const changed =
    (key: "todos" | "files") =>
    (value: unknown): LangGraphEvent[] => {
      speakers.setState(key, value);
      return [];
    };
  const read = readTurn<LangGraphEvent, RunRecord>(
    {
      ...agentTable(speakers.root),
      todos: changed("todos"),
      files: changed("files"),
      subagent: onSubagent,
      end: onEnd,
    },
    { files: thread.state.files },
  );

  return (event, { epoch, seq }, run) => {
    const time = "ts" in event && event.ts !== undefined ? Date.parse(event.ts) : undefined;
    teller.moveTo({ epoch, seq }, time);
    now = run;
    const all = [...begin(run, event.event === "run_start"), ...read(event, run)];
    return isPast ? all.filter((each) => !isOver(each)) : all;
  };
}

/** Clients would mistake the end of a past run for the end of the next one, and its questions for open ones. */
const isOver = ({ method, namespace }: LangGraphEvent) =>
  method === "input.requested" || (method === "lifecycle" && namespace.length === 0);

const callsOf = (message: Message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []);

const BLOCKS = { text: "text", thought: "reasoning" } as const;

const DISCARDED = { code: "discarded", message: "The message starts again." };

const SUBAGENT_ENDS: Readonly<Record<EventData<"on_subagent_end">["status"], string>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
  interrupted: "interrupted",
  running: "interrupted",
};
