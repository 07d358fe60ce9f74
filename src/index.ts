// The exports of the package `skein`.

/// <reference types="node" preserve="true" />

import "./lib/node-version.ts";

export { z } from "zod";
export { defineBackend, type OwnBackend, type OwnBackendType } from "./backends/own.ts";
export { type ConsoleOptions, runAtConsole } from "./cli/console.ts";
export type { ModelConfig, ModelFactory } from "./core/agent.ts";
export type { Backend, BackendPool } from "./core/backend.ts";
export type { AgentInternals, AgentLoop } from "./core/custom-loop.ts";
export { AppError, abortRun, type ErrorCode, type ErrorInfo, hasCode, RunLimit } from "./core/errors.ts";
export { defineHook, type Hook, type HookDefinition, type HookServices } from "./core/hook.ts";
export type { PlacedHook } from "./core/hook-order.ts";
export { runAgent } from "./core/loop.ts";
export * from "./core/message.ts";
export type { Model, ModelReply, ModelRequest, SystemBlock } from "./core/model.ts";
export { askFor } from "./core/open-interrupts.ts";
export type { ClientTool } from "./core/records.ts";
export {
  append,
  type Failure,
  type Outcome,
  patchState,
  type RunInput,
  registerTool,
  setState,
} from "./core/run.ts";
export type { Agent } from "./core/runnable-agent.ts";
export { drain, type Stream } from "./core/stream.ts";
export type { TaskBoard, TaskRef } from "./core/task-board.ts";
export type { RunTrace, Span, TraceRecorder } from "./core/tool.ts";
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
} from "./core/tool.ts";
export type { Rule } from "./hooks/permissions/rule.ts";
export { loadRules, saveRules } from "./hooks/permissions/stored-rules.ts";
export type { AuthRequest, Identity, OwnScheme } from "./http/auth/own-scheme.ts";
export type { PluginRouteOptions, PluginRoutes } from "./http/plugin-routes.ts";
export { createAgent } from "./library/agent.ts";
export type { AgentHandle } from "./library/handle.ts";
export type { Input } from "./library/input.ts";
export type {
  AgentOptions,
  HookFactory,
  LocalAgent,
  OwnHook,
  SpawnOptions,
  Whose,
} from "./library/local-agent.ts";
export type { RunResult } from "./library/result.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./library/runtime.ts";
export { createServer, type Server, type ServerOptions } from "./library/server.ts";
export { createModel } from "./models/index.ts";
export { type Script, scriptedModel, type Turn } from "./models/scripted.ts";
export { definePlugin, type Plugin } from "./plugins/definition.ts";
export { StreamEvent } from "./protocol/event.ts";
export { checkGrammar } from "./protocol/grammar.ts";
export type { Answer, Interrupt } from "./protocol/interrupt.ts";
export { type Phase, phaseOf, trackPhase } from "./protocol/phase.ts";
export { QuotaConfig } from "./quotas/config.ts";
export { createQuotas } from "./quotas/index.ts";
export type { AllStores as Stores } from "./stores/all-stores.ts";
export { createMemoryStores } from "./stores/memory/index.ts";
export { createPostgresStores } from "./stores/postgres/on-demand.ts";
export { createRedisStores } from "./stores/redis/on-demand.ts";
export { createSqliteStores } from "./stores/sqlite/index.ts";
export { clientTool } from "./tools/client.ts";
