// Tools: what a model may call, and the run as they see it, with its values and its trace.

import { z } from "zod";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, InterruptPolicy } from "../../protocol/interrupt.ts";
import type { Backend } from "./backend.ts";
import { AppError } from "./errors.ts";
import {
  type Content,
  type Message,
  type ToolCall,
  type ToolMessage,
  toolMessage,
  type Usage,
} from "./message.ts";
import type { ModelSettings } from "./model.ts";
import type { Lineage } from "./records.ts";
import { isStream, type MaybeStream, mapResult } from "./stream.ts";

/** Properties of a tool that are known without running it. */
export interface ToolAnnotations {
  /** Changes nothing: may be repeated freely. */
  readonly readOnly?: boolean;
  /** A second execution of the same call does no harm. Other tools that are not `readOnly` never run twice after a crash. */
  readonly idempotent?: boolean;
  readonly destructive?: boolean;
  readonly category?: "read" | "write" | "execute" | "network" | "plan";
  /** Waits for work with limits of its own, so the time limit of calls does not apply. */
  readonly waits?: boolean;
  /** Asks for permission unless a rule says otherwise. Default true. */
  readonly requiresPermission?: boolean;
}

/**
 * The outcome of a call. `done` with `error` is a failure that the model should see; with `endsRun` the run ends without
 * another model call. `interrupted` means "not yet": the run is suspended and the call stays unanswered.
 */
export type ToolResult =
  | {
      readonly status: "done";
      readonly output: Content;
      readonly error?: string;
      /** A person or a rule did not allow the call, or the user did not want to answer its question. */
      readonly denied?: true;
      readonly endsRun?: true;
      /** The id of the message that it becomes: it shows that a delivered result is in the thread. Default: a new one. */
      readonly message_id?: string;
    }
  | { readonly status: "interrupted" };

export type DoneResult = Extract<ToolResult, { status: "done" }>;

export const done = (output: Content): DoneResult => ({ status: "done", output });
export const failed = (error: string, output: Content = ""): DoneResult => ({
  status: "done",
  output,
  error,
});
export const denied = (error: string): DoneResult => ({ ...failed(error), denied: true });
/** The message by which the thread holds a call's result. */
export function resultMessage(
  call: Pick<ToolCall, "id" | "name">,
  { output, error, denied, message_id }: DoneResult,
): ToolMessage {
  const message = { ...toolMessage(call, output, error), ...(denied ? { denied } : {}) };
  return message_id === undefined ? message : { ...message, id: message_id };
}

export const interrupted = (): ToolResult => ({ status: "interrupted" });

/**
 * A tool. Values that the model must not see, such as owner, thread, signal and backend, come in `run`; `call.id` is the
 * idempotency key.
 */
export interface Tool {
  readonly name: string;
  /** Product text: the model reads it. */
  readonly description: string;
  readonly parameters: JsonSchema;
  /** Why models cannot be shown its parameters: completes "its parameters …". Runs leave such a tool out, with a warning. */
  readonly fault?: string | undefined;
  readonly annotations: ToolAnnotations;
  /** Defined by the client with the run: its name, description and parameters are the user's words. */
  readonly fromClient?: boolean;
  /** The call as a phrase for a person who decides on it: "run `make`". `args` are `parse`d. */
  describeCall?(args: unknown): string;
  /** Awaited before a call is parsed. What takes long in the first `parse` belongs here. Must not throw. */
  prepare?(): Promise<void>;
  /** The arguments as `execute` wants them, or one sentence for each thing wrong with them. */
  parse(args: Record<string, unknown>): { args: unknown } | { faults: string[] };
  /** May throw: the message becomes the call's error result. Must honour `run.signal`. */
  execute(args: unknown, call: ToolCall, run: Run): MaybeStream<ToolResult>;
}

/** The part of a run that its caller provides. */
export interface RunIdentity {
  readonly id: string;
  readonly threadId: string;
  readonly owner: Owner;
  /** 1, or more after a process died in the middle of this run. */
  readonly attempt: number;
  /** Aborted when the run is cancelled. Inside a tool call: also when that call must end. */
  readonly signal: AbortSignal;
  readonly settings: ModelSettings;
  /** The thread's metadata when the run began. */
  readonly threadMetadata?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly backend?: Backend | undefined;
  /** Of a run that works for another one. */
  readonly lineage?: Lineage | undefined;
  /** Where hooks and tools record spans and events. Absent when no traces are kept. */
  readonly trace?: RunTrace | undefined;
  /** W3C `traceparent` for requests that are made for a call. Absent, or undefined: none is sent. */
  traceparent?(callId: string): string | undefined;
  /** True once the run was asked to stop after the current step. */
  interruptRequested(): boolean;
}

/** What hooks and tools know of the run they work for. */
export interface Run extends RunIdentity {
  /** The name of the agent at work. */
  readonly agent: string;
  /** The agent's. */
  readonly description?: string | undefined;
  /** Which model call of this attempt the run is at, from 1; 0 before the first. */
  readonly step: number;
  /** The thread, whole, as it is now. Grows by `append` only. */
  readonly messages: readonly Message[];
  /** The thread's small keyed values: todos, files, summary. Changed by `setState` and `patchState` only. */
  readonly state: ReadonlyMap<string, unknown>;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The answers to earlier interrupts that this run was started with. */
  readonly answers: readonly Answer[];
  readonly interrupts: InterruptPolicy;
  /** Values that hooks and tools share. */
  readonly values: Values;
  /** Of all model calls of this run and its subagents so far. */
  readonly usage: Usage;
}

interface Definition<S extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly parameters: S;
  readonly annotations?: ToolAnnotations;
  describeCall?(args: z.output<S>): string;
  execute(args: z.output<S>, call: ToolCall, run: Run): MaybeStream<ToolResult | string>;
}

/** A tool whose parameters are a zod object. A returned string is its output. Throws `config_invalid` for a schema of zod 3. */
export function defineTool<S extends z.ZodObject>(definition: Definition<S>): Tool {
  const { name, description, parameters, annotations = {}, describeCall } = definition;
  const wrong = zodFault(parameters);
  if (wrong) throw new AppError("config_invalid", `tool \`${name}\`: parameters ${wrong}.`);
  return {
    name,
    description,
    annotations,
    parameters: jsonSchemaOf(parameters),
    // `parse` is the only source of `args`, here and below.
    ...(describeCall ? { describeCall: (args: unknown) => describeCall(args as z.output<S>) } : {}),
    parse(args) {
      const parsed = parameters.safeParse(args);
      if (parsed.success) return { args: parsed.data };
      return {
        faults: parsed.error.issues.map(({ path, message }) =>
          path.length > 0 ? `${path.join(".")}: ${message}` : message,
        ),
      };
    },
    execute(args, call, run) {
      const work = definition.execute(args as z.output<S>, call, run);
      return isStream(work) ? mapResult(work, asResult) : Promise.resolve(work).then(asResult);
    },
  };
}

const asResult = (result: ToolResult | string) => (typeof result === "string" ? done(result) : result);

const jsonSchemas = new WeakMap<z.ZodObject, Tool["parameters"]>();

/** Made once of each schema: most tools are defined again for every run. */
function jsonSchemaOf(parameters: z.ZodObject): Tool["parameters"] {
  const known = jsonSchemas.get(parameters);
  if (known) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  jsonSchemas.set(parameters, schema);
  return schema;
}

// Values that the hooks and tools of one run share; never stored.

/** Access to a value. Keys are compared by identity: two keys of one name are two keys. */
export interface ValueKey<T> {
  readonly name: string;
  /** Never there: it only carries the type. */
  readonly type?: T;
}

export const valueKey = <T>(name: string): ValueKey<T> => ({ name });

export interface Values {
  get<T>(key: ValueKey<T>): T | undefined;
  set<T>(key: ValueKey<T>, value: T): void;
  has(key: ValueKey<unknown>): boolean;
  /** False when there was none. */
  delete(key: ValueKey<unknown>): boolean;
}

export function createValues(): Values {
  const values = new Map<ValueKey<unknown>, unknown>();
  return {
    // What lies under a key was put there with the key's own type.
    get: <T>(key: ValueKey<T>) => values.get(key) as T | undefined,
    set: (key, value) => void values.set(key, value),
    has: (key) => values.has(key),
    delete: (key) => values.delete(key),
  };
}

// The port to a trace recorder. Without one, tracing does nothing.

export interface Span {
  set(key: string, value: unknown): Span;
  /** Records that something happened now, within the span. */
  recordEvent(name: string, attributes?: Readonly<Record<string, unknown>>): Span;
  /** Ends the span and records its duration. Called exactly once. */
  end(): void;
}

export interface TraceRecorder {
  /** A span of the run `attributes.run_id`, begun now. */
  startSpan(name: string, attributes: Readonly<Record<string, unknown>>): Span;
  /** Records that something happened now in the run `attributes.run_id`, outside of any span. */
  recordEvent(name: string, attributes: Readonly<Record<string, unknown>>): void;
}

/** The trace of one run, for its hooks and tools. Their records carry the run's ids. */
export interface RunTrace {
  startSpan(name: string, attributes?: Readonly<Record<string, unknown>>): Span;
  recordEvent(name: string, attributes?: Readonly<Record<string, unknown>>): void;
}

export function runTrace(recorder: TraceRecorder, ids: { run_id: string; thread_id: string }): RunTrace {
  return {
    startSpan: (name, attributes) => recorder.startSpan(name, { ...attributes, ...ids }),
    recordEvent: (name, attributes) => recorder.recordEvent(name, { ...attributes, ...ids }),
  };
}

/**
 * A clause about what is no schema of zod 4; undefined for one. Schemas of programs and plugins come from a copy of zod of their
 * own, which may be another major version.
 */
export function zodFault(value: unknown): string | undefined {
  if (typeof value === "object" && value !== null && "_zod" in value) return undefined;
  const isOld = typeof value === "object" && value !== null && "_def" in value;
  const why = isOld ? "this is a zod 3 schema" : `this is ${kindOf(value)}`;
  return `must be a zod schema (zod 4); ${why}. Import \`z\` from "skein" or from zod 4`;
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return "missing";
  return typeof value === "object" ? "another object, perhaps a JSON Schema" : `a ${typeof value}`;
}
