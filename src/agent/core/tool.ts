// Tools that a model may call, and the run as tools see it, with its values and its trace.

import { z } from "zod";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, InterruptPolicy } from "../../protocol/interrupt.ts";
import type { WebSource } from "../../protocol/message.ts";
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
import type { ModelSettings, ProviderSearch } from "./model.ts";
import type { Lineage } from "./records.ts";
import { isStream, type MaybeStream, mapResult } from "./stream.ts";

/** The properties of a tool that are known without running it. */
export interface ToolAnnotations {
  /** The tool changes nothing, so it may be repeated freely. */
  readonly readOnly?: boolean;
  /**
   * Repeating the same call does no harm. Other tools that are not `readOnly` never run twice after a crash.
   */
  readonly idempotent?: boolean;
  readonly destructive?: boolean;
  readonly category?: "read" | "write" | "execute" | "network" | "plan";
  /** The tool waits for work that has its own limits, so the time limit of calls does not apply. */
  readonly waits?: boolean;
  /** The tool needs permission unless a rule decides otherwise. Default: true. */
  readonly requiresPermission?: boolean;
  /** Globs that begin with a wildcard, such as `*`, do not select the tool. */
  readonly namedOnly?: boolean;
}

/**
 * The outcome of a call. `done` with `error` is a failure that the model sees. `endsRun` ends the run without
 * another model call. `interrupted` means "not yet": the run is suspended and the call stays unanswered.
 */
export type ToolResult =
  | {
      readonly status: "done";
      readonly output: Content;
      readonly error?: string;
      /** A person or a rule denied the call, or the user declined to answer its question. */
      readonly denied?: true;
      readonly endsRun?: true;
      /** The web pages from which the output comes. Front ends show them as citations. */
      readonly sources?: readonly WebSource[];
      /**
       * The id of the resulting message, which identifies a delivered result in the thread. Default: a new
       * id.
       */
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
/** Returns the tool message with a call's result. */
export function resultMessage(
  call: Pick<ToolCall, "id" | "name">,
  { output, error, denied, sources, message_id }: DoneResult,
): ToolMessage {
  const message = {
    ...toolMessage(call, output, error),
    ...(denied ? { denied } : {}),
    ...(sources ? { sources: [...sources] } : {}),
  };
  return message_id === undefined ? message : { ...message, id: message_id };
}

export const interrupted = (): ToolResult => ({ status: "interrupted" });

/**
 * A tool. `run` contains values that the model must not see, such as owner, thread, signal and backend.
 * `call.id` is the idempotency key.
 */
export interface Tool {
  readonly name: string;
  /** The description that the model reads. */
  readonly description: string;
  readonly parameters: JsonSchema;
  /**
   * Why models cannot use the tool's parameters. Completes "its parameters …". Runs exclude such a tool with
   * a warning.
   */
  readonly fault?: string | undefined;
  readonly annotations: ToolAnnotations;
  /** The client defined the tool with the run, so its name, description and parameters are user input. */
  readonly fromClient?: boolean;
  /** Set for a tool that the model's provider executes during the model call. People cannot approve these calls. */
  readonly ofProvider?: ProviderSearch;
  /** Describes the call to the person who decides on it, such as "run `make`". `args` come from `parse`. */
  describeCall?(args: unknown): string;
  /** Awaited before a call is parsed. Do work here that would make the first `parse` slow. Must not throw. */
  prepare?(): Promise<void>;
  /** Returns the arguments for `execute`, or one sentence for each fault. */
  parse(args: Record<string, unknown>): { args: unknown } | { faults: string[] };
  /** If it throws, the message becomes the call's error result. It must honor `run.signal`. */
  execute(args: unknown, call: ToolCall, run: Run): MaybeStream<ToolResult>;
}

/** The part of a run that its caller provides. */
export interface RunIdentity {
  readonly id: string;
  readonly threadId: string;
  readonly owner: Owner;
  /** 1 for the first attempt. Increases when a process dies during this run. */
  readonly attempt: number;
  /** Aborts when the run is cancelled and, inside a tool call, when that call must end. */
  readonly signal: AbortSignal;
  readonly settings: ModelSettings;
  /** The thread's metadata when the run began. */
  readonly threadMetadata?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly backend?: Backend | undefined;
  /** Set for a run that works for another run. */
  readonly lineage?: Lineage | undefined;
  /** Records the spans and events of hooks and tools. Undefined if no traces are recorded. */
  readonly trace?: RunTrace | undefined;
  /** Returns the W3C `traceparent` for requests that a call makes, or undefined if none is sent. */
  traceparent?(callId: string): string | undefined;
  /** Returns true once someone has asked the run to stop after the current step. */
  interruptRequested(): boolean;
}

/** The run as its hooks and tools see it. */
export interface Run extends RunIdentity {
  /** The name of the active agent. */
  readonly agent: string;
  /** The agent's description. */
  readonly description?: string | undefined;
  /** The number of the current model call in this attempt, starting at 1. It is 0 before the first call. */
  readonly step: number;
  /** All current messages of the thread. Only `append` adds to them. */
  readonly messages: readonly Message[];
  /** The thread's small keyed values: todos, files, summary. Only `setState` and `patchState` change them. */
  readonly state: ReadonlyMap<string, unknown>;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The answers to earlier interrupts that this run was started with. */
  readonly answers: readonly Answer[];
  readonly interrupts: InterruptPolicy;
  /** The values that hooks and tools share. */
  readonly values: Values;
  /** The usage of all model calls that this run and its subagents have made so far. */
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

/**
 * Defines a tool whose parameters are a zod object. A returned string becomes its output. Throws
 * `config_invalid` for a zod 3 schema.
 */
export function defineTool<S extends z.ZodObject>(definition: Definition<S>): Tool {
  const { name, description, parameters, annotations = {}, describeCall } = definition;
  const wrong = zodFault(parameters);
  if (wrong) throw new AppError("config_invalid", `tool \`${name}\`: parameters ${wrong}.`);
  return {
    name,
    description,
    annotations,
    parameters: jsonSchemaOf(parameters),
    // The cast is safe here and below, because `args` always come from `parse`.
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

/** Converts each schema once, because most tools are defined again for every run. */
function jsonSchemaOf(parameters: z.ZodObject): Tool["parameters"] {
  const known = jsonSchemas.get(parameters);
  if (known) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  jsonSchemas.set(parameters, schema);
  return schema;
}

// Values that the hooks and tools of one run share. They are never stored.

/** The key of a shared value. Keys are compared by identity, so two keys with the same name are different. */
export interface ValueKey<T> {
  readonly name: string;
  /** Never set: it only carries the type. */
  readonly type?: T;
}

export const valueKey = <T>(name: string): ValueKey<T> => ({ name });

export interface Values {
  get<T>(key: ValueKey<T>): T | undefined;
  set<T>(key: ValueKey<T>, value: T): void;
  has(key: ValueKey<unknown>): boolean;
  /** Deletes a value. Returns false when it does not exist. */
  delete(key: ValueKey<unknown>): boolean;
}

export function createValues(): Values {
  const values = new Map<ValueKey<unknown>, unknown>();
  return {
    // The cast is safe, because `set` takes a value of the key's type.
    get: <T>(key: ValueKey<T>) => values.get(key) as T | undefined,
    set: (key, value) => void values.set(key, value),
    has: (key) => values.has(key),
    delete: (key) => values.delete(key),
  };
}

// The port to a trace recorder. Without a recorder, tracing does nothing.

export interface Span {
  set(key: string, value: unknown): Span;
  /** Records an event now, within the span. */
  recordEvent(name: string, attributes?: Readonly<Record<string, unknown>>): Span;
  /** Ends the span and records its duration. Call it exactly once. */
  end(): void;
}

export interface TraceRecorder {
  /** Starts a span of the run `attributes.run_id` now. */
  startSpan(name: string, attributes: Readonly<Record<string, unknown>>): Span;
  /** Records an event now in the run `attributes.run_id`, outside any span. */
  recordEvent(name: string, attributes: Readonly<Record<string, unknown>>): void;
}

/** The trace of one run, for its hooks and tools. Records include the run's ids. */
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
 * Returns undefined for a zod 4 schema, or a clause that describes the problem. Programs and plugins may come
 * with their own copy of zod in another major version.
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
