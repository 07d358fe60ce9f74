// What programs use that run agents by themselves.

export { type StreamCallbacks, streamTo } from "./adapters/callbacks.ts";
export { type Effect, fromEffect, type IterationContext } from "./adapters/effects.ts";
export { fileSessions } from "./adapters/file-sessions.ts";
export {
  fromPostGeneration,
  fromPreGeneration,
  type GenerationHook,
  type GenerationState,
} from "./adapters/generation.ts";
export { compaction, injectContext, usageLogger } from "./adapters/generation-hooks.ts";
export { type AgentEvent, createHub, type Hub, type ToolEvent } from "./adapters/hub.ts";
export {
  fromMiddleware,
  type Middleware,
  type Runner,
  withLogger,
  withOutputGuardrail,
  withRecovery,
  withTimeout,
} from "./adapters/middleware.ts";
export { type Session, type SessionRepository, sessionHooks } from "./adapters/session-hooks.ts";
export { type Sessions, sessionsOf } from "./adapters/sessions.ts";
export {
  fromPostToolUse,
  fromPreToolUse,
  type PostToolUse,
  type PreToolUse,
  type ToolDecision,
  type ToolUse,
} from "./adapters/tool-use.ts";
export { createAgent } from "./agent.ts";
export type { AgentHandle } from "./handle.ts";
export type { Input } from "./input.ts";
export type { AgentOptions, LocalAgent, SpawnOptions, Whose } from "./local-agent.ts";
export type { HookFactory, OwnHook } from "./own-hooks.ts";
export type { RunResult } from "./result.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./runtime.ts";
