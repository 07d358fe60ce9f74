// What a thread holds when it is opened: its last messages.

import type { Message } from "../../client/client.ts";
import { textOf } from "../../core/message.ts";
import type { Paint } from "../paint.ts";
import { callLine, renderer, resultLine } from "../render.ts";
import type { Connected } from "./turn.ts";

/** Messages that are shown, and held while the pages are read. */
const SHOWN = 20;

export interface Opened {
  readonly messages: readonly Message[];
  /** How many came before. */
  readonly earlier: number;
}

/** The last messages. With `isBusy` those of the run in progress are left out, except the one that began it. */
export async function lastMessages(
  { client, thread }: Pick<Connected, "client" | "thread">,
  { isBusy }: { readonly isBusy: boolean },
  signal: AbortSignal,
): Promise<Opened> {
  let messages: Message[] = [];
  let count = 0;
  for (let after: string | undefined; ; ) {
    const page = await client.threads.messages(thread, after === undefined ? {} : { after }, signal);
    count += page.items.length;
    messages = [...messages, ...page.items].slice(-SHOWN);
    after = page.next_cursor;
    if (after === undefined) break;
  }
  const newest = messages.findLastIndex(({ role }) => role === "user");
  const earlier = count - messages.length;
  return { earlier, messages: isBusy && newest >= 0 ? messages.slice(0, newest + 1) : messages };
}

/** The messages as a chat has shown them. */
export function shownHistory({ messages, earlier }: Opened, paint: Paint): string {
  const render = renderer(paint);
  const spoken = (delta: string) =>
    render({ event: "on_chat_model_stream", data: { delta } }) +
    render({ event: "on_chat_model_end", name: "", data: { message_id: "" } });
  const shown = messages.map((message) => {
    if (message.role === "user") return `\n${paint("bold", `> ${textOf(message.content)}`)}\n`;
    if (message.role === "tool") return resultLine(message, paint);
    if (message.role === "system") return "";
    const calls = (message.tool_calls ?? []).map((call) => callLine(call, paint));
    return (message.content === "" ? "" : spoken(textOf(message.content))) + calls.join("");
  });
  return (earlier > 0 ? paint("dim", `(${earlier} earlier messages)\n`) : "") + shown.join("");
}
