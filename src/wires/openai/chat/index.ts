// Chat completions. The agent's answer is one message. Its intermediate steps are not sent.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError, type ErrorCode } from "../../../agent/core/errors.ts";
import { toolMessages } from "../../../agent/core/message.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import { getRun, keyOf } from "../../../engine/runs/control.ts";
import { docsPage } from "../../../lib/docs.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf, sentBy } from "../../../server/auth/guard.ts";
import { idempotencyKey } from "../../../server/http/run-stream.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { type Fold, foldedFrames } from "../../fold.ts";
import { threadIdOf } from "../../messages.ts";
import { readRun, streamRun } from "../../reply.ts";
import {
  ANONYMOUS,
  type ChatInput,
  forget,
  type PreparedConversation,
  prepareNamed,
  prepareNew,
  prepareWaiting,
  titleOf,
} from "../conversations.ts";
import { conversationOf, IGNORED, ignoredFields, isSystem, wordsOf } from "../given.ts";
import { findAgent } from "../resources/models.ts";
import { isBesideChat, type RequestText, sideAnswer, sideRequest } from "../side-requests.ts";
import type { FunctionChoice } from "../tool-choice.ts";
import {
  answersInResults,
  ChatCompletionBody,
  choiceIn,
  historyOf,
  refuseUnsupported,
  schemaOf,
  settingsOf,
} from "./input.ts";
import { collect, type ProjectOptions, project } from "./table.ts";

const Completion = z.looseObject({ id: z.string(), object: z.literal("chat.completion") });
const Chunks = z
  .string()
  .describe(
    "Server-Sent Events with a chat completion chunk as `data`, or an `error` after a failure, ending with `[DONE]`.",
  );

export function chatRoutes(app: App, services: RouteServices): void {
  const chats = { ...services, log: app.log };
  const { runs, stores } = services;
  const { threads } = stores;

  app.post(
    "/chat/completions",
    {
      sse: "manual",
      schema: {
        summary: "Send a chat and read the agent's answer",
        description: `The protocol of OpenAI's SDKs and chat front ends. See ${docsPage("reference/wires/openai-chat.md")}.`,
        tags: ["openai"],
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
      const { name: model } = findAgent(services.agents, body.model);
      reply.headers(omitUndefined({ [IGNORED]: ignoredFields(body, ChatCompletionBody.shape) }));
      const owner = ownerOf(request);
      const side = sideRequest(request.headers, askedIn(body));
      if (side) {
        const title = await titleOf(chats, owner, conversationOf(request.headers, body.metadata));
        return sendSide(reply, body, { job: side.job, model, content: sideAnswer(side, title) });
      }
      const choice = choiceIn(body);
      const chat = await prepareChat(owner, request, choice);
      const outputOnly = choice.answer !== undefined || schemaOf(body) !== undefined;
      const answer = { model, outputOnly, ...omitUndefined({ answersAs: choice.answer?.name }) };
      try {
        if (!body.stream) return reply.send(await whole(reply, owner, { chat, answer }));
        const includesUsage = body.stream_options?.include_usage === true;
        const framesOf = framesFor(owner, project({ ...answer, includesUsage }));
        await streamRun(services, reply, { owner, start: chat.start, framesOf, cancelsOnLeave: true });
        return undefined;
      } finally {
        const isLast = choice.answer !== undefined;
        if (chat.isAnonymous) void forget(chats, owner, chat.thread_id, { isLast });
      }
    },
  );

  const framesFor = (owner: Owner, fold: Fold) => (run: RunRecord) =>
    foldedFrames(stores, {
      owner,
      from: run,
      fold,
      unit: "run",
      messages: async () =>
        [await threads.message(owner, run.thread_id)].filter((last) => last !== undefined),
    });

  async function prepareChat(
    owner: Owner,
    request: FastifyRequest<{ Body: ChatCompletionBody }>,
    choice: FunctionChoice,
  ): Promise<PreparedConversation> {
    const { body, headers } = request;
    const input = await chatInputOf(request, choice);
    const name = isBesideChat(headers, askedIn(body)) ? undefined : conversationOf(headers, body.metadata);
    if (name !== undefined) return prepareNamed(chats, owner, threadIdOf(name), input);
    // Only this request knows the thread, so no one can be asked.
    const alone: ChatInput = { ...input, request: { ...input.request, unattended: true } };
    const waiting = input.endsWithAnswer
      ? await prepareWaiting(chats, owner, alone, ({ anonymous }) => anonymous === true)
      : undefined;
    return waiting ?? prepareNew(chats, owner, alone, { metadata: ANONYMOUS });
  }

  /** Waits for the run to end. Cancels it if the client disconnects. */
  async function whole(
    reply: FastifyReply,
    owner: Owner,
    { chat, answer }: { chat: PreparedConversation; answer: Omit<ProjectOptions, "includesUsage"> },
  ) {
    const all = collect(answer);
    const framesOf = framesFor(owner, (event, run) => {
      all.see(event, run);
      return [];
    });
    const run = await readRun(services, reply, { owner, start: chat.start, framesOf, cancelsOnLeave: true });
    const error = all.error();
    // A repeated request would run the agent again.
    if (error) reply.header("x-should-retry", "false");
    // Events contain only codes of this union.
    if (error) throw new AppError(error.code as ErrorCode, error.message);
    return all.completion(await getRun(runs, keyOf(owner, run)));
  }
}

async function chatInputOf(
  request: FastifyRequest<{ Body: ChatCompletionBody }>,
  choice: FunctionChoice,
): Promise<ChatInput> {
  const { body } = request;
  const output_schema = choice.answer?.schema ?? schemaOf(body);
  const messages = await historyOf(ownerOf(request).tenant, body.messages);
  return {
    agent: body.model,
    messages,
    results: toolMessages(messages),
    answersTo: (open) => answersInResults(body.messages, open),
    endsWithAnswer: body.messages.at(-1)?.role === "tool",
    request: {
      settings: settingsOf(body, choice),
      ...omitUndefined({ tools: choice.tools, output_schema, ...sentBy(request) }),
    },
    metadata: {},
    ...omitUndefined({ idempotency_key: idempotencyKey(request) }),
  };
}

function askedIn({ messages }: ChatCompletionBody): RequestText {
  const input = messages.filter(({ role }) => !isSystem(role));
  return {
    text: wordsOf(input.findLast(({ role }) => role === "user")?.content),
    isAlone: input.length === 1,
  };
}

function sendSide(
  reply: FastifyReply,
  { stream }: ChatCompletionBody,
  { job, model, content }: { job: string; model: string; content: string },
) {
  const base = { id: `chatcmpl-${job}`, created: Math.floor(Date.now() / 1000), model };
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
