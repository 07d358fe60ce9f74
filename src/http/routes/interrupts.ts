// Interrupts: what waits for somebody's answer, and the answers.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import { type Answer, Interrupt, type InterruptKind } from "../../core/interrupt.ts";
import { openInterrupts } from "../../core/interrupts.ts";
import { unanswered } from "../../core/messages.ts";
import { RunRecord } from "../../core/stores.ts";
import { given } from "../../lib/given.ts";
import { notFound } from "../../runs/manager.ts";
import { ownerOf } from "../auth/guard.ts";
import { replyWithRun } from "../run-reply.ts";
import { FinishedRun, PageQuery, ResumeBody, RunParams, ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const Stream = z.string().describe("Server-Sent Events, as of any run.");

/** What may be said to what. */
const DECISIONS: Record<InterruptKind, readonly Answer["decision"][]> = {
  approval: ["approve", "deny", "edit", "respond"],
  question: ["respond", "deny"],
  tool: ["respond", "deny"],
};

const OpenInterrupt = Interrupt.extend({ thread_id: z.string() }).meta({ id: "OpenInterrupt" });

export function interruptRoutes(app: App, { stores, runs, streams }: RouteServices): void {
  const tags = ["interrupts"];

  app.get(
    "/threads/:thread_id/interrupts",
    {
      schema: {
        summary: "What waits for an answer on a thread",
        tags,
        params: ThreadParams,
        response: { 200: z.object({ items: z.array(Interrupt) }) },
      },
    },
    async (request) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      if (!(await stores.threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return { items: await openOn(owner, thread_id) };
    },
  );

  app.get(
    "/interrupts",
    {
      schema: {
        summary: "What waits for an answer on any of the user's threads",
        description: "By thread, last changed first.",
        tags,
        querystring: PageQuery,
        response: { 200: z.object({ items: z.array(OpenInterrupt), next_cursor: z.string().optional() }) },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const page = await stores.threads.list(owner, { ...given(request.query), status: "interrupted" });
      const found = page.items.map(async ({ id }) =>
        (await openOn(owner, id)).map((interrupt) => ({ ...interrupt, thread_id: id })),
      );
      return { items: (await Promise.all(found)).flat(), ...given({ next_cursor: page.next_cursor }) };
    },
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/resume",
    {
      sse: "manual",
      schema: {
        summary: "Answer what an interrupted run waits for, and go on",
        description:
          "Starts a new run on the thread, with what the interrupted one asked for answered. What is not answered is asked again. The first answer counts: a later one gets 409. Replies like the start of a run.",
        tags,
        params: RunParams,
        body: ResumeBody,
        response: {
          200: {
            content: { "text/event-stream": { schema: Stream }, "application/json": { schema: FinishedRun } },
          },
          202: RunRecord,
          204: z.null(),
        },
      },
    },
    async (request, reply) => {
      const { thread_id, run_id } = request.params;
      const { answers, tools, background, on_disconnect } = request.body;
      const owner = ownerOf(request);
      const starting = {
        ...{ owner, background, onDisconnect: on_disconnect },
        async run() {
          const { status, agent, metadata } = await runs.get(owner, thread_id, run_id);
          if (status !== "interrupted")
            throw new AppError("run_not_active", `Run \`${run_id}\` waits for nothing (${status}).`);
          checkAnswers(answers, await openOn(owner, thread_id));
          return runs.start(owner, {
            ...{ thread_id, agent, messages: [], settings: {}, answers, on_busy: "reject" },
            metadata: { ...metadata, resumes: run_id },
            ...given({ tools }),
          });
        },
      };
      return replyWithRun({ runs, streams }, starting, request, reply);
    },
  );

  async function openOn(owner: Owner, threadId: string): Promise<Interrupt[]> {
    const open = openInterrupts(new Map(Object.entries(await stores.threads.state(owner, threadId))));
    if (open.length === 0) return open;
    // A run that failed has answered its calls, and says nothing of what was asked about them.
    const calls = unanswered(await stores.threads.messages(owner, threadId)).map(({ id }) => id);
    return open.filter(({ call_id }) => calls.includes(call_id));
  }
}

/** Throws `interrupt_closed` for one that is not open, `invalid_request` for an answer that does not fit. */
function checkAnswers(answers: readonly Answer[], open: readonly Interrupt[]): void {
  if (new Set(answers.map(({ id }) => id)).size < answers.length)
    throw new AppError("invalid_request", "answers: each interrupt has one answer.");
  for (const { id, decision, args } of answers) {
    const interrupt = open.find((each) => each.id === id);
    if (!interrupt)
      throw new AppError(
        "interrupt_closed",
        `There is nothing open under \`${id}\`: it was answered, or is over.`,
      );
    const fits = DECISIONS[interrupt.kind];
    if (!fits.includes(decision))
      throw new AppError("invalid_request", `answers: \`${id}\` takes ${fits.join(", ")}; not ${decision}.`);
    if ((decision === "edit") !== (args !== undefined))
      throw new AppError(
        "invalid_request",
        `answers: \`args\` come with \`edit\`, and only with it (\`${id}\`).`,
      );
  }
}
