// The built-in tools that agents may name.

import { LRUCache } from "lru-cache";
import { z } from "zod";
import { atMost } from "../../lib/lru.ts";
import { askFor } from "../core/open-interrupts.ts";
import { defineTool, done, failed, interrupted, type Tool } from "../core/tool.ts";

/** Interrupts the run until the user has answered. */
export const askUser = defineTool({
  name: "ask_user",
  description:
    "Asks the user a question and waits for the answer. Use it when you need the answer to continue, not for things that you can find out yourself.",
  parameters: z.object({
    question: z.string().min(1).max(4000).describe("One clear question."),
    kind: z
      .enum(["confirm", "select", "multi_select", "input"])
      .default("input")
      .describe("Kind of answer: yes or no, one of `options`, several of `options`, or free text."),
    options: z.array(z.string().min(1).max(200)).max(20).default([]).describe("The options to choose from."),
  }),
  annotations: { readOnly: true, category: "plan", requiresPermission: false },
  async *execute({ question, kind, options }, call, run) {
    if ((kind === "select" || kind === "multi_select") && options.length < 2)
      return failed(`A question of kind \`${kind}\` needs at least two options.`);
    const choices = kind === "confirm" ? ["yes", "no"] : options;
    const answer = yield* askFor(
      {
        call,
        kind: "question",
        prompt: question,
        oneOfOptions: kind === "select",
        ...(choices.length > 0 ? { options: choices } : {}),
      },
      run,
    );
    if (!answer) return interrupted();
    if (answer.decision === "respond") return done(answer.message ?? "");
    const words = `The user does not want to answer.${answer.message ? ` ${answer.message}` : ""}`;
    return { ...done(words), denied: true };
  },
});

const MAX_FORMATS = 64;
/** The formats, by time zone. Creating a format takes longer than all other work of the call. */
const formats = new LRUCache<string, Intl.DateTimeFormat>(atMost(MAX_FORMATS));

function formatIn(timeZone: string): Intl.DateTimeFormat {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long", timeZone });
  formats.set(timeZone, format);
  return format;
}

export const currentDatetime = defineTool({
  name: "current_datetime",
  description: "Returns the current date, weekday and time, in UTC and in a time zone of your choice.",
  parameters: z.object({
    time_zone: z
      .string()
      .max(64)
      .default("UTC")
      .describe("IANA name of the time zone, such as Europe/Berlin."),
  }),
  annotations: { readOnly: true, category: "read", requiresPermission: false },
  execute({ time_zone }) {
    const now = new Date();
    try {
      const there = formatIn(time_zone).format(now);
      return JSON.stringify({ utc: now.toISOString(), time_zone, there });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return failed(`There is no time zone \`${time_zone}\`. Use an IANA name such as Europe/Berlin.`);
    }
  },
});

export const nativeTools: readonly Tool[] = [askUser, currentDatetime];
