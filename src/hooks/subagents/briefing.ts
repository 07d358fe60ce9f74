// What a child is told when it begins.

import { type Message, userMessage } from "../../core/message.ts";
import type { Run } from "../../core/tool.ts";
import { tagged } from "../../lib/tagged.ts";
import { priorReflections } from "../reflections.ts";
import { cut } from "./outcome.ts";
import type { Team } from "./team.ts";

const MAX_CONTEXT_CHARS = 16_000;

export interface Task {
  readonly agent: string;
  readonly task: string;
  readonly context: string;
  readonly task_id?: string | undefined;
}

/** Who asks and why, what went wrong with similar tasks, and the task itself as the last. */
export async function briefing(team: Team, { agent, task, context }: Task, run: Run): Promise<Message[]> {
  const asker = run.lineage?.name ?? team.agent.name;
  const why = `\`${asker}\` gives you a task.\n\n${cut(context, MAX_CONTEXT_CHARS)}`;
  const place = { owner: run.owner, agent };
  const prior =
    team.items && team.agent.hooks.reflections ? await priorReflections(team.items, place, task) : undefined;
  return [tagged("delegation_context", why), ...(prior ? [prior] : []), task].map((text) =>
    userMessage(text),
  );
}
