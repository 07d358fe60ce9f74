// Runs whose model calls the tools of the filesystem, on a real workspace.

import type { Backend } from "../../../../src/agent/core/backend.ts";
import { toolMessages } from "../../../../src/agent/core/message.ts";
import { filesystem } from "../../../../src/agent/hooks/filesystem/index.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import { type Play, type Played, play } from "../../../support/agent.ts";
import { made } from "../made.ts";

export type Call = [tool: string, args: Record<string, unknown>];

/** One run whose model makes these calls one after the other. */
export function calling(backend: Backend, calls: Call[], more: Partial<Play> = {}): Promise<Played> {
  const script: Turn[] = [...calls.map(([tool, args]) => ({ call: [{ tool, args }] })), { say: "ok" }];
  const hook = made(filesystem, { backend, agent: { backend: { type: "local" } } });
  return play({ script, hooks: [hook], backend, ...more });
}

/** What the model gets to read of one call. */
export async function resultOf(backend: Backend, tool: string, args: Record<string, unknown>) {
  const { messages } = await calling(backend, [[tool, args]]);
  const [message] = toolMessages(messages);
  return { output: String(message?.content), error: message?.error };
}
