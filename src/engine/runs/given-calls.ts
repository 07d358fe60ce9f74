// Tool calls with which a user starts a run. They take the place of a model's answer: the run executes them first, then calls
// its model.

import { readArguments } from "../../agent/core/call-arguments.ts";
import { AppError } from "../../agent/core/errors.ts";
import { type AssistantMessage, assistantMessage, type ToolCall } from "../../agent/core/message.ts";
import { newCallId } from "../../agent/core/new-ids.ts";
import { type ClientTool, Lineage } from "../../agent/core/records.ts";
import type { Owner } from "../../protocol/ids.ts";
import { offerOf } from "./offered-tools.ts";
import { withBackend } from "./prepare-run.ts";
import type { RunServices } from "./services.ts";

export type GivenCall = Pick<ToolCall, "name" | "args">;

/** The maximum number of characters in the arguments of all calls of a run, as JSON. */
const MAX_CHARS = 1_000_000;
/** The maximum number of tool names in an error. */
const MAX_NAMES = 100;

/** Returns a message that contains the calls. */
export const messageWith = (calls: readonly GivenCall[]): AssistantMessage => ({
  ...assistantMessage("", ...calls.map(({ name, args }) => ({ id: newCallId(), name, args }))),
  by_user: true,
});

/** The context in which the calls are made. */
interface CallContext {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly agent: string;
  /** The run's client tools. */
  readonly tools: readonly ClientTool[];
}

/** Throws `invalid_request` if the agent does not have a tool, or if a tool does not accept its arguments. */
export async function checkCalls(
  services: RunServices,
  { owner, thread_id, agent, tools }: CallContext,
  calls: readonly GivenCall[],
): Promise<void> {
  checkArguments(calls);
  const { lineage } = await services.stores.threads.state(owner, thread_id);
  const definition = withBackend(services.agents, agent, Lineage.safeParse(lineage).data);
  const offer = await offerOf(services, owner, definition);
  const names = [...offer.tools, ...tools].map(({ name }) => name);
  // If a tool is temporarily absent, the run itself reports it.
  const isKnown = (name: string) => names.includes(name) || offer.absence?.(name) !== undefined;
  const at = calls.findIndex(({ name }) => !isKnown(name));
  if (at < 0) return;
  const more = names.length > MAX_NAMES ? `, and ${names.length - MAX_NAMES} more` : "";
  const has = names.length > 0 ? `It has: ${names.slice(0, MAX_NAMES).join(", ")}${more}.` : "It has none.";
  throw refused(`${at}.name`, `agent \`${agent}\` has no tool \`${calls[at]?.name}\`. ${has}`);
}

function checkArguments(calls: readonly GivenCall[]): void {
  let length = 0;
  for (const [at, { args }] of calls.entries()) {
    const json = JSON.stringify(args);
    const read = readArguments(json);
    if ("fault" in read) throw refused(`${at}.args`, `they ${read.fault}.`);
    length += json.length;
  }
  if (length <= MAX_CHARS) return;
  const message = `calls: their arguments have ${length} characters of JSON; the maximum is ${MAX_CHARS}.`;
  throw new AppError("invalid_request", message, { details: { limit: MAX_CHARS, characters: length } });
}

function refused(place: string, message: string): AppError {
  const path = `calls.${place}`;
  return new AppError("invalid_request", `${path}: ${message}`, { details: { issues: [{ path, message }] } });
}
