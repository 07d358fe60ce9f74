// AG-UI: what its HttpAgent sends and reads, and what CopilotKit asks of its runtime. docs/wires/ag-ui.md has the lines that
// connect one.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError, hasCode } from "../../../core/errors.ts";
import type { StreamEvent } from "../../../core/event.ts";
import type { Owner } from "../../../core/ids.ts";
import type { Message } from "../../../core/message.ts";
import { isSettled, type RunRecord } from "../../../core/records.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { keyOf, newestRun } from "../../../runs/control.ts";
import { readLogRange } from "../../../runs/follow.ts";
import { openOn, resumeRun, startRun } from "../../../runs/start.ts";
import { ownerOf, sentBy } from "../../auth/guard.ts";
import { refuse } from "../../errors.ts";
import { cancelIfActive, idempotencyKey } from "../../run-stream.ts";
import type { RouteServices } from "../../services.ts";
import type { EarlyEnd, Frames } from "../../sse.ts";
import type { App } from "../../validation.ts";
import { foldedFrames } from "../fold.ts";
import { type Alignment, align, keyOfMessage, messageOf, threadIdOf } from "../messages.ts";
import { streamRun } from "../reply.ts";
import {
  answersIn,
  cancelsOnLeave,
  clientTools,
  contentOf,
  isCurrent,
  openingOf,
  RunAgentInput,
} from "./input.ts";
import { frameOf, idleFrames, type ProjectOptions, project, type Reader } from "./project.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const StopParams = AgentParams.extend({ thread_id: z.string().min(1).max(1024) });

const Events = z.string().describe("Server-Sent Events: as `data` an event of AG-UI.");
const Info = z.looseObject({ version: z.string(), agents: z.record(z.string(), z.unknown()) });

/** What a CopilotKit runtime of this version would say of itself. */
const RUNTIME = {
  version: "1.75.0",
  audioFileTranscriptionEnabled: false,
  mode: "sse",
  threadEndpoints: { list: false, inspect: false, mutations: false, realtimeMetadata: false },
  suggestions: false,
  a2uiEnabled: false,
  openGenerativeUIEnabled: false,
  telemetryDisabled: true,
};

export function aguiRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, agents } = services;
  const { threads } = stores;
  const tags = ["ag-ui"];
  const stream = { 200: { content: { "text/event-stream": { schema: Events } } } };
  app.setErrorHandler<Error>((error, request, reply) => {
    const { code, detail } = refuse(error, request, reply);
    return reply.type("application/json").send(JSON.stringify({ error: code, message: detail }));
  });

  app.get(
    "/info",
    {
      schema: {
        summary: "The agents, as a CopilotKit runtime lists them",
        tags,
        response: { 200: Info },
      },
    },
    async () => ({
      ...RUNTIME,
      agents: Object.fromEntries(
        agents
          .list()
          .map(({ name, description = "" }) => [name, { name, description, className: "HttpAgent" }]),
      ),
    }),
  );

  app.post(
    "/agent/:agent/run",
    {
      sse: "manual",
      schema: {
        summary: "Send the newest message of a thread, or answers, and follow the run",
        description: "What AG-UI's HttpAgent and CopilotKit send and read. See docs/wires/ag-ui.md.",
        tags,
        params: AgentParams,
        body: RunAgentInput,
        response: stream,
      },
    },
    async (request, reply) => {
      const { body } = request;
      const owner = ownerOf(request);
      const place = { owner, thread_id: threadIdOf(body.threadId), agent: agentNamed(request.params.agent) };
      const doesCancel = cancelsOnLeave(body);
      const begun = await (isAnswer(body) ? answer(place, request) : say(place, request));
      const end = endOf();
      await streamRun(services, reply, {
        owner,
        start: begun.start,
        framesOf: (run) => end.watched(framesOf(owner, run, { ...readerOf(body), ...begun.before })),
        cancelsOnLeave: doesCancel,
        earlyEnd: end.early,
      });
      return undefined;
    },
  );

  app.post(
    "/agent/:agent/connect",
    {
      sse: "manual",
      schema: {
        summary: "The thread's messages, then the run that is at work",
        description: "What CopilotKit asks when a page opens a thread. Of an unknown thread it is empty.",
        tags,
        params: AgentParams,
        body: RunAgentInput,
        response: stream,
      },
    },
    async (request, reply) => {
      const { body } = request;
      agentNamed(request.params.agent);
      const end = endOf();
      const frames = await connected(ownerOf(request), body);
      await streams.send(reply, end.watched(frames), "comment", end.early);
      return undefined;
    },
  );

  app.post(
    "/agent/:agent/stop/:thread_id",
    {
      schema: {
        summary: "Cancel the run that is at work",
        tags,
        params: StopParams,
        response: { 200: z.object({ stopped: z.boolean() }) },
      },
    },
    async (request) => {
      agentNamed(request.params.agent);
      const owner = ownerOf(request);
      const run = await atWork(owner, threadIdOf(request.params.thread_id));
      if (run) await cancelIfActive(runs, keyOf(owner, run));
      return { stopped: run !== undefined };
    },
  );

  interface Place {
    readonly owner: Owner;
    readonly thread_id: string;
    readonly agent: string;
  }
  type Before = Omit<ProjectOptions, keyof Reader>;
  interface Begun {
    /** Starts the run, or finds it. */
    readonly start: (stream: string) => Promise<RunRecord>;
    readonly before: Before;
  }
  type RunAgentRequest = FastifyRequest<{ Body: RunAgentInput }>;

  /** The newest message is the user's: it begins a run, takes the place of an earlier one, or is a repeat. */
  async function say({ owner, thread_id, agent }: Place, request: RunAgentRequest): Promise<Begun> {
    const { body } = request;
    const [known, state, active] = await Promise.all([
      threads.messages(owner, thread_id),
      threads.state(owner, thread_id),
      atWork(owner, thread_id),
    ]);
    const { message, place } = newestOf(body, known, active !== undefined);
    if (place.as === "repeat" && active)
      return { start: async () => active, before: await beforeRun(owner, active, false) };
    const opening = known.length === 0 ? openingOf(body) : [];
    if (services.refusesSystemMessages && opening.length > 0)
      throw new AppError(
        "invalid_request",
        "messages, context: this server accepts no `system` messages from users. Use `user`.",
      );
    const { api_key, origin } = sentBy(request);
    const command = {
      thread_id,
      agent,
      metadata: {},
      on_busy: "reject" as const,
      request: {
        input: [...opening, message],
        settings: {},
        ...omitUndefined({ tools: clientTools(body), api_key, origin }),
      },
      ...(place.as === "replacement" ? { rewind_to: place.of } : {}),
      idempotency_key: idempotencyKey(request) ?? keyOfMessage(message, known),
    };
    const messages =
      place.as === "replacement"
        ? known.slice(
            0,
            known.findIndex(({ id }) => id === place.of),
          )
        : known;
    return {
      start: (stream) => startRun(runs, owner, { ...command, stream }),
      before: { messages, state, showsMessages: false },
    };
  }

  async function answer({ owner, thread_id }: Place, request: RunAgentRequest): Promise<Begun> {
    const { body } = request;
    const [messages, state, open] = await Promise.all([
      threads.messages(owner, thread_id),
      threads.state(owner, thread_id),
      openOn(threads, owner, thread_id),
    ]);
    const answers = answersIn(body, open);
    const run_id = open.find(({ id }) => id === answers[0]?.id)?.run_id;
    if (run_id === undefined)
      throw new AppError("interrupt_closed", "Nothing in this input answers an open question of the thread.");
    const newest = await newestRun(stores.runs, owner, thread_id);
    const resume = {
      thread_id,
      run_id: newest?.id ?? run_id,
      answers,
      ...sentBy(request),
      ...omitUndefined({ tools: clientTools(body), idempotency_key: idempotencyKey(request) }),
    };
    // The client's own record of a result gives way to the thread's.
    const showsMessages = body.messages.some(
      ({ role, toolCallId }) => role === "tool" && open.some(({ call_id }) => call_id === toolCallId),
    );
    return {
      start: (stream) => resumeRun(runs, owner, { ...resume, stream }),
      before: { messages, state, showsMessages },
    };
  }

  /** The thread as it is, then the run that is at work, if there is one. */
  async function connected(owner: Owner, body: RunAgentInput): Promise<Frames> {
    const thread_id = threadIdOf(body.threadId);
    if (!(await threads.get(owner, thread_id))) return async function* () {};
    const active = await atWork(owner, thread_id);
    if (active)
      return framesOf(owner, active, { ...readerOf(body), ...(await beforeRun(owner, active, true)) });
    const [messages, state, open] = await Promise.all([
      threads.messages(owner, thread_id),
      threads.state(owner, thread_id),
      openOn(threads, owner, thread_id),
    ]);
    return async function* () {
      yield idleFrames(readerOf(body), { messages, state, open });
    };
  }

  /** The thread without what the events of this run will tell. */
  async function beforeRun(owner: Owner, run: RunRecord, showsMessages: boolean): Promise<Before> {
    const { thread_id } = run;
    const [messages, state] = await Promise.all([
      threads.messages(owner, thread_id),
      threads.state(owner, thread_id),
    ]);
    const told = await toldBy(owner, run, messages);
    return { messages: messages.filter(({ id }) => !told.has(id)), state, showsMessages };
  }

  /** The ids of the messages that the run has added, but for those that it began with. */
  async function toldBy(owner: Owner, run: RunRecord, messages: readonly Message[]): Promise<Set<string>> {
    const key = keyOf(owner, run);
    const told = new Set<string>();
    let hasSpoken = false;
    try {
      const { last } = await stores.events.bounds(key);
      for await (const { event, json } of readLogRange(stores.events, key, { after: 0, last })) {
        hasSpoken ||= event === "on_chat_model_start";
        if (event !== "on_message") continue;
        // Events were checked when they were appended.
        const { path, data } = JSON.parse(json) as Extract<StreamEvent, { event: "on_message" }>;
        const isInput = !hasSpoken && data.message.role !== "tool";
        if (!path && !isInput) told.add(data.message.id);
      }
      return told;
    } catch (error) {
      if (!hasCode(error, "events_expired")) throw error;
      return new Set(sinceUser(messages).map(({ id }) => id));
    }
  }

  function framesOf(owner: Owner, from: RunRecord, options: ProjectOptions): Frames {
    const held = new Set(options.messages.map(({ id }) => id));
    const messages = async () =>
      sinceUser(await threads.messages(owner, from.thread_id)).filter(({ id }) => !held.has(id));
    return foldedFrames(stores, { owner, from, fold: project(options), unit: "run", messages });
  }

  async function atWork(owner: Owner, threadId: string): Promise<RunRecord | undefined> {
    const newest = await newestRun(stores.runs, owner, threadId);
    return newest && !isSettled(newest.status) ? newest : undefined;
  }

  function agentNamed(name: string): string {
    return agents.seenWith(name, undefined).agent.name;
  }
}

const readerOf = (body: RunAgentInput): Reader => ({
  threadId: body.threadId,
  runId: body.runId,
  isCurrent: isCurrent(body),
});

/** Whether the newest thing in the input is an answer, and no message of the user. */
function isAnswer({ resume, messages }: RunAgentInput): boolean {
  if (resume && resume.length > 0) return true;
  return messages.findLast(({ role }) => role === "user" || role === "tool")?.role === "tool";
}

/** The user's newest message, and what it is to the thread. Throws `invalid_request` when there is nothing new. */
function newestOf({ messages: sent }: RunAgentInput, known: readonly Message[], isBusy: boolean) {
  const at = sent.findLastIndex(({ role }) => role === "user");
  const newest = sent[at];
  if (!newest) throw new AppError("invalid_request", "messages: there is none of the role `user`.");
  const message = messageOf({ id: newest.id ?? undefined, content: contentOf(newest) });
  const before = sent.slice(0, at).filter(({ role }) => role === "user");
  const held = [...before.map(({ id }) => ({ id: id ?? undefined, content: "" })), message];
  const place: Alignment = align(known, held, { isWhole: true, isRegenerated: !isBusy });
  const isAnswered = sent.slice(at + 1).some(({ role }) => role === "assistant");
  if (place.as === "replacement" && place.of === message.id && isAnswered)
    throw new AppError(
      "invalid_request",
      "messages: there is nothing new. Add a message; or for another answer, leave out the old one.",
    );
  return { message, place };
}

const sinceUser = (messages: readonly Message[]) =>
  messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);

const END = /^\{"type":"RUN_(?:FINISHED|ERROR)"/;

/**
 * How a stream ends before its run does: by an error of the protocol. Its clients take a clean end for success, and one of
 * them ends its process when the connection is cut.
 */
function endOf() {
  let isOver = false;
  const early: EarlyEnd = ({ message, code }) =>
    isOver ? [] : [frameOf({ type: "RUN_ERROR", message, code })];
  const watched = (frames: Frames): Frames =>
    async function* (signal) {
      for await (const batch of frames(signal)) {
        isOver ||= batch.some(({ data }) => typeof data === "string" && END.test(data));
        yield batch;
      }
    };
  return { early, watched };
}
