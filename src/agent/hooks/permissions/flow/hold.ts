// Applies flow rules to a run: the rules of its agent and of the agents that it works for. Collects the readings of the run,
// its subagents and the files that earlier threads wrote, and decides each call based on them.

import type { AgentDefinition } from "../../../core/agent.ts";
import {
  bounded,
  FLOW_STATE,
  type FlowRule,
  type Reading,
  readingsOf,
  storedReadings,
  through,
  unknownReadings,
  WEB_SEARCH,
} from "../../../core/flow.ts";
import type { CallTool, HookServices, Subagents, ToolRequest } from "../../../core/hook.ts";
import type { Shelf } from "../../../core/items.ts";
import type { ToolCall } from "../../../core/message.ts";
import type { ModelRequest, ToolSchema } from "../../../core/model.ts";
import { setState } from "../../../core/run.ts";
import type { Stream } from "../../../core/stream.ts";
import type { Run, ToolResult } from "../../../core/tool.ts";
import { childrenOf, readByChild } from "../../subagents/child.ts";
import { instructionsOf } from "../instructions.ts";
import { type FlowVerdict, flowVerdict, isSpokenOf, readingsOfRules } from "./verdict.ts";
import {
  markWritten,
  namesIn,
  type Provenance,
  readBy,
  readingsBehind,
  readWritten,
  settleWritten,
  unmarkWritten,
  writtenBy,
} from "./written.ts";

type Services = Pick<HookServices, "agent" | "items" | "subagents" | "backend">;

/** The folder where relative paths start if the backend defines none. */
const WORKDIR = "/workspace";

export interface FlowHold {
  /** Adds the readings whose text may be in the agent's instructions. */
  begin(run: Run): Stream<void>;
  /** Returns the verdict on a call, or undefined if no rule applies to it. */
  judge(request: ToolRequest, run: Run): Promise<FlowVerdict | undefined>;
  /** Runs the call, and records which marked files it reads and which files it marks. */
  pass(request: ToolRequest, next: CallTool, run: Run): Stream<ToolResult>;
}

/** Returns the object that applies the flow rules to a run. A run without flow rules has no overhead. */
export function holdFor(rules: readonly FlowRule[], services: Services): FlowHold {
  const { agent, items, subagents, backend } = services;
  const workdir = backend?.workdir ?? WORKDIR;
  const shelfOf = (run: Run): Shelf => ({
    owner: run.owner,
    of: { agent: run.lineage?.backend_of ?? agent.name },
    kind: "settings",
  });
  const list = async (run: Run): Promise<Provenance> => (items ? readWritten(items, shelfOf(run)) : {});

  /** Adds readings that the messages do not show to the thread's state. */
  async function* add(readings: readonly Reading[], run: Run): Stream<void> {
    const known = storedReadings(run.state);
    const news = unknownReadings(readings, known);
    if (news.length > 0) yield* setState(run, FLOW_STATE, bounded([...known, ...news]));
  }

  async function collect(run: Run, call: ToolCall): Promise<Reading[]> {
    const written = await list(run);
    const others = latestCalls(run).filter(({ id }) => id !== call.id);
    const byFiles = others.flatMap((each) => {
      const names = readBy({ call: each, tool: run.tools.get(each.name) }, written, run, workdir);
      return readingsBehind(names, written);
    });
    const live = subagents ? await readByLiveChildren(subagents, run, call) : [];
    return [...readingsOf(run, call), ...live, ...byFiles];
  }

  return {
    async *begin(run) {
      const written = rules.length > 0 && hasInstructions(agent) ? await list(run) : {};
      const instructs = instructionsOf(agent, workdir);
      yield* add(readingsBehind(namesIn(written, instructs), written), run);
    },

    async judge({ call }, run) {
      if (!isSpokenOf(call.name, rules)) return undefined;
      return flowVerdict(call.name, await collect(run, call), rules);
    },

    async *pass(request, next, run) {
      if (rules.length === 0 || !items) return yield* next(request);
      const all = await list(run);
      const target = writtenBy(request, run, workdir);
      if (!target) {
        yield* add(readingsBehind(readBy(request, all, run, workdir), all), run);
        return yield* next(request);
      }
      const { name, isWhole } = target;
      const readings = readingsOfRules(await collect(run, request.call), rules);
      if (readings.length > 0) {
        const mark = await markWritten(items, shelfOf(run), { name, readings });
        try {
          return yield* next(request);
        } finally {
          // If this fails, the file stays marked, which is safe.
          await settleWritten(items, shelfOf(run), { name, mark }).catch(() => {});
        }
      }
      const result = yield* next(request);
      const before = all[name];
      const isNew = isWhole && result.status === "done" && result.error === undefined;
      if (before && isNew) await unmarkWritten(items, shelfOf(run), { name, before });
      return result;
    },
  };
}

const hasInstructions = ({ memory, skills }: AgentDefinition) => memory !== undefined || skills !== undefined;

/** Returns the calls of the newest message that has calls. They run in parallel. */
function latestCalls({ messages }: Run): readonly ToolCall[] {
  const last = messages.findLast((each) => each.role === "assistant" && each.tool_calls !== undefined);
  return last?.role === "assistant" ? (last.tool_calls ?? []) : [];
}

/**
 * Returns the readings so far of subagents without a recorded result, except for the call's own subagents,
 * because these started after the call.
 */
async function readByLiveChildren(subagents: Subagents, run: Run, { id }: ToolCall): Promise<Reading[]> {
  const live = childrenOf(run).filter(({ read, call_id }) => read === undefined && call_id !== id);
  const all: Reading[] = [];
  for (const child of live) all.push(...through(await readByChild(subagents, run, child), child.name));
  return all;
}

/** True if a flow rule asks about searches by a model's provider, or denies them. */
export const holdsSearch = async (hold: FlowHold, run: Run): Promise<boolean> =>
  (await hold.judge(askedAbout(WEB_SEARCH, run), run)) !== undefined;

/**
 * Returns the request without the provider's own tools that a flow rule asks about or denies. The provider executes these
 * tools itself, so no single call of them can be decided.
 */
export async function withoutHeldTools(
  request: ModelRequest,
  hold: FlowHold,
  run: Run,
): Promise<ModelRequest> {
  const held = new Set<ToolSchema>();
  for (const tool of request.tools) {
    if (tool.ofProvider && (await hold.judge(askedAbout(tool.name, run), run))) held.add(tool);
  }
  return held.size === 0 ? request : { ...request, tools: request.tools.filter((tool) => !held.has(tool)) };
}

const askedAbout = (name: string, run: Run): ToolRequest => ({
  call: { id: "", name, args: {} },
  tool: run.tools.get(name),
  signal: run.signal,
});
