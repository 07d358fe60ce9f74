// What keeps a model from going in circles: loop_detection, stall_detection, failure_reflection, progress_reminder. They
// read the thread since the user's newest message, so an approval or a crash in between changes nothing.

import { z } from "zod";
import { isObject } from "../../lib/json.ts";
import { causeText } from "../../protocol/end-texts.ts";
import { warning } from "../../protocol/event.ts";
import { RunLimit } from "../core/errors.ts";
import { defineHook } from "../core/hook.ts";
import {
  assistantMessages,
  type Content,
  type Message,
  type ToolCall,
  type ToolMessage,
  textOf,
  toolMessages,
} from "../core/message.ts";
import { failed, type Run } from "../core/tool.ts";
import { reminders } from "./reminders.ts";

const times = z.int().min(2).max(100);

export const loopDetection = defineHook({
  name: "loop_detection",
  options: z
    .strictObject({
      window: times.default(10).describe("The newest calls, so many, are compared."),
      warn_at: times.default(3).describe("So many equal ones among them: the model is warned."),
      end_at: times.default(5).describe("So many equal ones among them: the run ends."),
      except: z.array(z.string().min(1)).default([]).describe("Tools that may be called repeatedly."),
    })
    .refine(
      ({ window, warn_at, end_at }) => warn_at < end_at && end_at <= window,
      "warn_at must be less than end_at, and end_at no more than window",
    ),
  activeByDefault: () => false,
  create({ window, warn_at, end_at, except }) {
    const free = new Set(except);
    let looping: string | undefined;
    return {
      name: "loop_detection",

      modifyRequest(request) {
        if (looping !== undefined)
          throw new RunLimit("loop_detected", causeText(looping), { limit: "loop_detection" });
        return request;
      },

      async *wrapToolCall(request, next, run) {
        const { call } = request;
        const count = free.has(call.name) ? 0 : timesCalled(call, run.messages, window);
        if (count >= end_at) {
          looping = `\`${call.name}\` was called ${count} times with the same arguments`;
          return failed(`Not run: ${looping}.`);
        }
        const result = yield* next(request);
        if (count < warn_at || result.status !== "done") return result;
        return { ...result, output: withNote(result.output, loopNote(call, count)) };
      },
    };
  },
});

/** How often the call was made among the newest `window` calls up to it, itself included. */
function timesCalled({ id }: ToolCall, messages: readonly Message[], window: number): number {
  const since = messages.findLastIndex(({ role }) => role === "user");
  const calls = assistantMessages(messages.slice(since + 1)).flatMap(({ tool_calls = [] }) => tool_calls);
  const at = calls.findLastIndex((call) => call.id === id);
  const recent = calls.slice(Math.max(0, at + 1 - window), at + 1).map(identity);
  return recent.filter((each) => each === recent.at(-1)).length;
}

/** The order of the arguments does not matter. */
function identity({ name, args, malformed }: ToolCall): string {
  return JSON.stringify([name, malformed ?? args], (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

function loopNote({ name }: ToolCall, count: number): string {
  return `[You have called \`${name}\` ${count} times with the same arguments. Doing it again will not help: try another way, or tell the user what keeps you.]`;
}

function withNote(output: Content, note: string): Content {
  if (typeof output === "string") return output ? `${output}\n\n${note}` : note;
  return [...output, { type: "text", text: note }];
}

/** Results that begin alike are alike. */
const COMPARED_CHARS = 200;

/** Warns the model when results repeat, and ends the run if as many further results bring nothing new. */
export const stallDetection = defineHook({
  name: "stall_detection",
  options: z.strictObject({
    window: z.int().min(2).max(100).default(6).describe("The newest results, so many, are compared."),
    alike: z
      .number()
      .gt(0)
      .lt(1)
      .default(0.8)
      .describe("Part of them that say what another one of them has said before."),
  }),
  activeByDefault: () => false,
  create({ window, alike }) {
    const notes = reminders();
    let toldAt: number | undefined;
    return {
      name: "stall_detection",
      // Not earlier: a hook that leaves old turns out would take the reminder for the beginning of one.
      async *wrapModelCall(request, next, run, deltas) {
        const results = resultsSinceUser(run.messages);
        const stalls = results.length >= window && repeated(results.slice(-window)) >= alike * window;
        if (!stalls) toldAt = undefined;
        else if (toldAt === undefined) {
          toldAt = results.length;
          const state = `The last ${window} results say nothing new.`;
          yield warning("stalled", state);
          notes.add(`${state} ${ADVICE}`, run);
        } else if (results.length >= toldAt + window)
          throw new RunLimit("loop_detected", causeText(`it made no progress in ${window} further calls`), {
            limit: "stall_detection",
          });
        return yield* next({ ...request, messages: notes.among(request.messages) }, deltas);
      },
    };
  },
});

const ADVICE =
  "Step back: what do you want to find out, and why do you not? Try something of another kind, or tell the user what keeps you.";

function resultsSinceUser(messages: readonly Message[]): ToolMessage[] {
  return toolMessages(messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1));
}

/** How many of them repeat an earlier one. */
const repeated = (results: readonly ToolMessage[]) => results.length - new Set(results.map(likeness)).size;

function likeness({ name, content, error }: ToolMessage): string {
  const start = (text: string) => text.slice(0, COMPARED_CHARS);
  return JSON.stringify([name, start(textOf(content)), error === undefined ? null : start(error)]);
}

/** Asks a model to reflect once every call of several steps has failed. Only the model sees it, once per further failure. */
export const failureReflection = defineHook({
  name: "failure_reflection",
  userMay: "configure",
  options: z.strictObject({
    after: z.int().min(1).max(100).default(2).describe("Steps in a row in which every call failed."),
  }),
  activeByDefault: () => false,
  create({ after }) {
    const notes = reminders();
    let told = 0;
    return {
      name: "failure_reflection",
      // Not earlier: a hook that leaves old turns out would take the reminder for the beginning of one.
      async *wrapModelCall(request, next, run, deltas) {
        const failures = failedSteps(run.messages);
        if (failures >= after && failures > told) notes.add(failureNote(failures), run);
        told = failures;
        return yield* next({ ...request, messages: notes.among(request.messages) }, deltas);
      },
    };
  },
});

/** How many of the newest steps in a row failed, since the user spoke. A step fails when all its calls do. */
function failedSteps(messages: readonly Message[]): number {
  let count = 0;
  let end = messages.length;
  for (;;) {
    const at = messages.slice(0, end).findLastIndex(({ role }) => role === "assistant" || role === "user");
    const results = toolMessages(messages.slice(at + 1, end));
    const isFailure = results.length > 0 && results.every(({ error }) => error !== undefined);
    if (messages[at]?.role !== "assistant" || !isFailure) return count;
    count++;
    end = at;
  }
}

function failureNote(failures: number): string {
  const steps = failures === 1 ? "Your last step has" : `Your last ${failures} steps have`;
  return `${steps} failed. Before you do anything else, say in a few sentences what went wrong each time, what the cause is (a wrong path, a wrong approach, something missing?), and what you will do differently.`;
}

/** Reminds the model of its plan when its todos have not changed for some steps, and of the end when few calls are left. */
export const progressReminder = defineHook({
  name: "progress_reminder",
  userMay: "configure",
  options: z.strictObject({
    every: z.int().min(1).max(1000).default(5).describe("Model calls without a change of the todos."),
    last: z
      .int()
      .min(0)
      .max(100)
      .default(3)
      .describe("Model calls left of max_iterations when the model is reminded, and at the last; 0 = never."),
  }),
  activeByDefault: () => false,
  create({ every, last }, { agent }) {
    const notes = reminders();
    let calls = 0;
    return {
      name: "progress_reminder",
      modifyRequest(request, run) {
        calls++;
        const steps = stepsWithoutProgress(run.messages);
        if (steps > 0 && steps % every === 0) {
          const text = progressNote(steps, run);
          if (text) notes.add(text, run);
        }
        const left = agent.max_iterations - calls + 1;
        if (agent.max_iterations > 0 && last > 0 && (left === last || left === 1))
          notes.add(endNote(left), run);
        return { ...request, messages: notes.among(request.messages) };
      },
    };
  },
});

/** Model calls since the user spoke, or since the todos were written. */
function stepsWithoutProgress(messages: readonly Message[]): number {
  const since = messages.findLastIndex(
    (message) =>
      message.role === "user" ||
      (message.role === "tool" && message.name === "write_todos" && message.error === undefined),
  );
  return assistantMessages(messages.slice(since + 1)).length;
}

/** Asks only for steps that the agent has tools for; empty without any. */
function progressNote(steps: number, run: Run): string | undefined {
  const open = openTodos(run);
  const asks = [
    ...(run.tools.has("write_todos") ? [open.length > 0 ? UPDATE_TODOS : MAKE_TODOS] : []),
    ...(run.tools.has("write_note") ? [WRITE_NOTE] : []),
  ];
  if (asks.length === 0) return undefined;
  const list = open.slice(0, MAX_SHOWN).map((title) => `- ${title}`);
  const plan = open.length > 0 ? ["Still open in your todos:", ...list] : [];
  return [`You have taken ${steps} steps since you last took stock.`, ...plan, ...asks].join("\n");
}

const MAX_SHOWN = 10;
const UPDATE_TODOS = "Bring them up to date with write_todos, and continue with what is open.";
const MAKE_TODOS = "If much is left to do, plan it with write_todos; if not, finish.";
const WRITE_NOTE = "Keep what you have found out, and will need later, with write_note.";

const Todos = z.array(z.object({ title: z.string(), status: z.string() }));

function openTodos({ state }: Run): string[] {
  const todos = Todos.safeParse(state.get("todos")).data ?? [];
  return todos.filter(({ status }) => status !== "done").map(({ title }) => title);
}

function endNote(left: number): string {
  if (left === 1)
    return "This is the last answer that you can give in this run: you will see no more tool results. Answer the user now, and say what is left to do.";
  return `You can give ${left} more answers in this run, this one included. Finish what matters most.`;
}
