// Subagents as the client sees them: from 1.0 on as agents with events of their own, before it as one activity each.

import type { EventName, StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { type AguiEvent, type Attribution, callIdOf } from "./history.ts";
import { createSpeaker, type Speaker } from "./speaker.ts";

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

interface Subagent {
  /** The client's id of it: no two of a run have the same. */
  readonly runId: string;
  readonly speaker: Speaker;
}

/** `isCurrent`: the client knows subagents. */
export function createSubagents(isCurrent: boolean) {
  const byPath = new Map<string, Subagent>();
  const uses = new Map<string, number>();
  /** The client's ids, by the threads that the subagents work on. */
  const byThread = new Map<string, string>();
  const at = (path: readonly string[]) => byPath.get(JSON.stringify(path));
  const whose = (subagent: Subagent | undefined): Attribution =>
    subagent ? { subagentRunId: subagent.runId } : {};

  const newId = (id: string): string => {
    const use = (uses.get(id) ?? 0) + 1;
    uses.set(id, use);
    // The id may have the form of another one's second use.
    return use === 1 ? id : newId(`${id}~${use}`);
  };

  const activity = ({ runId }: Subagent, changes: object): AguiEvent => ({
    type: "ACTIVITY_DELTA",
    messageId: activityId(runId),
    activityType: "subagent",
    patch: Object.entries(changes).map(([key, value]) => ({ op: "add", path: `/${key}`, value })),
  });

  return {
    at,
    start(path: readonly string[], data: DataOf<"on_subagent_start">): AguiEvent[] {
      const { id, call_id, agent, name, thread_id } = data;
      const parent = at(path);
      const runId = newId(id);
      byThread.set(thread_id, runId);
      const subagent = { runId, speaker: createSpeaker({ subagentRunId: runId }) };
      byPath.set(JSON.stringify([...path, id]), subagent);
      const parentToolCallId = callIdOf(call_id, whose(parent));
      if (!isCurrent) {
        const content = { agent, name, toolCallId: parentToolCallId, status: "running" };
        return [
          { type: "ACTIVITY_SNAPSHOT", messageId: activityId(runId), activityType: "subagent", content },
        ];
      }
      const of = parent ? { parentSubagentRunId: parent.runId } : {};
      return [
        { type: "SUBAGENT_STARTED", subagentRunId: runId, name, description: agent, parentToolCallId, ...of },
      ];
    },
    /** What the subagent wrote, to a client that is shown one activity. */
    wrote: (subagent: Subagent, text: string): AguiEvent[] =>
      isCurrent || text === "" ? [] : [activity(subagent, { text })],
    end(path: readonly string[], { id, status, summary }: DataOf<"on_subagent_end">): AguiEvent[] {
      const subagent = at([...path, id]);
      if (!subagent) return [];
      byPath.delete(JSON.stringify([...path, id]));
      if (!isCurrent) return [activity(subagent, { status, summary })];
      const { runId: subagentRunId, speaker } = subagent;
      if (status === "failed" || status === "cancelled")
        return [
          ...speaker.close(),
          { type: "SUBAGENT_ERROR", subagentRunId, message: summary, code: status },
        ];
      const outcome = { type: status === "interrupted" ? "suspended" : "success" };
      return [...speaker.close(), { type: "SUBAGENT_FINISHED", subagentRunId, result: summary, outcome }];
    },
    /** The subagent that asks, if the client knows it. */
    askerOf({ asked_by }: Interrupt): Attribution {
      const subagentRunId = isCurrent && asked_by ? byThread.get(asked_by.thread_id) : undefined;
      return subagentRunId === undefined ? {} : { subagentRunId };
    },
    whose,
  };
}

const activityId = (runId: string) => `subagent_${runId}`;
