// Continues a conversation when a provider rejects an image or a document in it. The hook repeats the request without the
// file. If that succeeds, the thread stores the message's id, and the model never receives the message's files again.

import { z } from "zod";
import { warning } from "../../protocol/event.ts";
import { AppError } from "../core/errors.ts";
import { type CallModel, defineHook } from "../core/hook.ts";
import type { Content, Message, Part } from "../core/message.ts";
import type { Completion, Model, ModelRequest } from "../core/model.ts";
import { patchState, repeatModelCall } from "../core/run.ts";
import type { DeltaSink, Stream } from "../core/stream.ts";
import type { Run } from "../core/tool.ts";

/** The state key for the ids of messages whose files were rejected, listed per model, oldest first. */
const STATE_KEY = "refused_files";
/** The maximum number of message ids to store per model. */
const MAX_REMEMBERED = 500;

export const refusedFiles = defineHook({
  name: "refused_files",
  options: z.strictObject({}),
  activeByDefault: () => true,
  create: () => ({
    name: "refused_files",
    async *wrapModelCall(request, next, run, deltas) {
      const known = new Set(remembered(request.model, run));
      const shown = known.size === 0 ? request : without(request, known);
      try {
        return yield* next(shown, deltas);
      } catch (error) {
        if (shown.signal.aborted || !mayBeAboutFiles(error)) throw error;
        const completion = yield* askWithout(shown, next, run, deltas);
        if (!completion) throw error;
        return completion;
      }
    },
  }),
});

/** Repeats the request without files. Returns undefined when the model rejects that request too. */
async function* askWithout(
  request: ModelRequest,
  next: CallModel,
  run: Run,
  deltas: DeltaSink | undefined,
): Stream<Completion | undefined> {
  for (const suspects of suspectsIn(request.messages)) {
    repeatModelCall(run);
    try {
      const completion = yield* next(without(request, suspects), deltas);
      yield* remember(suspects, request.model, run);
      yield warning("files_left_out", told(request.messages, suspects));
      return completion;
    } catch (error) {
      if (request.signal.aborted || !mayBeAboutFiles(error)) throw error;
    }
  }
  return undefined;
}

/**
 * Returns ids of messages with files: first the messages after the model's last reply, which the model has
 * not seen yet, then all messages.
 */
function suspectsIn(messages: readonly Message[]): ReadonlySet<string>[] {
  const since = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const [newest, all] = [withFiles(messages.slice(since)), withFiles(messages)];
  return [newest, all.size > newest.size ? all : NONE].filter(({ size }) => size > 0);
}

const NONE: ReadonlySet<string> = new Set();
const withFiles = (messages: readonly Message[]): ReadonlySet<string> =>
  new Set(messages.filter(({ content }) => filesIn(content).length > 0).map(({ id }) => id));

const ABOUT_FILES = /\b(?:images?|vision|multi-?modal|mmproj|pdfs?|documents?|media)\b/i;

/** Providers reject a file with 400, 413, 415 or 422. Some use 404 or 500 with a message about an image. */
function mayBeAboutFiles(error: unknown): boolean {
  if (!(error instanceof AppError)) return false;
  const { code, details, message } = error;
  if (details?.status === 413) return true;
  if (code === "model_rejected" && details?.status !== 404) return true;
  return (code === "model_rejected" || code === "model_overloaded") && ABOUT_FILES.test(message);
}

type File = Exclude<Part, { type: "text" }>;

/** Returns the parts that providers receive as images or documents. */
const filesIn = (content: Content): File[] => (typeof content === "string" ? [] : content.filter(isFile));

const isFile = (part: Part): part is File =>
  part.type === "image" || (part.type === "file" && /^(?:image\/|application\/pdf\b)/.test(part.media_type));

const nameOf = (part: File) =>
  part.type === "file" && part.name !== undefined ? `\`${part.name}\`` : part.media_type;

function without(request: ModelRequest, ids: ReadonlySet<string>): ModelRequest {
  return {
    ...request,
    messages: request.messages.map((message) => (ids.has(message.id) ? bare(message) : message)),
  };
}

/** Maps each message to one stripped message, so caches of earlier requests stay valid. */
const made = new WeakMap<Message, Message>();

function bare(message: Message): Message {
  const { content } = message;
  if (typeof content === "string") return message;
  const known = made.get(message);
  if (known) return known;
  const parts = content.map(
    (part): Part => (isFile(part) ? { type: "text", text: placeholder(part) } : part),
  );
  // The cast is safe, because an assistant's content is always text.
  const stripped = { ...message, content: parts } as Message;
  made.set(message, stripped);
  return stripped;
}

const placeholder = (part: File) => `[${nameOf(part)}: removed, because the provider rejected it]`;

const Remembered = z.record(z.string(), z.array(z.string()));

function remembered(model: Model, { state }: Run): readonly string[] {
  const value = state.get(STATE_KEY);
  if (value === undefined) return [];
  const all = Remembered.safeParse(value).data;
  return all?.[model.name] ?? [];
}

/** Stores the ids of messages. Ignores messages from hooks, which are not part of the thread. */
async function* remember(ids: ReadonlySet<string>, model: Model, run: Run): Stream<void> {
  const own = run.messages.filter(({ id }) => ids.has(id)).map(({ id }) => id);
  const all = [...new Set([...remembered(model, run), ...own])];
  if (own.length > 0) yield* patchState(run, STATE_KEY, { [model.name]: all.slice(-MAX_REMEMBERED) });
}

const MAX_NAMED = 5;

function told(messages: readonly Message[], ids: ReadonlySet<string>): string {
  const names = messages
    .filter(({ id }) => ids.has(id))
    .flatMap(({ content }) => filesIn(content))
    .map(nameOf);
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return `The provider rejected the request with ${names.slice(0, MAX_NAMED).join(", ")}${more}. The model answers without these files and will not receive them again.`;
}
