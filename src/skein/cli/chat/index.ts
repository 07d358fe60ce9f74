// `skein chat`: talks to a running server, interactively or with a single message.

import { AppError } from "../../../agent/core/errors.ts";
import { newThreadId } from "../../../agent/core/new-ids.ts";
import { createClient } from "../../../client/client.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { visible } from "../paint.ts";
import { pipedText } from "../piped-text.ts";
import { t } from "../texts.ts";
import { sendOnce } from "./once.ts";
import { chatAtTerminal } from "./session.ts";
import { retrying } from "./turn.ts";

export interface ChatOptions {
  readonly url: string;
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly thread?: string | undefined;
  /** An API key or another bearer token. */
  readonly key?: string | undefined;
  /**
   * The only message. Piped input is appended to it. Without this option, piped input is the message. Without either,
   * the command asks the user for messages.
   */
  readonly message?: string | undefined;
  /** Prints the events of the message's run instead of the answer. */
  readonly json?: boolean | undefined;
  /** Sends the only message in a new thread, which the server deletes after the run. */
  readonly temporary?: boolean | undefined;
}

/**
 * Returns the exit code when the user leaves or the turn has ended. Throws `invalid_request` for invalid use.
 *
 * - 0: answered
 * - 1: failed
 * - 2: invalid use
 * - 3: the run waits for an answer that no one can give here
 * - 130: stopped by Ctrl-C
 */
export async function chat(options: ChatOptions): Promise<number> {
  const { url, agent, model, thread = newThreadId(), key, json = false, temporary = false } = options;
  if (!(await isThere(url))) {
    process.stderr.write(`${t().chat.noServer(visible(url))}\n`);
    return 1;
  }
  const input = await onlyMessage(options.message);
  if (input === undefined && json) throw new AppError("invalid_request", t().chat.jsonNeedsMessage);
  if (temporary && (input === undefined || options.thread !== undefined))
    throw new AppError("invalid_request", t().chat.temporaryNeedsMessage);
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const onRetry = retrying((line) => void process.stderr.write(`\n${visible(line)}\n`));
  const client = createClient({ baseUrl: url, headers, onRetry });
  const connected = { client, url, thread, run: omitUndefined({ agent, model }) };
  if (input !== undefined) return sendOnce({ ...connected, input, json, isTemporary: temporary });
  await chatAtTerminal(connected);
  return 0;
}

/** Returns `undefined` at a terminal if the command line contains no message. */
async function onlyMessage(message: string | undefined): Promise<string | undefined> {
  const piped = await pipedText();
  if (message === undefined && piped === undefined && process.stdin.isTTY) return undefined;
  const input = [message, piped].filter((text) => text?.trim()).join("\n\n");
  if (input === "") throw new AppError("invalid_request", t().chat.emptyMessage);
  return input;
}

async function isThere(url: string): Promise<boolean> {
  try {
    const { status } = await fetch(`${url.replace(/\/+$/, "")}/health`, {
      signal: AbortSignal.timeout(5_000),
    });
    return status === 200;
  } catch {
    return false;
  }
}
