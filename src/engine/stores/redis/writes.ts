// Encodes the writes of a decision for `commit`, and the effects of events for the event scripts.

import type { NewThread } from "../../../agent/core/stores.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { type EventWrite, messagesIn } from "../event-writes.ts";
import type { StagedMessages, Write } from "../thread-head.ts";
import { stagedKeys } from "./keys.ts";
import { type FixedRunFields, ownerText, patchName } from "./records.ts";
import { argsOfRows } from "./row-format.ts";

/** Lua can pass only a few thousand arguments to a function. The number is even so that pairs stay together. */
const CHUNK = 1000;

/** Returns a name, the number of its arguments, and the arguments. A write can result in several of these sequences. */
export function argsOfWrite(write: Write, owner: Owner, tag: string): string[] {
  switch (write.write) {
    case "create_thread":
      return [...argsOfStaged(write.staged, tag), ...argsOfThread(write.thread, owner)];
    case "add_run": {
      const { id, agent, metadata, resumes, request } = write.run;
      const made: FixedRunFields = { agent, metadata, ...(resumes === undefined ? {} : { resumes }) };
      const [title] = described(write);
      return call("add_run", id, agent, JSON.stringify(made), JSON.stringify(request), title);
    }
    case "queue_run":
      return call("queue_run", write.run, flag(write.front));
    case "hold_run":
      return call("hold_run", write.run, String(write.epoch), String(write.attempt), flag(write.begins));
    case "stop_run":
      return call("stop_run", write.mode);
    case "cancel_run":
      return call("cancel_run", write.run, JSON.stringify(write.ending), ...argsOfRows(write.pending));
    case "leave_message":
      return call("leave_message", write.message.id, JSON.stringify(write.message));
    case "rewind":
      return call("rewind", write.message);
    case "describe_thread":
      return [
        ...call("describe_thread", ...described(write)),
        ...(write.forget ?? []).flatMap((slot) => call("forget_slot", slot, patchName(slot))),
      ];
    case "put_call": {
      const { state, reply, ...opened } = write.call;
      const { call_id, expires_at, token_hash } = opened;
      const kept = [state, String(Date.parse(expires_at)), token_hash, JSON.stringify(opened)];
      return call("put_call", call_id, ...kept, reply === undefined ? "" : JSON.stringify(reply));
    }
    case "drop_call":
      return call("drop_call", write.call_id);
    case "renew_run":
    case "release_run":
    case "excuse_run":
    case "clear_thread":
    case "delete_thread":
      return call(write.write);
  }
}

/** This write comes first, because it fails if the staged messages are missing. */
function argsOfStaged(staged: StagedMessages | undefined, tag: string): string[] {
  if (!staged?.count) return [];
  const keys = stagedKeys(tag, staged.token);
  return call("adopt_staged", keys.staged, keys.staged_ids, String(staged.bytes));
}

function argsOfThread(thread: NewThread, owner: Owner): string[] {
  const { agent = "", parent, forked_from, messages = [], state = {} } = thread;
  const [title, metadata] = described(thread);
  const byId = new Map<string, string>();
  for (const message of messages) if (!byId.has(message.id)) byId.set(message.id, JSON.stringify(message));
  const places = [...byId.keys()].flatMap((id, place) => [id, String(place)]);
  const slots = Object.entries(state).filter(([, value]) => value !== undefined);
  const origins = [parent, forked_from].map((origin) => (origin ? JSON.stringify(origin) : ""));
  const about = [ownerText(owner), agent, title, metadata, ...origins];
  return [
    ...call("create_thread", ...about),
    ...inChunks("add_messages", [...byId.values()]),
    ...inChunks("add_ids", places),
    ...inChunks(
      "set_slots",
      slots.flatMap(([slot, value]) => [slot, JSON.stringify(value)]),
    ),
  ];
}

/** Encodes an absent value as an empty text. */
const described = ({ title, metadata }: ThreadDescription): [title: string, metadata: string] => [
  title === undefined ? "" : JSON.stringify(title),
  metadata ? JSON.stringify(metadata) : "",
];

interface ThreadDescription {
  readonly title?: string | undefined;
  readonly metadata?: NewThread["metadata"] | undefined;
}

const flag = (is: boolean) => (is ? "1" : "");

const call = (name: string, ...args: readonly string[]) => [name, String(args.length), ...args];

function inChunks(name: string, args: readonly string[]): string[] {
  const calls: string[] = [];
  for (let from = 0; from < args.length; from += CHUNK)
    calls.push(...call(name, ...args.slice(from, from + CHUNK)));
  return calls;
}

export interface ChangeArguments {
  /** The number of messages. */
  readonly added: number;
  /** The messages, each an id and a text; then the slots: the operation, the slot, the name of its patches, and the operand. */
  readonly args: readonly string[];
}

/** Encodes writes for the event scripts. */
export function changesOf(writes: readonly EventWrite[]): ChangeArguments {
  const messages = messagesIn(writes).flatMap(({ id, text }) => [id, text]);
  return { added: messages.length / 2, args: [...messages, ...writes.flatMap(argsOfSlot)] };
}

function argsOfSlot(write: EventWrite): string[] {
  if (write.write === "add_message" || write.write === "end_run") return [];
  const { key } = write;
  const name = patchName(key);
  if (write.write === "delete_state") return ["delete", key, name, ""];
  if (write.write === "set_state") return ["set", key, name, JSON.stringify(write.value)];
  const members = Object.entries(write.patch).flatMap(([member, each]) => [member, JSON.stringify(each)]);
  return ["patch", key, name, String(members.length / 2), ...members];
}
