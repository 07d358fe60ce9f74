// The exports of the package `skein`.

/// <reference types="node" preserve="true" />

import "./lib/node-version.ts";

export { z } from "zod";
export type { ModelConfig, ModelFactory } from "./agent/core/agent.ts";
export type { Backend, BackendPool } from "./agent/core/backend.ts";
export type { AgentInternals, AgentLoop } from "./agent/core/custom-loop.ts";
export {
  AppError,
  abortRun,
  type ErrorCode,
  type ErrorInfo,
  hasCode,
  RunLimit,
} from "./agent/core/errors.ts";
export { defineHook, type Hook, type HookDefinition, type HookServices } from "./agent/core/hook.ts";
export type { PlacedHook } from "./agent/core/hook-order.ts";
export type { KeyWrapper } from "./agent/core/key-wrapper.ts";
export { runAgent } from "./agent/core/loop.ts";
export * from "./agent/core/message.ts";
export type { Model, ModelReply, ModelRequest, SystemBlock } from "./agent/core/model.ts";
export { askFor } from "./agent/core/open-interrupts.ts";
export type { ClientTool } from "./agent/core/records.ts";
export {
  append,
  type Failure,
  type Outcome,
  patchState,
  type RunInput,
  registerTool,
  setState,
} from "./agent/core/run.ts";
export type { Agent } from "./agent/core/runnable-agent.ts";
export { drain, type Stream } from "./agent/core/stream.ts";
export type { TaskBoard, TaskRef } from "./agent/core/task-board.ts";
export type { RunTrace, Span, TraceRecorder } from "./agent/core/tool.ts";
export {
  defineTool,
  done,
  failed,
  interrupted,
  type Run,
  type Tool,
  type ToolResult,
  type ValueKey,
  valueKey,
} from "./agent/core/tool.ts";
export type { Rule } from "./agent/hooks/permissions/rule.ts";
export { loadRules, saveRules } from "./agent/hooks/permissions/stored-rules.ts";
export { createModel } from "./agent/models/index.ts";
export { type Script, scriptedModel, type Turn } from "./agent/models/scripted.ts";
export { clientTool } from "./agent/tools/client.ts";
export { QuotaConfig } from "./engine/quotas/config.ts";
export { createQuotas } from "./engine/quotas/index.ts";
export type { AllStores as Stores } from "./engine/stores/all-stores.ts";
export { createMemoryStores } from "./engine/stores/memory/index.ts";
export { createPostgresStores } from "./engine/stores/postgres/on-demand.ts";
export { createRedisStores } from "./engine/stores/redis/on-demand.ts";
export { createSqliteStores } from "./engine/stores/sqlite/index.ts";
export { StreamEvent } from "./protocol/event.ts";
export { checkGrammar } from "./protocol/grammar.ts";
export type { Answer, Interrupt } from "./protocol/interrupt.ts";
export { type Phase, phaseOf, trackPhase } from "./protocol/phase.ts";
export { defineBackend, type OwnBackend, type OwnBackendType } from "./sandbox/own.ts";
export type { AuthRequest, Identity, OwnScheme } from "./server/auth/own-scheme.ts";
export type { PluginRouteOptions, PluginRoutes } from "./server/http/plugin-routes.ts";
export { definePlugin, type Plugin } from "./server/plugins/definition.ts";
export { type ConsoleOptions, runAtConsole } from "./skein/cli/console.ts";
export { createAgent } from "./skein/library/agent.ts";
export type { AgentHandle } from "./skein/library/handle.ts";
export type { Input } from "./skein/library/input.ts";
export type {
  AgentOptions,
  HookFactory,
  LocalAgent,
  OwnHook,
  SpawnOptions,
  Whose,
} from "./skein/library/local-agent.ts";
export type { RunResult } from "./skein/library/result.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./skein/library/runtime.ts";
export { createServer, type Server, type ServerOptions } from "./skein/library/server.ts";
export { webTools } from "./skein/library/web-tools.ts";
