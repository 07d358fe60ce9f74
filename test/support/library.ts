// Agents of a test's own program: scripted, in memory, gone with the test.

import { onTestFinished } from "vitest";
import { type Script, scriptedModel, type Turn } from "../../src/agent/models/scripted.ts";
import { type AgentOptions, createAgent, createRuntime, type RuntimeOptions } from "../../src/index.ts";

export const agentWith = (script: readonly Turn[] | Script, more: AgentOptions = {}) =>
  createAgent({ model: scriptedModel(script), ...more });

/** Closed when the test has finished; nothing is waited for. */
export function runtimeWith(options: RuntimeOptions = {}) {
  const runtime = createRuntime({ grace_ms: 0, ...options });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** All of a stream of events. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of stream) all.push(each);
  return all;
}
