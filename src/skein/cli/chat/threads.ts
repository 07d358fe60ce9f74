// `/threads`: lists the most recent threads, or opens one.

import { ProblemError, type Thread } from "../../../client/client.ts";
import { visible } from "../paint.ts";
import { t } from "../texts.ts";
import type { ChatChange, ChatCommandContext } from "./command.ts";

const LISTED = 20;
const LONGEST_TITLE = 60;

/** Opens a thread by id or by its number in the last list. Throws the server's error. */
export async function chooseThread(argument: string, context: ChatCommandContext): Promise<ChatChange> {
  if (argument === "") return { listed: await list(context) };
  if (!/^\d{1,3}$/.test(argument)) {
    const { id } = await context.client.threads.get(argument, context.signal);
    return { thread: id };
  }
  const listed = context.listed.length > 0 ? context.listed : await list(context);
  const chosen = listed[Number(argument) - 1];
  if (chosen) return { listed, thread: chosen.id };
  context.write(`${t().chat.noNumber(argument)}\n`);
  return { listed };
}

/**
 * Returns `undefined` if the thread does not exist, because its first message creates it. Throws any other error from
 * the server.
 */
export async function threadIfThere(
  { client, thread }: Pick<ChatCommandContext, "client" | "thread">,
  signal: AbortSignal,
): Promise<Thread | undefined> {
  try {
    return await client.threads.get(thread, signal);
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined;
    throw error;
  }
}

async function list({
  client,
  thread,
  paint,
  write,
  signal,
}: ChatCommandContext): Promise<readonly Thread[]> {
  const { items } = await client.threads.list({ limit: LISTED }, signal);
  if (items.length === 0) write(`${t().chat.noThreads}\n`);
  for (const [index, each] of items.entries()) {
    const mark = each.id === thread ? "*" : " ";
    const state = t().chat.states[each.status];
    const shown = state && `  ${paint("yellow", state)}`;
    write(`${mark}${String(index + 1).padStart(3)}  ${titleOf(each)}${shown}  ${paint("dim", each.id)}\n`);
  }
  return items;
}

function titleOf({ title }: Thread): string {
  const line = visible(title || t().chat.noTitle).replaceAll(/\s+/g, " ");
  return line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE - 1)}…` : line;
}
