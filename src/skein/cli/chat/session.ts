// A chat at the terminal. Each line is a message or a command. The first Ctrl-C stops the run after its step, the
// second stops it at once, and the third stops following it. If no run is active, Ctrl-C clears the line or exits; an
// open question stays open.

import { createInterface, type Interface } from "node:readline";
import { textOf } from "../../../agent/core/message.ts";
import {
  ConnectionLost,
  type Interrupt,
  type Message,
  ProblemError,
  type Thread,
} from "../../../client/client.ts";
import { answersTo, askingAt } from "../answering.ts";
import { type Lines, linesAt } from "../lines.ts";
import { paintFor, visible } from "../paint.ts";
import { callLine, renderer, resultLine } from "../render.ts";
import { t } from "../texts.ts";
import { answerer } from "./agents.ts";
import { commandIn, runCommand } from "./commands.ts";
import { threadIfThere } from "./threads.ts";
import { type ConnectedThread, runTurn, type Start, type Stop, sending } from "./turn.ts";

const STOPS: readonly Stop[] = [
  { mode: "interrupt", told: t().chat.stoppingAfterStep },
  { mode: "cancel", told: t().chat.stopping },
];

const paint = paintFor(process.stdout);
const write = (text: string) => void process.stdout.write(text);
const tell = (line: string) => write(`\n${visible(line)}\n`);

/** Returns when the user leaves. */
export async function chatAtTerminal(connected: ConnectedThread): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Created before the first run, so it receives everything that the user types from now on.
  const lines = linesAt(terminal, process.stdout);
  const conversation = converse(terminal, connected);
  try {
    await conversation.open(connected.thread);
    for (;;) {
      const line = await nextLine(terminal, lines);
      if (line === undefined || (await conversation.take(line)) === "leave") break;
    }
  } finally {
    terminal.close();
  }
  write(conversation.farewell());
}

/** Returns `undefined` when the user leaves. */
async function nextLine(terminal: Interface, lines: Lines): Promise<string | undefined> {
  const clear = () => {
    if (terminal.line === "") return terminal.close();
    terminal.write(null, { ctrl: true, name: "e" });
    terminal.write(null, { ctrl: true, name: "u" });
  };
  const release = onPress(terminal, clear);
  try {
    return await lines.next();
  } finally {
    release();
  }
}

function onPress(terminal: Interface, press: () => void): () => void {
  terminal.on("SIGINT", press);
  return () => void terminal.off("SIGINT", press);
}

/** The state of the chat: the thread and the options of each run. */
function converse(terminal: Interface, { client, url, ...begin }: ConnectedThread) {
  let { thread, run } = begin;
  let listed: readonly Thread[] = [];
  let isThere = false;
  const ask = askingAt(terminal);
  const answer = (asked: readonly Interrupt[]) => answersTo(asked, { ask, paint });

  const follow = async (start: Start) => {
    const render = renderer(paint);
    const show = (event: Parameters<typeof render>[0]) => write(render(event));
    const on = (press: () => void) => onPress(terminal, press);
    await runTurn({ client, thread, show, tell, answer, onPress: on, stops: STOPS, unit: "run" }, start);
  };

  /** Sends a request that Ctrl-C cancels. Prints the server's error. */
  const asking = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> => {
    const leaving = new AbortController();
    const release = onPress(terminal, () => leaving.abort());
    try {
      return await work(leaving.signal);
    } catch (error) {
      if (leaving.signal.aborted) return undefined;
      if (error instanceof ProblemError) tell(`✗ ${error.message} (${error.code})`);
      else if (error instanceof ConnectionLost) tell(`✗ ${error.message}`);
      else throw error;
      return undefined;
    } finally {
      release();
    }
  };

  /** Returns how to continue the thread: follow the run in progress, or resume with answers. */
  const pending = async (found: Thread): Promise<Start | undefined> => {
    if (found.status === "busy") {
      const newest = await asking((signal) => client.runs.of(thread, { limit: 1 }, signal));
      const id = newest?.items[0]?.id;
      if (id === undefined) return undefined;
      return (signal, { onStarted }) => {
        onStarted?.(id, thread);
        return client.runs.events(thread, id, {}, signal);
      };
    }
    const asked = (await asking((signal) => client.interrupts(thread, signal))) ?? [];
    const [first] = asked;
    const answers = first && (await answer(asked));
    return answers && ((signal, options) => client.resume(thread, first.run_id, answers, signal, options));
  };

  return {
    /** Shows the thread, follows its run in progress, and asks its open questions. */
    async open(id: string): Promise<void> {
      thread = id;
      write(`${t().chat.thread(visible(id), visible(url))}\n`);
      const found = await asking((signal) => threadIfThere({ client, thread }, signal));
      isThere = found !== undefined;
      const who = await asking((signal) => answerer({ client, thread, run, signal }, paint));
      if (who !== undefined) write(`${who}\n`);
      if (!found) return;
      const isBusy = found.status === "busy";
      const opened = await asking((signal) => lastMessages({ client, thread }, { isBusy }, signal));
      if (opened) write(shownHistory(opened));
      const start = await pending(found);
      if (start) await follow(start);
    },

    /** Sends a message or runs a command. */
    async take(line: string): Promise<"leave" | undefined> {
      const command = commandIn(line);
      if (!command) {
        if (line.trim() === "") return undefined;
        isThere = true;
        await follow(sending({ client, url, thread, run }, line));
        return undefined;
      }
      const change = await asking((signal) =>
        runCommand(command, { client, url, thread, run, listed, paint, write, signal }),
      );
      if (change?.leave) return "leave";
      if (change?.run) run = change.run;
      if (change?.listed) listed = change.listed;
      if (change?.thread !== undefined) await this.open(change.thread);
      return undefined;
    },

    farewell: () => (isThere ? `\n${t().chat.toContinue(visible(thread))}\n` : ""),
  };
}

/** The maximum number of messages to show, and to keep while reading the pages. */
const SHOWN = 20;

interface OpenedThread {
  readonly messages: readonly Message[];
  /** The number of earlier messages. */
  readonly earlier: number;
}

/**
 * Returns the last messages. If `isBusy` is set, omits the messages of the run in progress, except the message that
 * started it.
 */
async function lastMessages(
  { client, thread }: Pick<ConnectedThread, "client" | "thread">,
  { isBusy }: { readonly isBusy: boolean },
  signal: AbortSignal,
): Promise<OpenedThread> {
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

/** Formats messages in the same way as a live chat. */
function shownHistory({ messages, earlier }: OpenedThread): string {
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
  return (earlier > 0 ? paint("dim", `${t().chat.earlier(earlier)}\n`) : "") + shown.join("");
}
