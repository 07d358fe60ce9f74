// A message in Slack that grows while the agent writes. It is streamed, or edited if Slack refuses to stream.

import { setTimeout as pause } from "node:timers/promises";
import type { Said } from "./payloads.ts";
import { type CallSlack, SlackRefusal } from "./web-api.ts";

export interface LiveMessage {
  /** Adds more of the answer, which soon appears. */
  add(text: string): void;
  /** Resolves once Slack has everything. A later `add` starts another message. Throws the first error of a call. */
  end(): Promise<void>;
}

/** Slack accepts 12,000 characters in a message, and escaped characters count more than once. */
const LONGEST = 8_000;

/** A message that can still grow. */
interface Growing {
  append(text: string): Promise<void>;
  stop(): Promise<void>;
}

/** `everyMs`: the pause between two calls. Slack allows about one per second. */
export function liveMessage(call: CallSlack, place: Said, everyMs: number): LiveMessage {
  let waiting = "";
  let growing: Growing | undefined;
  let length = 0;
  let flushing: Promise<void> | undefined;
  let isEnding = false;

  async function flush(): Promise<void> {
    for (let part = takePart(); part !== ""; part = takePart()) {
      await write(escaped(part));
      if (!isEnding) await pause(everyMs);
    }
  }

  function takePart(): string {
    // Slack refuses a message that contains only white space.
    if (!growing) waiting = waiting.trimStart();
    const cut = waiting.slice(0, LONGEST);
    const isLast = isEnding && cut.length === waiting.length;
    // The next character decides whether a `<` is escaped, and half of a surrogate pair is not a character.
    const part = isLast ? cut : cut.replace(/[<\uD800-\uDBFF]$/, "");
    waiting = waiting.slice(part.length);
    return part;
  }

  async function write(part: string): Promise<void> {
    if (length + part.length > LONGEST) await stop();
    try {
      length += part.length;
      if (growing) return await growing.append(part);
    } catch (error) {
      // Slack has ended the stream, or a user has deleted the message.
      unlessRefused(error);
    }
    length = part.length;
    growing = await streamed(call, place, part).catch((error: unknown) => {
      unlessRefused(error);
      return edited(call, place, part);
    });
  }

  async function stop(): Promise<void> {
    const last = growing;
    growing = undefined;
    length = 0;
    await last?.stop().catch(unlessRefused);
  }

  return {
    add(text) {
      if (text === "") return;
      waiting += text;
      flushing ??= flush().finally(() => {
        flushing = undefined;
      });
      // `end` reports it.
      flushing.catch(() => {});
    },
    async end() {
      isEnding = true;
      try {
        await flushing;
        await flush();
        await stop();
      } finally {
        isEnding = false;
        waiting = "";
      }
    },
  };
}

function unlessRefused(error: unknown): void {
  if (!(error instanceof SlackRefusal)) throw error;
}

/** Text from a model must not notify a channel or a person. */
const escaped = (text: string) => text.replaceAll(/<(?=[!@#])/g, "&lt;");

async function streamed(call: CallSlack, place: Said, text: string): Promise<Growing> {
  const { channel, thread_ts, user, team } = place;
  const { ts } = await call("chat.startStream", {
    ...{ channel, thread_ts, markdown_text: text },
    ...{ recipient_user_id: user, recipient_team_id: team },
  });
  return {
    append: async (more) => void (await call("chat.appendStream", { channel, ts, markdown_text: more })),
    stop: async () => void (await call("chat.stopStream", { channel, ts })),
  };
}

async function edited(call: CallSlack, { channel, thread_ts }: Said, text: string): Promise<Growing> {
  let whole = text;
  const { ts } = await call("chat.postMessage", { channel, thread_ts, markdown_text: whole });
  return {
    async append(more) {
      whole += more;
      await call("chat.update", { channel, ts, markdown_text: whole });
    },
    stop: async () => {},
  };
}
