// Sends one message and prints its answer, for scripts and pipes. The answer goes to stdout, and everything else goes
// to stderr.

import { createInterface } from "node:readline";
import { textOf } from "../../../agent/core/message.ts";
import type { Answer, Interrupt, StreamEvent } from "../../../client/client.ts";
import { answersTo, asked, askingAt } from "../answering.ts";
import { paintFor, visible } from "../paint.ts";
import { isSpeech, renderer } from "../render.ts";
import { onSignals } from "../signals.ts";
import { t } from "../texts.ts";
import { type ConnectedThread, runTurn, type Start, sending, sendingOnce, type TurnEnding } from "./turn.ts";

const CODES: Readonly<Record<TurnEnding, number>> = {
  answered: 0,
  failed: 1,
  refused: 2,
  waiting: 3,
  stopped: 130,
};

export interface SendOnceOptions extends ConnectedThread {
  readonly input: string;
  /** Prints the events, one per line, instead of the answer. */
  readonly json: boolean;
  /** Sends the message in a new thread, which the server deletes after the run. */
  readonly isTemporary: boolean;
}

const toStderr = (text: string) => void process.stderr.write(text);
const paint = paintFor(process.stderr);

/** Returns the exit code once the turn has ended. */
export async function sendOnce({ input, json, isTemporary, ...connected }: SendOnceOptions): Promise<number> {
  const { client } = connected;
  let thread = isTemporary ? undefined : connected.thread;
  const send: Start = (signal, options) => {
    if (!isTemporary) return sending(connected, input)(signal, options);
    const onStarted = (runId: string, threadId: string) => {
      thread = threadId;
      options.onStarted?.(runId, threadId);
    };
    return sendingOnce(connected, input)(signal, { ...options, onStarted });
  };
  const output = json ? jsonLines() : process.stdout.isTTY ? liveAnswer() : lastAnswer();
  const left = new AbortController();
  // A reader such as `head` needs no more output, but the run continues.
  process.stdout.on("error", () => left.abort());
  const ending = await runTurn(
    {
      client,
      thread,
      show: output.show,
      tell: (line) => toStderr(`${visible(line)}\n`),
      answer: answerHere,
      onPress: onInterrupt,
      stops: [{ mode: "cancel", told: t().chat.stopping }],
      signal: left.signal,
      unit: "turn",
    },
    send,
  );
  if (ending === "answered") output.end();
  if (ending === "waiting" && thread !== undefined) toStderr(`${t().chat.waits(thread)}\n`);
  return CODES[ending];
}

/** Calls `press` for each Ctrl-C, and for each SIGINT from another process. */
const onInterrupt = (press: () => void) => onSignals(["SIGINT"], press);

/** Asks the user at a terminal. If there is no terminal, prints the open questions. */
async function answerHere(questions: readonly Interrupt[]): Promise<Answer[] | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    for (const each of questions) toStderr(`${asked(each, paint)}\n`);
    return undefined;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await answersTo(questions, { ask: askingAt(terminal), paint });
  } finally {
    terminal.close();
  }
}

interface Output {
  readonly show: (event: StreamEvent) => void;
  /** Called when the turn has been answered. */
  readonly end: () => void;
}

/** At a terminal, prints everything as it arrives. */
function liveAnswer(): Output {
  const render = renderer(paint, paintFor(process.stdout));
  const show = (event: StreamEvent) =>
    void (isSpeech(event) ? process.stdout : process.stderr).write(render(event));
  return { show, end: () => {} };
}

/**
 * Without a terminal, prints only the last message. A message can be the last one only if it contains no tool call,
 * which is not known until the message ends.
 */
function lastAnswer(): Output {
  const render = renderer(paint);
  let answer = "";
  const show = (event: StreamEvent) => {
    if (!isSpeech(event)) toStderr(render(event));
    if (event.event !== "on_message" || (event.path && event.path.length > 0)) return;
    const { message } = event.data;
    if (message.role !== "assistant") return;
    answer = lineOf(textOf(message.content));
    if (message.tool_calls === undefined) return;
    toStderr(answer);
    answer = "";
  };
  return { show, end: () => void process.stdout.write(answer) };
}

const lineOf = (text: string) => (text.trim() === "" ? "" : `${visible(text).trimEnd()}\n`);

/** Escapes all control and format characters, even where JSON allows them. */
function jsonLines(): Output {
  const escaped = (text: string) =>
    text.replace(/\p{C}/gu, (each) =>
      Array.from({ length: each.length }, (_, at) => hex(each.charCodeAt(at))).join(""),
    );
  const hex = (unit: number) => `\\u${unit.toString(16).padStart(4, "0")}`;
  return {
    show: (event) => void process.stdout.write(`${escaped(JSON.stringify(event))}\n`),
    end: () => {},
  };
}
