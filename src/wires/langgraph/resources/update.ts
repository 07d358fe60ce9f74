// Updates a thread's messages according to the rules of LangGraph's `add_messages`. A message with a known id replaces
// the stored one, and other messages are appended. A removal deletes a message.

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import {
  type AssistantMessage,
  assistantMessages,
  type Message,
  toolMessages,
} from "../../../agent/core/message.ts";
import { awaitedCalls, replaceMessages, rewritten } from "../../../engine/runs/rewrite.ts";
import { boundedList, boundedMap } from "../../../lib/bounded-schemas.ts";
import { check, sentence } from "../../../lib/check.ts";
import { mapInTicks } from "../../../lib/ticks.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import { messageIn, Pair, SentMessage, sentMessages } from "../input.ts";
import { checkpointOf } from "./checkpoints.ts";
import type { WholeThread } from "./states.ts";

const Removal = z.looseObject({ type: z.literal("remove"), id: z.string().max(256) });
const SentEntry = z.union([z.string(), Removal, Pair, SentMessage]);
type SentEntry = z.infer<typeof SentEntry>;
const Update = z.union([boundedList(SentEntry, 10_000), SentEntry.transform((each) => [each])]);

export const Supersteps = boundedList(
  z.looseObject({
    updates: boundedList(z.looseObject({ values: boundedMap(z.string(), z.unknown(), 64).nullish() }), 100),
  }),
  1000,
);

/** The id of a removal that deletes all previous messages. */
const REMOVE_ALL = "__remove_all__";

/** The maximum time to wait for the run that changes the thread, in ms. The run may have to wait for a free slot. */
const WAIT_MS = 10_000;

interface UpdateBody {
  readonly messages: unknown;
  /** The checkpoint after which the messages are written. Default: the end of the thread. */
  readonly checkpoint_id: string | undefined;
}

/** Returns the messages that a new thread's supersteps write, in order. Throws `invalid_request` for other values. */
export async function pastOf(
  services: Pick<RouteServices, "refusesSystemMessages">,
  owner: Owner,
  supersteps: z.infer<typeof Supersteps>,
): Promise<Message[]> {
  const updates = supersteps.flatMap((step) => step.updates);
  const sent = updates.flatMap(({ values }) => {
    const { messages = [], ...others } = values ?? {};
    const [other] = Object.keys(others);
    if (other === undefined) return messages;
    throw new AppError(
      "invalid_request",
      `supersteps: clients cannot write \`${other}\`. Send \`messages\`.`,
    );
  });
  return (await written(services, owner, [], sent)).theirs;
}

/** Returns the messages after a client's update, and the new ones among them. Throws `invalid_request`. */
async function written(
  { refusesSystemMessages }: Pick<RouteServices, "refusesSystemMessages">,
  { tenant }: Owner,
  before: readonly Message[],
  update: unknown,
): Promise<{ readonly theirs: Message[]; readonly added: Message[] }> {
  const read = check(Update, update);
  if ("faults" in read) throw refused(read.faults.map((fault) => sentence(fault)).join(", "));
  const writing = held(before);
  const made = await mapInTicks(tenant, read.value, (sent) => write(writing, sent));
  const added = made.filter((each) => each !== undefined);
  if (refusesSystemMessages && added.some(({ role }) => role === "system"))
    throw refused("this server accepts no `system` messages from users. Use `human`.");
  return { theirs: [...writing.messages.values()], added };
}

/** Throws `invalid_request`, `not_found`, `thread_busy` or `limit_exceeded`. */
export async function writeMessages(
  services: RouteServices,
  owner: Owner,
  { thread, messages: ours, open }: WholeThread,
  { messages, checkpoint_id }: UpdateBody,
): Promise<void> {
  const base = checkpoint_id === undefined ? ours : ours.slice(0, countAt(ours, checkpoint_id));
  const { theirs, added } = await written(services, owner, base, messages);
  const results = new Set(toolMessages(added).map(({ tool_call_id }) => tool_call_id));
  const awaited = awaitedCalls(thread, ours, open);
  const forged = results.values().find((id) => awaited.has(id));
  if (forged !== undefined)
    throw refused(`clients cannot write the result of \`${forged}\`, a tool of the server.`);
  const waiting = open.find(({ kind, call_id }) => kind !== "tool" || !results.has(call_id));
  if (waiting)
    throw new AppError(
      "thread_busy",
      `Thread \`${thread.id}\` waits for an answer to \`${waiting.name}\`. Resume it first, or end it with \`as_node: "__end__"\`.`,
    );
  const { runs, streams } = services;
  const run = await replaceMessages(runs, owner, thread, { ours, theirs });
  // The next request may reach any replica and must see the change.
  const signal = AbortSignal.any([streams.closing, AbortSignal.timeout(WAIT_MS)]);
  if (run) await rewritten(runs, owner, run, signal);
}

const refused = (message: string) => new AppError("invalid_request", `values.messages: ${message}`);

function countAt(messages: readonly Message[], id: string): number {
  const place = checkpointOf(messages, id);
  if (place) return place.count;
  throw new AppError(
    "not_found",
    `This thread has no checkpoint \`${id}\`. The thread may have been rewritten.`,
  );
}

/** Returns the messages by id, in order, and the ids of their calls. */
const held = (messages: readonly Message[]) => ({
  messages: new Map(messages.map((each) => [each.id, each])),
  calls: new Set(assistantMessages(messages).flatMap(callIds)),
});

const callIds = ({ tool_calls = [] }: AssistantMessage) => tool_calls.map(({ id }) => id);

/** Returns the written message, or undefined for a removal. */
function write({ messages, calls }: ReturnType<typeof held>, sent: SentEntry): Message | undefined {
  const removal = Removal.safeParse(sent).data;
  if (removal) {
    if (removal.id === REMOVE_ALL) messages.clear();
    else if (!messages.delete(removal.id))
      throw refused(`the thread has no message \`${removal.id}\` to remove.`);
    return undefined;
  }
  const [message] = sentMessages({ input: { messages: [sent as SentMessage] } }).map(messageIn);
  if (!message) return undefined;
  if (message.role === "tool" && !calls.has(message.tool_call_id))
    throw refused(`the thread has no call \`${message.tool_call_id}\` for this result.`);
  if (message.role === "assistant") for (const id of callIds(message)) calls.add(id);
  messages.set(message.id, message);
  return message;
}
