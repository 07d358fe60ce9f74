// What programs use that run agents by themselves.

export { createAgent } from "./agent.ts";
export type { AgentHandle } from "./handle.ts";
export type { Input } from "./input.ts";
export type { AgentOptions, LocalAgent, SpawnOptions, Whose } from "./local-agent.ts";
export type { HookFactory, OwnHook } from "./own-hooks.ts";
export type { RunResult } from "./result.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./runtime.ts";
