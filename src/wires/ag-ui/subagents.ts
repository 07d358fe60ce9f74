// Shows subagents to the client. Since 1.0, they are agents with their own events; in older versions, each is a single
// activity.

import { type AgentHandlers, type AgentReader, readSubagent } from "../../protocol/agent-reader.ts";
import type { EventData, StreamEvent } from "../../protocol/event.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { type AguiEvent, type Attribution, callIdOf } from "./history.ts";
import { createSpeaker, type Speaker } from "./speaker.ts";

interface Subagent {
  /** The client's id for the subagent, which is unique within a run. */
  readonly runId: string;
  readonly threadId: string;
  /** The id of the subagent's own run on the server. */
  ownRun: string;
  readonly speaker: Speaker;
  readonly reader: AgentReader<AguiEvent>;
  /**
   * True while the subagent is asking, or while its parent runs again, because the subagent may continue in this run.
   * If it does not, the client is notified when the run ends.
   */
  isSuspended: boolean;
}

/** The events of an agent for the client. */
type AgentTable = (speaker: Speaker, whose: Attribution) => Partial<AgentHandlers<AguiEvent>>;

/** `isCurrent`: the client supports subagents, whose events look like those of the run's own agent. */
export function createSubagents(isCurrent: boolean, tableOf: AgentTable) {
  const byPath = new Map<string, Subagent>();
  const uses = new Map<string, number>();
  /** The client's ids, by subagent thread. */
  const byThread = new Map<string, string>();
  /** The ids of the subagents' own runs that were shown to their end. */
  const shown = new Set<string>();
  const at = (path: readonly string[]) => byPath.get(JSON.stringify(path));

  const newId = (id: string): string => {
    const use = (uses.get(id) ?? 0) + 1;
    uses.set(id, use);
    // A subagent's own id may already have this form.
    return use === 1 ? id : newId(`${id}~${use}`);
  };
  const create = (runId: string, threadId: string, ownRun: string): Subagent => {
    const whose = { subagentRunId: runId };
    const speaker = createSpeaker(whose);
    const table = isCurrent ? tableOf(speaker, whose) : activityTable(runId);
    return { runId, threadId, ownRun, speaker, reader: readSubagent(table), isSuspended: false };
  };

  const start = (path: readonly string[], data: EventData<"on_subagent_start">): AguiEvent[] => {
    // If a process dies before it stores the result of a subagent that has ended, the next one follows the same run again.
    if (shown.has(data.run_id)) return [];
    const suspended = at([...path, data.id]);
    if (suspended?.threadId !== data.thread_id) return [...finish(suspended), ...begin(path, data)];
    suspended.isSuspended = false;
    suspended.ownRun = data.run_id;
    return isCurrent ? [] : [activity(suspended.runId, { status: "running" })];
  };

  const begin = (path: readonly string[], data: EventData<"on_subagent_start">): AguiEvent[] => {
    const { id, call_id, agent, name, thread_id, run_id } = data;
    const parent = at(path);
    const subagent = create(newId(id), thread_id, run_id);
    const { runId } = subagent;
    byThread.set(thread_id, runId);
    byPath.set(JSON.stringify([...path, id]), subagent);
    const parentToolCallId = callIdOf(call_id, parent ? { subagentRunId: parent.runId } : {});
    if (!isCurrent) {
      const content = { agent, name, toolCallId: parentToolCallId, status: "running" };
      return [{ type: "ACTIVITY_SNAPSHOT", messageId: activityId(runId), activityType: "subagent", content }];
    }
    const of = parent ? { parentSubagentRunId: parent.runId } : {};
    return [
      { type: "SUBAGENT_STARTED", subagentRunId: runId, name, description: agent, parentToolCallId, ...of },
    ];
  };

  const end = (path: readonly string[], data: EventData<"on_subagent_end">): AguiEvent[] => {
    const { id, status, summary } = data;
    const subagent = at([...path, id]);
    if (!subagent) return [];
    const { runId: subagentRunId, speaker } = subagent;
    subagent.isSuspended = status === "interrupted";
    if (!subagent.isSuspended) {
      byPath.delete(JSON.stringify([...path, id]));
      shown.add(subagent.ownRun);
    }
    if (!isCurrent) return [activity(subagentRunId, { status, summary })];
    if (subagent.isSuspended) return speaker.close();
    if (status === "failed" || status === "cancelled")
      return [...speaker.close(), { type: "SUBAGENT_ERROR", subagentRunId, message: summary, code: status }];
    return [
      ...speaker.close(),
      { type: "SUBAGENT_FINISHED", subagentRunId, result: summary, outcome: { type: "success" } },
    ];
  };

  /** Reports that a suspended subagent does not continue in this run. */
  const finish = (subagent: Subagent | undefined): AguiEvent[] =>
    isCurrent && subagent?.isSuspended
      ? [
          {
            type: "SUBAGENT_FINISHED",
            subagentRunId: subagent.runId,
            result: "",
            outcome: { type: "suspended" },
          },
        ]
      : [];

  return {
    eventsOf(event: StreamEvent, path: readonly string[]): readonly AguiEvent[] {
      if (event.event === "on_subagent_start") return start(path, event.data);
      if (event.event === "on_subagent_end") return end(path, event.data);
      return at(path)?.reader.see(event) ?? [];
    },
    /** Returns the events that precede the run's own end. */
    end: (): AguiEvent[] => [...byPath.values()].reverse().flatMap(finish),
    /** Returns the subagent that is asking, if the client supports subagents. */
    askerOf({ asked_by }: Interrupt): Attribution {
      const subagentRunId = isCurrent && asked_by ? byThread.get(asked_by.thread_id) : undefined;
      return subagentRunId === undefined ? {} : { subagentRunId };
    },
  };
}

/** If the client shows a single activity, it sees the subagent's text. */
const activityTable = (runId: string): Partial<AgentHandlers<AguiEvent>> => ({
  assistant: ({ content: text }) => (text === "" ? [] : [activity(runId, { text })]),
});

const activity = (runId: string, changes: object): AguiEvent => ({
  type: "ACTIVITY_DELTA",
  messageId: activityId(runId),
  activityType: "subagent",
  patch: Object.entries(changes).map(([key, value]) => ({ op: "add", path: `/${key}`, value })),
});

const activityId = (runId: string) => `subagent_${runId}`;
