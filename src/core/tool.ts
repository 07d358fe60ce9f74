// Tools: what a model may call.

import { z } from "zod";
import type { Content, ToolCall } from "./message.ts";
import type { Run } from "./run.ts";
import { type Eventually, toStream } from "./stream.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What may be assumed about a tool without running it. */
export interface ToolAnnotations {
  /** Changes nothing: may be repeated freely. */
  readonly readOnly?: boolean;
  /** A second execution of the same call does no harm. What is neither is never run twice after a crash. */
  readonly idempotent?: boolean;
  readonly destructive?: boolean;
  readonly category?: "read" | "write" | "execute" | "network" | "plan";
  /** Waits for what has limits of its own: it is not held to the time that a call may take. */
  readonly waits?: boolean;
  /** Asks for permission unless a rule says otherwise. Default true. */
  readonly requiresPermission?: boolean;
}

/**
 * The outcome of a call. `done` with `error` is a failure that the model should see; with `endsRun` it is the run's last
 * word, and the model is not asked again.
 * `interrupted` means "not yet": the run is suspended and the call stays unanswered.
 */
export type ToolResult =
  | { readonly status: "done"; readonly output: Content; readonly error?: string; readonly endsRun?: true }
  | { readonly status: "interrupted" };

export type DoneResult = Extract<ToolResult, { status: "done" }>;

export const done = (output: Content): DoneResult => ({ status: "done", output });
export const failed = (error: string, output: Content = ""): DoneResult => ({
  status: "done",
  output,
  error,
});
export const interrupted = (): ToolResult => ({ status: "interrupted" });

/**
 * A tool owns what it needs (given to its constructor). What the model must not see, such as owner, thread,
 * signal and backend, comes in `run`; `call.id` is the idempotency key.
 */
export interface Tool {
  readonly name: string;
  /** Product text: the model reads it. */
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** What a call would do, as a phrase for a person who is asked about it: "run `make`". `args` are `parse`d. */
  describeCall?(args: unknown): string;
  /** The arguments as `execute` wants them, or one sentence for each thing wrong with them. */
  parse(args: Record<string, unknown>): { args: unknown } | { faults: string[] };
  /** May throw: the message becomes the call's error result. Must honour `run.signal`. */
  execute(args: unknown, call: ToolCall, run: Run): Eventually<ToolResult>;
}

interface Definition<S extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly parameters: S;
  readonly annotations?: ToolAnnotations;
  describeCall?(args: z.output<S>): string;
  execute(args: z.output<S>, call: ToolCall, run: Run): Eventually<ToolResult | string>;
}

/** A tool whose parameters are a zod object. A returned string is its output. */
export function defineTool<S extends z.ZodObject>(definition: Definition<S>): Tool {
  const { name, description, parameters, annotations = {}, describeCall } = definition;
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  return {
    name,
    description,
    annotations,
    parameters: schema,
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
    async *execute(args, call, run) {
      const result = yield* toStream(definition.execute(args as z.output<S>, call, run));
      return typeof result === "string" ? done(result) : result;
    },
  };
}
