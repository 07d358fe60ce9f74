// A conversation: a message in Slack starts a run for its author, and the run writes into the author's thread.

import type { PluginRouteOptions, StreamEvent } from "skein";
import { type Client, createClient, ProblemError, type RunRecord } from "../../src/client/client.ts";
import { liveMessage } from "./live-message.ts";
import type { Press, Said } from "./payloads.ts";
import { ownerOf, threadOf } from "./people.ts";
import { answeredMessage, answerOf, choiceOf, questionMessage } from "./questions.ts";
import type { CallSlack } from "./web-api.ts";

export interface ConversationOptions extends Pick<PluginRouteOptions, "fetchAs"> {
  readonly call: CallSlack;
  /** The tenant that the Slack users belong to. */
  readonly tenant: string;
  /** Default: the server's first agent. */
  readonly agent: string | undefined;
  /** The pause between two updates of a message, in ms. */
  readonly everyMs: number;
  /** Aborts when the server shuts down. */
  readonly closing: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/** Slack waits three seconds for the response to a delivery. */
const ACCEPT_MS = 2_000;

export function conversations(options: ConversationOptions) {
  const { call, fetchAs, tenant, agent, everyMs, closing, onError } = options;
  /**
   * Identifies this process in the runs that it starts, because another process that gets the same delivery must not
   * write too.
   */
  const writer = crypto.randomUUID();
  const seen = recent(10_000);

  const clientOf = (person: Pick<Said, "team" | "user">, onRetry?: (reason: Error) => void) =>
    createClient({
      baseUrl: "http://localhost",
      fetch: fetchAs(ownerOf(tenant, person)),
      ...(onRetry ? { onRetry } : {}),
    });

  /**
   * Starts the run for a message, or answers the question that is waiting for text. A repeated delivery returns the
   * same run.
   */
  async function begin(client: Client, said: Said, signal: AbortSignal) {
    const thread_id = threadOf(said);
    const idempotency = { idempotencyKey: `slack:${said.event_id}` };
    const open = await client.interrupts(thread_id, signal);
    const question = open.find(({ kind }) => kind === "question");
    if (question) {
      const answer = { id: question.id, decision: "respond" as const, message: said.text };
      return {
        run: await client.answer(thread_id, question.run_id, [answer], idempotency, signal),
        isOurs: true,
      };
    }
    const metadata = { channel: "slack", slack_writer: writer };
    const request = { input: said.text, metadata, on_busy: "enqueue" as const, ...(agent ? { agent } : {}) };
    const run = await client.start(thread_id, request, idempotency, signal);
    return { run, isOurs: run.metadata.slack_writer === writer };
  }

  /** Writes the answer of a run. */
  async function show(client: Client, run: RunRecord, place: Said): Promise<void> {
    const message = liveMessage(call, place, everyMs);
    /** True after a tool call, when the next text starts a new paragraph. */
    let isApart = false;
    for await (const event of client.runs.events(run.thread_id, run.id, {}, closing)) {
      const text = textOf(event);
      if (text !== "") message.add(isApart ? `\n\n${text}` : text);
      isApart = event.event === "on_tool_start" || (isApart && text === "");
      if (event.event !== "on_interrupt" || event.path) continue;
      await message.end();
      const question = questionMessage(event.data, { thread_id: run.thread_id, user: place.user });
      const { channel, thread_ts } = place;
      if (question) await call("chat.postMessage", { channel, thread_ts, ...question });
    }
    await message.end();
  }

  const tell = ({ channel, user, thread_ts }: Omit<Said, "text" | "event_id">, text: string) =>
    call("chat.postEphemeral", { channel, user, thread_ts, text });

  return {
    /** Resolves in time for the response. `later` asks Slack to deliver the message again. */
    async receive(said: Said): Promise<"accepted" | "later"> {
      if (seen.has(said.event_id)) return "accepted";
      let reason: unknown;
      const client = clientOf(said, (retried) => {
        reason = retried;
      });
      const inTime = AbortSignal.timeout(ACCEPT_MS);
      try {
        const { run, isOurs } = await begin(client, said, inTime);
        if (!seen.has(said.event_id) && isOurs) void show(client, run, said).catch(onError);
      } catch (error) {
        const refusal = inTime.aborted ? reason : error;
        if (!(refusal instanceof ProblemError) || refusal.status >= 500) return "later";
        void tell(said, refusal.message).catch(onError);
      }
      seen.add(said.event_id);
      return "accepted";
    },

    /** Answers a question of a run and writes how the run continues. */
    async press(press: Press): Promise<void> {
      const choice = choiceOf(press);
      if (!choice) return;
      const { team, user, channel, message } = press;
      const thread_ts = message.thread_ts ?? message.ts;
      const place = { team: team.id, user: user.id, channel: channel.id, thread_ts, text: "", event_id: "" };
      if (choice.user !== user.id) {
        await tell(place, `Only <@${choice.user}> may answer: the agent works for them.`);
        return;
      }
      const replace = (outcome: string) =>
        call("chat.update", { channel: channel.id, ts: message.ts, ...answeredMessage(press, outcome) });
      const client = clientOf(place);
      const open = await client.interrupts(choice.thread_id);
      const asked = open.find(({ id }) => id === choice.interrupt_id);
      if (!asked) {
        await replace("_No longer open._");
        return;
      }
      const answer = answerOf(choice, asked);
      const run = await client.answer(choice.thread_id, asked.run_id, [answer]);
      const outcome = { approve: "Approved", deny: "Denied", respond: "Answered" }[choice.decision];
      await replace(`${outcome} by <@${user.id}>`);
      await show(client, run, place);
    },
  };
}

/** Keeps the last `most` values. */
function recent(most: number) {
  const values = new Set<string>();
  return {
    has: (value: string) => values.has(value),
    add(value: string) {
      values.add(value);
      const [oldest] = values;
      if (values.size > most && oldest !== undefined) values.delete(oldest);
    },
  };
}

/** Returns the text that an event adds to the message. Subagents, which have a path, are not shown. */
function textOf(event: StreamEvent): string {
  if (event.path) return "";
  switch (event.event) {
    case "on_chat_model_stream":
      return "delta" in event.data ? event.data.delta : "";
    case "message_discard":
      return "\n\n_The server was restarted; this replaces the unfinished text:_\n\n";
    case "error":
      return `\n\n_${event.data.message}_`;
    case "done":
      return event.data.message ? `\n\n_${event.data.message}_` : "";
    default:
      return "";
  }
}
