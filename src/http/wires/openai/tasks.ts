// Side jobs of a front end, such as a title for the chat. No agent is asked: an answer that says little is enough.

import type { FastifyRequest } from "fastify";
import { userMessage } from "../../../core/message.ts";
import { titleFrom } from "../../../core/title.ts";

/** The side job that Open WebUI names, if it does. */
export function taskOf({ headers }: FastifyRequest): string | undefined {
  const task = headers["x-openwebui-task"];
  return typeof task === "string" && task !== "" ? task : undefined;
}

/** The first words of the chat as its title; of every other job an empty object. */
export function taskAnswer(task: string, words: string): string {
  if (task !== "title_generation") return "{}";
  return JSON.stringify({ title: titleFrom([userMessage(words)]) ?? "Chat" });
}
