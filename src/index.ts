// Skein as a library: the language, and the loop that speaks it.

export type { Agent, Outcome } from "./core/agent.ts";
export type { Backend } from "./core/backend.ts";
export { AppError, abortRun, type ErrorCode, type ErrorInfo, RunLimit } from "./core/errors.ts";
export { StreamEvent } from "./core/event.ts";
export { checkGrammar } from "./core/grammar.ts";
export { defineHook, type Hook, type HookDefinition } from "./core/hook.ts";
export { runAgent } from "./core/loop.ts";
export * from "./core/message.ts";
export * from "./core/messages.ts";
export type { Model, ModelReply, ModelRequest } from "./core/model.ts";
export { append, patchState, type Run, type RunInput, registerTool, setState } from "./core/run.ts";
export { drain, type Stream } from "./core/stream.ts";
export { defineTool, done, failed, interrupted, type Tool, type ToolResult } from "./core/tool.ts";
export { createModel } from "./models/index.ts";
export { type Script, scriptedModel, type Turn } from "./models/scripted.ts";
