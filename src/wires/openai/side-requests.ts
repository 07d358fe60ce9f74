// Side requests of chat front ends, such as titles and tags, which they send to the chat's own model. No agent answers
// them, because a simple answer is enough and the chat must not contain messages that no user wrote.

import type { IncomingHttpHeaders } from "node:http";
import { userMessage } from "../../agent/core/message.ts";
import { titleFrom } from "../../agent/core/title.ts";
import { firstChars } from "../../lib/text.ts";
import { isFilled } from "./given.ts";

/** A side request: its job, and the user's messages in the chat that it quotes, oldest first. */
export interface SideRequest {
  readonly job: string;
  readonly words: readonly string[];
  /** True if the answer is plain text: LibreChat uses the title as text, but Open WebUI reads JSON. */
  readonly isPlain: boolean;
}

/** The number of characters of a request to search for its job. */
const HEAD_CHARS = 8_000;
/** The number of characters at the start of a request that name the task. */
const TASK_CHARS = 200;

/** The messages of a request that are not instructions. */
export interface RequestText {
  /** The newest message. */
  readonly text: string;
  /** True if the request has no other message. */
  readonly isAlone: boolean;
}

/**
 * Returns the side request of a front end, if it is one. Open WebUI names the job in a header. If the header is
 * missing, templates of Open WebUI and LibreChat are recognized by their text.
 */
export function sideRequest(headers: IncomingHttpHeaders, asked: RequestText): SideRequest | undefined {
  if (isBesideChat(headers, asked)) return undefined;
  const told = jobIn(headers);
  const job = told ?? (asked.isAlone ? jobOf(asked.text) : undefined);
  if (job === undefined) return undefined;
  const isPlain = told === undefined && asked.text.startsWith(LIBRECHAT);
  return { job, words: wordsIn(asked.text), isPlain };
}

function jobIn(headers: IncomingHttpHeaders): string | undefined {
  const job = headers["x-openwebui-task"];
  return typeof job === "string" && isFilled(job) ? job : undefined;
}

/**
 * Returns true if a model must answer a request that names a chat but is not part of it: Open WebUI merges several
 * answers, and LibreChat requests a title in its own schema.
 */
export const isBesideChat = (headers: IncomingHttpHeaders, { text, isAlone }: RequestText): boolean =>
  jobIn(headers) === "moa_response_generation" ||
  (isAlone && text.startsWith(LIBRECHAT_STRUCTURED) && text.slice(0, HEAD_CHARS).includes("A concise title"));

const OPEN_WEBUI = "### Task:";
const LIBRECHAT = "Provide a concise, 5-word-or-less title for the conversation";
const LIBRECHAT_STRUCTURED = "Analyze this conversation and provide:";

/** The JSON key that each Open WebUI template requests. */
const JOBS: Readonly<Record<string, string>> = {
  title: "title_generation",
  tags: "tags_generation",
  follow_ups: "follow_up_generation",
  queries: "query_generation",
  text: "autocomplete_generation",
  prompt: "image_prompt_generation",
};

function jobOf(text: string): string | undefined {
  if (text.startsWith(LIBRECHAT)) return JOBS.title;
  if (!text.startsWith(OPEN_WEBUI) || !text.includes(BEGIN) || !text.includes(END)) return undefined;
  const [, key = ""] =
    /\{\s{0,20}"(title|tags|follow_ups|queries|text|prompt)":/.exec(text.slice(0, HEAD_CHARS)) ?? [];
  return JOBS[key] ?? (text.slice(0, TASK_CHARS).includes("title") ? JOBS.title : UNKNOWN_JOB);
}

/** A template written by the operator. */
const UNKNOWN_JOB = "side_job";

const BEGIN = "<chat_history>";
const END = "</chat_history>";
const CONVERSATION = "Conversation:\n";
const SPEAKER = /^(USER|User|ASSISTANT|AI|Assistant|SYSTEM|System|TOOL|Tool): ?/;

/** Returns the user's messages in the quoted chat, or the whole text if the request does not quote a chat. */
function wordsIn(text: string): string[] {
  const chat = quotedChat(text);
  if (chat === undefined) return text.startsWith(OPEN_WEBUI) || text === "" ? [] : [text];
  const words: string[] = [];
  let isUser = true;
  for (const line of chat.split("\n")) {
    const [prefix, speaker] = SPEAKER.exec(line) ?? [];
    if (speaker) isUser = speaker.toLowerCase() === "user";
    if (isUser && (prefix !== undefined || words.length === 0)) words.push(line.slice(prefix?.length ?? 0));
    else if (isUser) words.push(`${words.pop()}\n${line}`);
  }
  return words.map((each) => each.trim()).filter((each) => each !== "");
}

function quotedChat(text: string): string | undefined {
  const begin = text.indexOf(BEGIN);
  if (begin >= 0) {
    const end = text.lastIndexOf(END);
    return text.slice(begin + BEGIN.length, end < 0 ? undefined : end);
  }
  const conversation = text.startsWith(LIBRECHAT) ? text.indexOf(CONVERSATION) : -1;
  return conversation < 0 ? undefined : text.slice(conversation + CONVERSATION.length);
}

/** The maximum length of a search query. */
const QUERY_CHARS = 400;

/**
 * Returns the answer in the form that the front end reads. `title` is the chat's own title, for a request that does not
 * quote the chat.
 */
export function sideAnswer({ job, words, isPlain }: SideRequest, title?: string): string {
  const newest = firstChars(words.at(-1) ?? "", QUERY_CHARS);
  const asked = titleFrom(words.map((each) => userMessage(each))) ?? title ?? "Chat";
  if (isPlain) return asked;
  const answers: Readonly<Record<string, object>> = {
    title_generation: { title: asked },
    tags_generation: { tags: [] },
    follow_up_generation: { follow_ups: [] },
    query_generation: { queries: newest === "" ? [] : [newest] },
    autocomplete_generation: { text: "" },
    image_prompt_generation: { prompt: newest },
    function_calling: { tool_calls: [] },
  };
  return job === "emoji_generation" ? "💬" : JSON.stringify(answers[job] ?? {});
}
