// The AI SDK's UI message stream: what `useChat` sends and reads. docs/wires/ai-sdk.md has the lines that connect a page.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../core/errors.ts";
import type { Owner } from "../../../core/ids.ts";
import type { Answer } from "../../../core/interrupt.ts";
import { type Message, textOf } from "../../../core/message.ts";
import type { RunRecord } from "../../../core/records.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { keyOf, newestRun, notFound } from "../../../runs/control.ts";
import { openOn, type RunCommand, resumeRun, startRun } from "../../../runs/start.ts";
import { turnInProgress, turnStart } from "../../../runs/turn.ts";
import { ownerOf, sentBy } from "../../auth/guard.ts";
import { refuse } from "../../errors.ts";
import { inSlices, jsonOf, listOf, payloadOf } from "../../long-answers.ts";
import { cancelIfActive, idempotencyKey } from "../../run-stream.ts";
import type { RouteServices } from "../../services.ts";
import { type App, fittingJson } from "../../validation.ts";
import { foldedFrames } from "../fold.ts";
import { align, keyOfMessage, messageOf, type SentMessage, threadIdOf } from "../messages.ts";
import { streamRun } from "../reply.ts";
import { answersInWords } from "../words.ts";
import {
  answerIdOf,
  answersIn,
  askingInWords,
  ChatBody,
  clientTools,
  contentOf,
  historyOf,
  UIMessage,
} from "./input.ts";
import { type ProjectOptions, project } from "./project.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const ChatParams = AgentParams.extend({ id: z.string().min(1).max(1024) });
const StreamQuery = z.looseObject({
  v: z.enum(["5", "6", "7"]).default("7"),
  on_disconnect: z.enum(["continue", "cancel"]).default("continue"),
});
type StreamQuery = z.infer<typeof StreamQuery>;

const Chunks = z.string().describe("Server-Sent Events: as `data` a UI message chunk, `[DONE]` last.");

export function aiSdkRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, agents, unreadAnswers } = services;
  const { threads } = stores;
  const toJson = fittingJson(app, UIMessage, { method: "GET", url: "/:agent/chat/:id/messages" });
  const tags = ["ai-sdk"];
  // `useChat` shows the text of a refusal to the user, as it is.
  app.setErrorHandler<Error>((error, request, reply) => {
    const { detail } = refuse(error, request, reply);
    return reply.type("text/plain; charset=utf-8").send(detail);
  });

  app.post(
    "/:agent/chat",
    {
      sse: "manual",
      schema: {
        summary: "Send the newest message of a chat, or the answers in it, and follow the turn",
        description: "What `useChat` of the AI SDK sends and reads. See docs/wires/ai-sdk.md.",
        tags,
        params: AgentParams,
        querystring: StreamQuery,
        body: ChatBody,
        response: { 200: { content: { "text/event-stream": { schema: Chunks } } } },
      },
    },
    async (request, reply) => {
      const { body, query } = request;
      const owner = ownerOf(request);
      const sent = body.message ?? body.messages.at(-1);
      if (!sent)
        throw new AppError(
          "invalid_request",
          "messages: the list is empty; send at least the newest message.",
        );
      const chat = { owner, thread_id: threadIdOf(body.id), agent: agents.find(request.params.agent).name };
      const begin = sent.role === "assistant" ? answer(chat, sent, request) : say(chat, sent, request);
      const { start, at, ...options } = await begin;
      head(reply);
      await streamRun(services, reply, {
        owner,
        start,
        framesOf: (run) => framesOf(owner, { from: run, at }, { ...options, version: versionOf(query) }),
        cancelsOnLeave: query.on_disconnect === "cancel",
      });
      return undefined;
    },
  );

  app.get(
    "/:agent/chat/:id/stream",
    {
      sse: "manual",
      schema: {
        summary: "Follow the turn in progress from its beginning",
        description: "Or the turn that has just ended. 204 when there is neither.",
        tags,
        params: ChatParams,
        querystring: StreamQuery,
        response: { 200: { content: { "text/event-stream": { schema: Chunks } } }, 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const threadId = threadIdOf(request.params.id);
      const version = versionOf(request.query);
      const run =
        (await turnInProgress({ stores }, owner, threadId)) ?? (await justEnded(owner, threadId, version));
      if (!run) return reply.code(204).send(null);
      const from = await turnStart({ stores }, owner, run);
      const messageId = answerIdOf(await newestUserMessage(owner, threadId));
      const options = { messageId, version };
      head(reply);
      await streams.send(reply, framesOf(owner, { from, at: run }, options), "comment", "cut");
      return undefined;
    },
  );

  app.post(
    "/:agent/chat/:id/stop",
    {
      schema: {
        summary: "Cancel the turn in progress",
        tags,
        params: ChatParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const run = await turnInProgress({ stores }, owner, threadIdOf(request.params.id));
      if (run) await cancelIfActive(runs, keyOf(owner, run));
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/:agent/chat/:id/messages",
    {
      schema: {
        summary: "The chat as UI messages",
        tags,
        params: ChatParams,
        querystring: StreamQuery,
        response: { 200: z.array(UIMessage) },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const id = threadIdOf(request.params.id);
      const found = await threads.measured(owner, id);
      if (!found) throw notFound("thread", request.params.id);
      const [messages, state, open] = await Promise.all([
        threads.messages(owner, id),
        threads.state(owner, id),
        openOn(threads, owner, id),
      ]);
      const history = historyOf({ messages, state, open });
      const shown = versionOf(request.query) === 5 ? askingInWords(history, open) : history;
      const answer = listOf(inSlices(owner.tenant, shown, toJson));
      return jsonOf(reply, await payloadOf(answer, () => unreadAnswers.open(reply), found.bytes));
    },
  );

  interface Chat {
    readonly owner: Owner;
    readonly thread_id: string;
    readonly agent: string;
  }
  interface Begin extends Omit<ProjectOptions, "version" | "at"> {
    /** Starts the run, or finds it. The stream begins with it. */
    readonly start: (stream: string) => Promise<RunRecord>;
    /** A later run of its turn, which the turn is at. */
    readonly at?: RunRecord;
  }
  type ChatRequest = FastifyRequest<{ Body: ChatBody; Querystring: StreamQuery }>;

  /** The newest message is the user's: it begins a run, takes the place of an earlier one, or is a repeat. */
  async function say(
    { owner, thread_id, agent }: Chat,
    sent: UIMessage,
    request: ChatRequest,
  ): Promise<Begin> {
    const { body } = request;
    const { api_key, origin } = sentBy(request);
    const known = await threads.messages(owner, thread_id);
    const message = messageOf({ id: sent.id, content: contentOf(sent) });
    const place = align(known, heldBy(body, message), {
      isRegenerated: body.trigger === "regenerate-message",
      isWhole: body.message === undefined,
    });
    const messageId = answerIdOf(message.id);
    if (place.as === "repeat") {
      const newest = await newestRun(stores.runs, owner, thread_id);
      if (newest) {
        const from = await turnStart({ stores }, owner, newest);
        return { start: async () => from, messageId, at: newest };
      }
    }
    const answers = place.as === "new" ? await answersSaid({ owner, thread_id, agent }, sent, request) : [];
    if (answers.length > 0) return { start: resuming({ owner, thread_id, answers }, request), messageId };
    const command: RunCommand = {
      thread_id,
      agent,
      metadata: {},
      on_busy: "reject",
      request: {
        input: [message],
        settings: {},
        ...omitUndefined({ tools: clientTools(body), api_key, origin }),
      },
      ...(place.as === "replacement" ? { rewind_to: place.of } : {}),
      idempotency_key: idempotencyKey(request) ?? keyOfMessage(message, known),
    };
    return { start: (stream) => startRun(runs, owner, { ...command, stream }), messageId };
  }

  /** The newest message is the assistant's: its parts hold answers. */
  async function answer({ owner, thread_id }: Chat, sent: UIMessage, request: ChatRequest): Promise<Begin> {
    const open = await openOn(threads, owner, thread_id);
    const answers = answersIn(sent, open);
    if (answers.length === 0)
      throw new AppError("interrupt_closed", "Nothing in this message answers an open question of the chat.");
    return {
      start: resuming({ owner, thread_id, answers }, request),
      messageId: sent.id ?? answerIdOf(await newestUserMessage(owner, thread_id)),
      asked: open,
    };
  }

  /** What the user's words answer in a chat that asks in words. */
  async function answersSaid({ owner, thread_id }: Chat, sent: UIMessage, request: ChatRequest) {
    if (versionOf(request.query) > 5) return [];
    const open = await openOn(threads, owner, thread_id);
    const approvals = open.filter(({ kind }) => kind === "approval");
    return answersInWords(textOf(contentOf(sent)), approvals);
  }

  function resuming(
    { owner, thread_id, answers }: Pick<Chat, "owner" | "thread_id"> & { answers: Answer[] },
    request: ChatRequest,
  ) {
    return async (stream: string) => {
      const newest = await newestRun(stores.runs, owner, thread_id);
      const brought = { tools: clientTools(request.body), idempotency_key: idempotencyKey(request) };
      return resumeRun(runs, owner, {
        ...{ thread_id, run_id: newest?.id ?? "", answers, stream },
        ...sentBy(request),
        ...omitUndefined(brought),
      });
    };
  }

  /**
   * The newest run, if its turn ended a short while ago. A page reads the messages first and then connects: a turn that ends in
   * between is in neither, unless it is streamed again. A page that has it already shows it once, except in versions before 7,
   * which would add it again. A turn that waits for an answer is not streamed, since the answer may be on its way.
   */
  async function justEnded(
    owner: Owner,
    threadId: string,
    version: ProjectOptions["version"],
  ): Promise<RunRecord | undefined> {
    if (version < 7) return undefined;
    const newest = await newestRun(stores.runs, owner, threadId);
    if (newest?.ended_at === undefined) return undefined;
    if (Date.now() - Date.parse(newest.ended_at) > STREAMED_AGAIN_MS) return undefined;
    return (await openOn(threads, owner, threadId)).length > 0 ? undefined : newest;
  }

  async function newestUserMessage(owner: Owner, threadId: string): Promise<string> {
    return (await threads.messages(owner, threadId)).findLast(({ role }) => role === "user")?.id ?? "start";
  }

  function framesOf(
    owner: Owner,
    { from, at = from }: { readonly from: RunRecord; readonly at?: RunRecord | undefined },
    options: Omit<ProjectOptions, "at">,
  ) {
    const messages = () => turnMessages(owner, from.thread_id);
    const fold = project({ ...options, at: at.id });
    return foldedFrames(stores, { owner, from, at, fold, unit: "turn", messages });
  }

  /** The messages that answer the user's newest one. */
  async function turnMessages(owner: Owner, threadId: string): Promise<Message[]> {
    const messages = await threads.messages(owner, threadId);
    return messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  }
}

/** The user's messages that the page holds, the newest last. */
function heldBy({ messages }: ChatBody, newest: SentMessage): SentMessage[] {
  const before = messages.slice(0, -1).filter(({ role }) => role === "user");
  return [...before.map(({ id }) => ({ id, content: "" })), newest];
}

/** For how long a turn is streamed again after its end: longer than a page takes between its two requests, or a network to return. */
const STREAMED_AGAIN_MS = 5 * 60_000;

const versionOf = ({ v }: StreamQuery) => Number(v) as ProjectOptions["version"];

const head = (reply: FastifyReply) =>
  reply.header("x-vercel-ai-ui-message-stream", "v1").header("x-accel-buffering", "no");
