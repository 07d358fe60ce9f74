// OpenAI's API: agents as models, for every client of chat completions. docs/wires/openai.md has the lines that connect one.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { AgentInfo } from "../../../agents/registry.ts";
import { AppError, type ErrorCode } from "../../../core/errors.ts";
import type { StreamEvent } from "../../../core/event.ts";
import { newThreadId, type Owner } from "../../../core/ids.ts";
import type { Answer, Interrupt } from "../../../core/interrupt.ts";
import { type Message, textOf, userMessage } from "../../../core/message.ts";
import type { RunRecord, RunRequest } from "../../../core/records.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { firstChars } from "../../../lib/text.ts";
import { withHold } from "../../../quotas/holds.ts";
import { getRun, keyOf, settledRun } from "../../../runs/control.ts";
import { openOn, resumeRun, startRun } from "../../../runs/start.ts";
import { deleteThreadTree } from "../../../runs/thread-actions.ts";
import { ownerOf, principalOf } from "../../auth/guard.ts";
import { clientDisconnect } from "../../client-disconnect.ts";
import { refuse } from "../../errors.ts";
import { cancelIfActive, idempotencyKey } from "../../run-stream.ts";
import type { RouteServices } from "../../services.ts";
import { credentialsEnd } from "../../sse.ts";
import type { App } from "../../validation.ts";
import { foldedFrames } from "../fold.ts";
import { align, threadIdOf } from "../messages.ts";
import { streamRun } from "../reply.ts";
import {
  answersInResults,
  answersInWords,
  ChatCompletionBody,
  clientTools,
  contentOf,
  conversationOf,
  historyOf,
  refuseUnsupported,
  type SentMessage,
} from "./input.ts";
import { collect, project } from "./project.ts";

const Model = z.looseObject({ id: z.string(), object: z.literal("model") });
const Completion = z.looseObject({ id: z.string(), object: z.literal("chat.completion") });
const Chunks = z
  .string()
  .describe("Server-Sent Events: as `data` a chat completion chunk, `[DONE]` last; of a failure an `error`.");

/** The answer to a question of a front end that no agent is asked, such as for the title of a chat. */
const TITLE_CHARS = 60;
/** How long a run that its client has left may take to end before its thread is left to retention, in ms. */
const LAST_MS = 10_000;

export function openaiRoutes(app: App, services: RouteServices): void {
  const { runs, stores, agents, quotas, streams, access } = services;
  const { threads } = stores;
  const tags = ["openai"];
  const began = Math.floor(Date.now() / 1000);
  app.setErrorHandler<Error>((error, request, reply) => sendError(error, request, reply));

  app.get(
    "/models",
    {
      schema: {
        summary: "The agents as models",
        tags,
        response: { 200: z.object({ object: z.literal("list"), data: z.array(Model) }) },
      },
    },
    async () => ({ object: "list" as const, data: agents.list().map((agent) => modelOf(agent, began)) }),
  );

  app.get(
    "/models/:model",
    {
      schema: {
        summary: "An agent as a model",
        tags,
        params: z.object({ model: z.string().max(256) }),
        response: { 200: Model },
      },
    },
    async (request) => modelOf(agentNamed(request.params.model), began),
  );

  app.post(
    "/chat/completions",
    {
      sse: "manual",
      schema: {
        summary: "Send a chat and read the agent's answer",
        description: "What OpenAI's SDKs and chat front ends send. See docs/wires/openai.md.",
        tags,
        body: ChatCompletionBody,
        response: {
          200: {
            content: { "text/event-stream": { schema: Chunks }, "application/json": { schema: Completion } },
          },
        },
      },
    },
    async (request, reply) => {
      const { body } = request;
      refuseUnsupported(body);
      if (services.refusesSystemMessages && body.messages.some(({ role }) => isSystem(role)))
        throw new AppError(
          "invalid_request",
          "messages: this server accepts no `system` messages from users. Use `user`.",
          { details: { param: "messages" } },
        );
      const { name: model } = agentNamed(body.model);
      const task = request.headers["x-openwebui-task"];
      if (typeof task === "string" && task !== "") return sendTask(reply, body, { task, model });
      const owner = ownerOf(request);
      const chat = await chatOf(owner, request);
      try {
        if (!body.stream) return reply.send(await whole(reply, owner, { chat, model }));
        const includesUsage = body.stream_options?.include_usage === true;
        await streamRun(services, reply, {
          owner,
          start: chat.start,
          framesOf: (run) =>
            foldedFrames(stores, {
              owner,
              from: run,
              fold: project({ model, includesUsage }),
              unit: "run",
              messages: async () => (await threads.messages(owner, chat.thread_id)).slice(-1),
            }),
          cancelsOnLeave: true,
        });
        return undefined;
      } finally {
        if (chat.isAnonymous) void forget(owner, chat.thread_id);
      }
    },
  );

  interface Answered {
    readonly thread_id: string;
    readonly open: readonly Interrupt[];
    readonly answers: Answer[];
    readonly api_key: string | undefined;
    readonly unattended?: true;
  }

  interface Chat {
    readonly thread_id: string;
    /** Nothing but this request names the thread: it is deleted after the answer. */
    readonly isAnonymous: boolean;
    readonly start: (stream?: string) => Promise<RunRecord>;
  }

  async function chatOf(owner: Owner, request: FastifyRequest<{ Body: ChatCompletionBody }>): Promise<Chat> {
    const { body, headers } = request;
    const { api_key } = principalOf(request);
    const named = conversationOf(headers, body);
    if (named !== undefined) return namedChat(owner, threadIdOf(named), request);
    const results =
      body.messages.at(-1)?.role === "tool" ? await waitingFor(owner, body.messages, api_key) : undefined;
    return results ?? anonymousChat(owner, body, api_key);
  }

  /** The newest user's message counts; the others tell its place. */
  async function namedChat(
    owner: Owner,
    thread_id: string,
    request: FastifyRequest<{ Body: ChatCompletionBody }>,
  ): Promise<Chat> {
    const { body } = request;
    const { api_key } = principalOf(request);
    const open = await openOn(threads, owner, thread_id);
    const sent = body.messages.filter(({ role }) => role === "user");
    const newest = sent.at(-1);
    if (body.messages.at(-1)?.role === "tool") {
      const answers = answersInResults(body.messages, open);
      if (answers.length > 0) return resumed(owner, { thread_id, open, answers, api_key });
    }
    if (!newest) throw new AppError("invalid_request", "messages: there is none of the role `user`.");
    const known = await threads.messages(owner, thread_id);
    const message = userMessage(contentOf(newest));
    const place = align(known, placed(known, sent), { isWhole: true, isRegenerated: true });
    const answers = place.as === "new" ? answersInWords(textOf(message.content), open) : [];
    if (answers.length > 0) return resumed(owner, { thread_id, open, answers, api_key });
    const isFirst = known.length === 0;
    const system = isFirst ? historyOf(body.messages.filter(({ role }) => isSystem(role))) : [];
    const command = {
      thread_id,
      agent: body.model,
      metadata: {},
      on_busy: "reject" as const,
      request: { ...requestOf(body, [...system, message]), ...omitUndefined({ api_key }) },
      ...(place.as === "replacement" ? { rewind_to: place.of } : {}),
      ...omitUndefined({ idempotency_key: idempotencyKey(request) }),
    };
    return {
      thread_id,
      isAnonymous: false,
      start: (stream) => startRun(runs, owner, { ...command, stream }),
    };
  }

  /** A thread made of the history that was sent. No one can be asked on it. */
  function anonymousChat(owner: Owner, body: ChatCompletionBody, api_key: string | undefined): Chat {
    const thread_id = newThreadId();
    const messages = historyOf(body.messages);
    const input = messages.at(-1)?.role === "user" ? messages.splice(-1) : [];
    const request = { ...requestOf(body, input), unattended: true as const, ...omitUndefined({ api_key }) };
    return {
      thread_id,
      isAnonymous: true,
      async start(stream) {
        const thread = { id: thread_id, agent: body.model, metadata: ANONYMOUS, messages };
        await withHold(quotas, { owner, thing: "threads", id: thread_id }, () =>
          threads.create(owner, thread),
        );
        return startRun(runs, owner, {
          thread_id,
          agent: body.model,
          metadata: {},
          on_busy: "reject",
          request,
          stream,
        });
      },
    };
  }

  /** The anonymous chat that waits for the tool results in these messages, if there is one. */
  async function waitingFor(
    owner: Owner,
    sent: readonly SentMessage[],
    api_key: string | undefined,
  ): Promise<Chat | undefined> {
    const { items } = await threads.list(owner, { limit: 100, status: "interrupted" });
    for (const { id: thread_id, metadata } of items) {
      if (metadata.anonymous !== true) continue;
      const open = await openOn(threads, owner, thread_id);
      const answers = answersInResults(sent, open);
      if (answers.length > 0)
        return {
          ...resumed(owner, { thread_id, open, answers, api_key, unattended: true }),
          isAnonymous: true,
        };
    }
    return undefined;
  }

  function resumed(owner: Owner, { thread_id, open, answers, api_key, unattended }: Answered): Chat {
    const start = async (stream?: string) => {
      const [newest] = (await stores.runs.list(owner, thread_id, { limit: 1 })).items;
      const run_id = newest?.id ?? open[0]?.run_id ?? "";
      return resumeRun(runs, owner, { thread_id, run_id, answers, api_key, unattended, stream });
    };
    return { thread_id, isAnonymous: false, start };
  }

  /** Waits for the end of the run. A client that leaves cancels it. */
  async function whole(reply: FastifyReply, owner: Owner, { chat, model }: { chat: Chat; model: string }) {
    const run = await chat.start();
    const left = clientDisconnect(reply);
    const over = credentialsEnd(access.credentials, reply);
    const all = collect(model);
    for await (const batch of stores.events.read(
      keyOf(owner, run),
      0,
      AbortSignal.any([left, streams.closing, over]),
    ))
      for (const { json } of batch) all.see(JSON.parse(json) as StreamEvent);
    if (left.aborted || over.aborted) await cancelIfActive(runs, keyOf(owner, run));
    if (over.aborted) throw over.reason;
    if (!left.aborted && streams.closing.aborted)
      throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
    const error = all.error();
    // Events hold only codes of this union.
    if (error) throw new AppError(error.code as ErrorCode, error.message);
    return all.completion(await getRun(runs, keyOf(owner, run)));
  }

  /** Deletes the thread of an anonymous chat, unless it waits for the client's tools. */
  async function forget(owner: Owner, thread_id: string): Promise<void> {
    try {
      const [newest] = (await stores.runs.list(owner, thread_id, { limit: 1 })).items;
      const run = newest && (await settledRun(runs, keyOf(owner, newest), AbortSignal.timeout(LAST_MS)));
      if (run?.status !== "interrupted") await deleteThreadTree({ threads, quotas }, owner, thread_id);
    } catch (error) {
      app.log.warn({ err: error, thread_id }, "the thread of an anonymous chat was not deleted");
    }
  }

  function agentNamed(name: string): AgentInfo {
    const agent = agents.list().find((each) => each.name === name);
    if (agent) return agent;
    const names = agents.list().map((each) => `\`${each.name}\``);
    throw new AppError("not_found", `There is no model \`${name}\`. There are: ${names.join(", ")}.`, {
      details: { param: "model", code: "model_not_found" },
    });
  }
}

/** Marks the thread of an anonymous chat: no other thread of the user is answered or deleted with it. */
const ANONYMOUS = { anonymous: true };

const isSystem = (role: string) => role === "system" || role === "developer";

/** The sent messages with the ids of the thread's that say the same, in order. */
function placed(known: readonly Message[], sent: readonly SentMessage[]) {
  const users = known.filter(({ role }) => role === "user");
  let next = 0;
  return sent.map((message, index) => {
    const content = contentOf(message);
    const text = JSON.stringify(content);
    const at = users.findIndex((each, place) => place >= next && JSON.stringify(each.content) === text);
    if (at < 0 || index === sent.length - 1) return { content };
    next = at + 1;
    return { id: users[at]?.id, content };
  });
}

function requestOf(body: ChatCompletionBody, input: Message[]): RunRequest {
  const { temperature, max_tokens, max_completion_tokens } = body;
  const settings = omitUndefined({
    temperature: temperature ?? undefined,
    max_tokens: max_completion_tokens ?? max_tokens ?? undefined,
  });
  return { input, settings, ...omitUndefined({ tools: clientTools(body) }) };
}

const modelOf = ({ name, description }: AgentInfo, created: number) => ({
  id: name,
  object: "model" as const,
  created,
  owned_by: "skein",
  name,
  ...omitUndefined({ description }),
});

/** Side jobs of a front end must not run the agent: they get an answer that says nothing. */
function sendTask(
  reply: FastifyReply,
  { messages, stream }: ChatCompletionBody,
  { task, model }: { task: string; model: string },
) {
  const words = messages.findLast(({ role }) => role === "user")?.content;
  const title = { title: firstChars(typeof words === "string" ? words : "Chat", TITLE_CHARS) };
  const content = JSON.stringify(task === "title_generation" ? title : {});
  const base = { id: `chatcmpl-${task}`, created: Math.floor(Date.now() / 1000), model };
  const choice = { index: 0, logprobs: null, finish_reason: "stop" };
  if (!stream)
    return reply.send({
      ...base,
      object: "chat.completion",
      choices: [{ ...choice, message: { role: "assistant", content } }],
    });
  const chunk = {
    ...base,
    object: "chat.completion.chunk",
    choices: [{ ...choice, delta: { role: "assistant", content } }],
  };
  return reply.type("text/event-stream").send(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/** Errors in OpenAI's shape. Its SDKs repeat a POST after 408, 409, 429 and 5xx unless a header forbids it. */
function sendError(error: Error, request: FastifyRequest, reply: FastifyReply) {
  const { status, code, detail, details } = refuse(error, request, reply);
  if (status === 409) reply.header("x-should-retry", "false");
  const type = TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  const param = typeof details?.param === "string" ? details.param : null;
  const known = typeof details?.code === "string" ? details.code : code;
  return reply
    .type("application/json")
    .send(JSON.stringify({ error: { message: detail, type, code: known, param } }));
}
