// The hook with a small window, a model that keeps what it is asked, and conversations of any length.

import { conversation, type Message, textOf } from "../../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../../src/agent/core/model.ts";
import { summarization } from "../../../../src/agent/hooks/summarization/index.ts";
import { scriptedModel, type Turn } from "../../../../src/agent/models/scripted.ts";
import { made } from "../made.ts";

export const WINDOW = 10_000;
export const compacting = (options = {}) =>
  made(summarization, { agent: { context_window: WINDOW }, options });

const isSummary = (request: ModelRequest) => request.system[0]?.id === "summarization";
export const promptOf = (request: ModelRequest | undefined) => textOf(request?.messages[0]?.content ?? "");

/** A model that keeps what it is asked, and answers a request for a summary with `summary`. */
export function listening({
  summary = { say: "SUMMARY" },
  turns = [{ say: "ok" }],
}: {
  summary?: Turn | ((nth: number) => Turn);
  turns?: Turn[];
} = {}) {
  const asked: ModelRequest[] = [];
  const summaries: ModelRequest[] = [];
  const model = scriptedModel((request) => {
    if (!isSummary(request)) return turns[asked.push(request) - 1] ?? { say: "ok" };
    const nth = summaries.push(request);
    return typeof summary === "function" ? summary(nth) : summary;
  });
  return { model, asked, summaries };
}

/** `count` exchanges of about `tokens` tokens each. */
export function talk(count: number, tokens: number, name = ""): Message[] {
  const text = "word ".repeat((tokens * 4) / 10);
  let talk = conversation();
  for (let nth = 0; nth < count; nth++)
    talk = talk.user(`q${name}${nth} ${text}`).assistant(`a${name}${nth} ${text}`);
  return [...talk.messages];
}

export const full = () => talk(20, 450);
