// The exports of `skein/adapters`: hooks, callbacks and sessions in the style of other frameworks. Every file uses only
// the public API and is also an example of it.

export { type StreamCallbacks, streamTo } from "./callbacks.ts";
export { type Effect, fromEffect, type IterationContext } from "./effects.ts";
export {
  compaction,
  fromPostGeneration,
  fromPreGeneration,
  type GenerationHook,
  type GenerationState,
  injectContext,
  usageLogger,
} from "./generation.ts";
export { type AgentEvent, createHub, type Hub, type ToolEvent } from "./hub.ts";
export {
  fromMiddleware,
  type Middleware,
  type Runner,
  withLogger,
  withOutputGuardrail,
  withRecovery,
  withTimeout,
} from "./middleware.ts";
export { fileSessions, type Session, type SessionRepository, sessionHooks } from "./sessions.ts";
export { type Sessions, sessionsOf } from "./thread-sessions.ts";
export {
  fromPostToolUse,
  fromPreToolUse,
  type PostToolUse,
  type PreToolUse,
  type ToolDecision,
  type ToolUse,
} from "./tool-use.ts";
