// A run as the events of LangGraph's streaming protocol.

import type { Message } from "../../../../core/message.ts";
import { inCallOrder } from "../../../../core/open-interrupts.ts";
import type { RunRecord } from "../../../../core/records.ts";
import type { EventName, StreamEvent } from "../../../../protocol/event.ts";
import type { Interrupt } from "../../../../protocol/interrupt.ts";
import { interruptsOf, shownArgs } from "../shapes.ts";
import { namespaceOf, type ShownThread, type Speaker, Speakers } from "./speakers.ts";
import { type Position, Teller, type Told } from "./told.ts";
import { type Data, writing } from "./writing.ts";

/** Called with each event of a run, in order. It may begin at any of them: then it tells the thread's state first. */
export type ProtocolFold = (event: StreamEvent, at: Position, run: RunRecord) => Told[];

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

export function project(thread: ShownThread): ProtocolFold {
  const { messages, isPast } = thread;
  const keptCalls = new Set(messages.flatMap(callsOf).map(({ id }) => id));
  const teller = new Teller();
  const speakers = new Speakers(thread, teller);
  const asked: Interrupt[] = [];
  /** Calls without a result. */
  const calls = new Set<string>();
  /** Subagents of calls that the thread has no longer. */
  const gone = new Set<string>();
  let hasBegun = false;

  const isGone = (callId: string) => isPast && !keptCalls.has(callId);
  const lifecycle = (namespace: readonly string[], data: Data) => teller.tell("lifecycle", namespace, data);
  const custom = (name: string, payload: Data) => teller.tell("custom", [], { name, payload });

  function begin({ agent: graph_name }: RunRecord, isStart: boolean): Told[] {
    if (hasBegun) return [];
    hasBegun = true;
    const running = () => lifecycle([], { event: "running", graph_name });
    if (isStart) return [running()];
    return teller.beforeFirst(() => [running(), ...speakers.snapshotOfAll()]);
  }

  /** Tells a message that was not told piece by piece. */
  function whole(speaker: Speaker, message: Message, run: RunRecord): Told[] {
    const isOfRun = speaker === speakers.root;
    if (isOfRun && message.role === "tool") calls.delete(message.tool_call_id);
    if (message.role !== "assistant") return [];
    if (isOfRun) for (const { id } of callsOf(message)) calls.add(id);
    const written = speaker.writing;
    if (written?.id === message.id && written.isBegun) return [];
    speaker.writing = writing(message.id, metadataOf(run, message.model ?? ""));
    return speakers.write(speaker, speaker.writing.tell(message));
  }

  function onModelEnd(speaker: Speaker, { error, usage }: DataOf<"on_chat_model_end">): Told[] {
    if (error) return speakers.withdraw(speaker, error);
    return speakers.write(speaker, speaker.writing?.end(usage) ?? []);
  }

  function onTool({ namespace }: Speaker, name: string, callId: string, data: Data): Told[] {
    if (namespace.length === 0 && isGone(callId)) return [];
    const own = name === "task" ? [...namespace, namespaceOf(callId)] : namespace;
    return [{ ...teller.tell("tools", own, { ...data, tool_call_id: callId }), node: "tools" }];
  }

  function onToolEnd(speaker: Speaker, name: string, data: DataOf<"on_tool_end">): Told[] {
    const { call_id, output = "", error, interrupted } = data;
    if (interrupted) return [];
    if (error !== undefined) return onTool(speaker, name, call_id, { event: "tool-error", message: error });
    return onTool(speaker, name, call_id, { event: "tool-finished", output });
  }

  function onSubagentStart({ namespace }: Speaker, data: DataOf<"on_subagent_start">): Told[] {
    const { id, call_id: tool_call_id, agent: graph_name } = data;
    if (namespace.length === 0 && isGone(tool_call_id)) {
      gone.add(id);
      return [];
    }
    const cause = { type: "toolCall", tool_call_id };
    return [lifecycle([...namespace, namespaceOf(id)], { event: "started", graph_name, cause })];
  }

  function onSubagentEnd({ namespace }: Speaker, { id, status }: DataOf<"on_subagent_end">): Told[] {
    if (namespace.length === 0 && gone.has(id)) return [];
    return [lifecycle([...namespace, namespaceOf(id)], { event: SUBAGENT_ENDS[status] })];
  }

  function end({ agent: graph_name }: RunRecord, data: Data): Told[] {
    return [
      ...speakers.snapshotOfState(),
      ...interruptsOf(inCallOrder(asked, [...calls])).map(({ id, value }) =>
        teller.tell("input.requested", [], { interrupt_id: id, payload: value }),
      ),
      lifecycle([], { ...data, graph_name }),
    ];
  }

  function done(run: RunRecord, { status, stop_reason }: DataOf<"done">): Told[] {
    if (status === "error")
      return end(run, { event: "failed", error: `The run has reached a limit: ${stop_reason}.` });
    if (status === "success") return end(run, { event: "completed" });
    const deferred = status === "interrupted" && asked.length === 0 ? [...calls] : [];
    return [
      ...deferred.map((call_id) => custom("deferred", { type: "deferred", call_id })),
      ...end(run, { event: "interrupted" }),
    ];
  }

  /** What the event tells, of the run itself or of a subagent. */
  function toldBy(event: StreamEvent, run: RunRecord): Told[] {
    const { path = [] } = event;
    if (gone.has(path[0] ?? "")) return [];
    const speaker = speakers.at(path);
    switch (event.event) {
      case "on_chat_model_start":
        speaker.writing = writing(event.data.message_id, metadataOf(run, event.data.model));
        return [];
      case "on_chat_model_stream":
        return speakers.write(speaker, speaker.writing?.write(event.data) ?? []);
      case "on_chat_model_end":
        return onModelEnd(speaker, event.data);
      case "message_discard":
        return speakers.withdraw(speaker, { code: "discarded", message: "The message starts again." });
      case "on_message": {
        const { message } = event.data;
        return [...whole(speaker, message, run), ...speakers.add(speaker, message)];
      }
      case "on_tool_start": {
        const { name: tool_name, data } = event;
        const input = shownArgs(tool_name, data.args);
        return onTool(speaker, tool_name, data.call_id, { event: "tool-started", tool_name, input });
      }
      case "on_tool_progress": {
        const { call_id, output: delta } = event.data;
        return onTool(speaker, event.name, call_id, { event: "tool-output-delta", delta });
      }
      case "on_tool_end":
        return onToolEnd(speaker, event.name, event.data);
      case "on_subagent_start":
        return onSubagentStart(speaker, event.data);
      case "on_subagent_end":
        return onSubagentEnd(speaker, event.data);
      case "warning":
        return [custom("warning", { type: "warning", ...event.data })];
      default:
        return path.length === 0 ? toldByRun(event, run) : [];
    }
  }

  /** Events of the run itself that subagents have none of. */
  function toldByRun(event: StreamEvent, run: RunRecord): Told[] {
    switch (event.event) {
      case "on_interrupt":
        asked.push(event.data);
        return [];
      case "on_state":
        speakers.setState(event.data.key, event.data);
        return [];
      case "error":
        return end(run, { event: "failed", error: event.data.message });
      case "done":
        return done(run, event.data);
      default:
        return [];
    }
  }

  return (event, { epoch, seq }, run) => {
    const time = "ts" in event && event.ts !== undefined ? Date.parse(event.ts) : undefined;
    teller.moveTo({ epoch, seq }, time);
    const all = [...begin(run, event.event === "run_start"), ...toldBy(event, run)];
    return isPast ? all.filter((each) => !isOver(each)) : all;
  };
}

/** The end of a past run would pass for that of the next one, its questions for open ones. */
const isOver = ({ method, namespace }: Told) =>
  method === "input.requested" || (method === "lifecycle" && namespace.length === 0);

const callsOf = (message: Message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []);

const metadataOf = ({ id: run_id, thread_id }: RunRecord, model: string): Data => ({
  model,
  run_id,
  thread_id,
});

const SUBAGENT_ENDS: Readonly<Record<DataOf<"on_subagent_end">["status"], string>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
  interrupted: "interrupted",
  running: "interrupted",
};
