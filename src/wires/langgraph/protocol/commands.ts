// The commands that the protocol's clients send. A refused command gets a response with an error, not an HTTP error.

import { z } from "zod";
import { AppError, type ErrorCode } from "../../../agent/core/errors.ts";
import { notFound, steerRun } from "../../../engine/runs/control.ts";
import type { Caller } from "../../../engine/runs/prepare-turn.ts";
import { openOn } from "../../../engine/runs/start.ts";
import { boundedList } from "../../../lib/bounded-schemas.ts";
import { check, sentence } from "../../../lib/check.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import { interruptGroups, valuesOf } from "../history.ts";
import { messageIn, RunBody, SentMessage } from "../input.ts";
import { prepare } from "../prepare.ts";
import { headOf } from "../resources/checkpoints.ts";

export const ProtocolCommand = z.looseObject({
  id: z.int().min(0),
  method: z.string().max(128).describe("run.start, input.respond, input.inject or state.get"),
  params: z.record(z.string(), z.unknown()).nullish(),
});
export type ProtocolCommand = z.infer<typeof ProtocolCommand>;

export interface CommandContext {
  readonly services: RouteServices;
  readonly caller: Caller;
  readonly threadId: string;
}

type Params = Readonly<Record<string, unknown>>;
type Result = Readonly<Record<string, unknown>>;
type Carry = (context: CommandContext, params: Params) => Promise<Result>;

const METHODS: Readonly<Record<string, Carry>> = {
  "run.start": start,
  "input.respond": respond,
  "input.inject": inject,
  "state.get": getState,
};

/** The protocol's methods that this server does not support. */
const NOT_SUPPORTED: ReadonlySet<string> = new Set([
  ...["state.listCheckpoints", "state.fork", "agent.getTree"],
  ...["subscription.subscribe", "subscription.unsubscribe", "subscription.reconnect"],
]);

/**
 * Executes a command. Throws errors that should become HTTP errors, because a client retries the command if the server
 * is unavailable.
 */
export async function carryOut(
  context: CommandContext,
  { method, params }: ProtocolCommand,
): Promise<{ type: "success"; result: Result } | { type: "error"; error: string; message: string }> {
  const carry = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (!carry) {
    const error = NOT_SUPPORTED.has(method) ? "not_supported" : "unknown_command";
    const names = Object.keys(METHODS).join(", ");
    return {
      type: "error",
      error,
      message: `This server has no command \`${method}\`. Use one of: ${names}.`,
    };
  }
  try {
    return { type: "success", result: await carry(context, params ?? {}) };
  } catch (error) {
    if (!(error instanceof AppError) || PASSED_ON.has(error.code)) throw error;
    const known = ERRORS[error.code];
    const name = typeof known === "string" ? known : (known?.[method] ?? "unknown_error");
    return { type: "error", error: name, message: error.message };
  }
}

const PASSED_ON: ReadonlySet<ErrorCode> = new Set(["unavailable", "shutting_down", "internal"]);

/** The protocol's names for Skein's codes, by command where they differ. */
const ERRORS: Partial<Record<ErrorCode, string | Readonly<Record<string, string>>>> = {
  invalid_request: "invalid_argument",
  forbidden: "permission_denied",
  not_found: {
    "run.start": "invalid_argument",
    "input.respond": "no_such_interrupt",
    "input.inject": "no_such_run",
    "state.get": "no_such_thread",
  },
  interrupt_closed: "no_such_interrupt",
  run_not_active: { "input.respond": "no_such_interrupt", "input.inject": "no_such_run" },
};

const Start = z.looseObject({ multitaskStrategy: z.unknown().optional() });

/** Starts a run. The first run of a thread creates the thread. */
async function start({ services, caller, threadId }: CommandContext, params: Params): Promise<Result> {
  const { multitaskStrategy, ...rest } = checked(Start, params);
  const sent = { multitask_strategy: multitaskStrategy, ...rest, if_not_exists: "create" };
  const starter = await prepare(services, caller, threadId, checked(RunBody, sent));
  return { run_id: (await starter()).id };
}

const Response = z.looseObject({ interrupt_id: z.string().max(256), response: z.unknown() });
const Respond = z.union([z.looseObject({ responses: boundedList(Response, 256).min(1) }), Response]);

async function respond({ services, caller, threadId }: CommandContext, params: Params): Promise<Result> {
  const { threads } = services.stores;
  const respond = checked(Respond, params);
  const responses =
    "responses" in respond ? z.array(Response).parse(respond.responses) : [Response.parse(respond)];
  const open = new Set(interruptGroups(await openOn(threads, caller.owner, threadId)).map(({ id }) => id));
  const closed = responses.find(({ interrupt_id }) => !open.has(interrupt_id));
  if (closed)
    throw new AppError(
      "interrupt_closed",
      `Interrupt \`${closed.interrupt_id}\` is not open: it was answered, or its run has ended.`,
    );
  const thread = await threads.get(caller.owner, threadId);
  const body = checked(RunBody, {
    assistant_id: thread?.agent,
    command: { resume: Object.fromEntries(responses.map((each) => [each.interrupt_id, each.response])) },
    config: params.config,
    metadata: params.metadata,
  });
  const starter = await prepare(services, caller, threadId, body);
  return { run_id: (await starter()).id };
}

const Inject = z.looseObject({ message: SentMessage });

async function inject({ services, caller, threadId }: CommandContext, params: Params): Promise<Result> {
  const { message } = checked(Inject, params);
  const { owner } = caller;
  const active = await services.stores.runs.active(owner, threadId);
  if (!active) throw new AppError("run_not_active", "This thread has no active run. Start one instead.");
  const said = messageIn(message);
  if (said.role !== "user")
    throw new AppError(
      "invalid_request",
      "params: message.role must be `user`, because only user messages can steer a run.",
    );
  await steerRun(services.runs, { owner, thread_id: threadId, run_id: active.id }, said);
  return {};
}

const Keys = z.looseObject({ keys: z.array(z.string().max(128)).max(64).optional() });

async function getState({ services, caller, threadId }: CommandContext, params: Params): Promise<Result> {
  const { keys } = checked(Keys, params);
  const { threads } = services.stores;
  const { owner } = caller;
  if (!(await threads.get(owner, threadId))) throw notFound("thread", threadId);
  const [messages, state] = await Promise.all([
    threads.messages(owner, threadId),
    threads.state(owner, threadId),
  ]);
  const values = Object.entries(valuesOf(messages, state)).filter(([key]) => !keys || keys.includes(key));
  return { values: Object.fromEntries(values), checkpoint: { id: headOf(messages).id } };
}

function checked<S extends z.ZodType>(schema: S, params: unknown): z.output<S> {
  const result = check(schema, params);
  if ("value" in result) return result.value;
  throw new AppError(
    "invalid_request",
    `params: ${result.faults.map((fault) => sentence(fault)).join(", ")}.`,
  );
}
