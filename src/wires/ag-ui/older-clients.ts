// Support for AG-UI clients before 0.0.59, which end a run at an unknown event and cannot show questions. A page with
// such a client declares its version with `?v=0.0.40`, and events are then written in that version's format.

import { z } from "zod";
import { approvalText, questionText } from "../words.ts";
import type { AguiEvent, PlainObject } from "./history.ts";

/** The number N in the client's version, 0.0.N. Default: 0.0.59, or 1.0 if the input has `protocolVersion`. */
export const Version = z
  .string()
  .regex(/^0\.0\.\d{1,3}$/, { error: "must be a version before 1.0, such as 0.0.40" })
  .transform((version) => Number(version.slice("0.0.".length)))
  .optional()
  .describe("Version of `@ag-ui/client` that reads the events, if older than 0.0.59.");

/** The version, 0.0.N, in which clients started to support each part of the protocol. */
const SINCE = { activities: 41, reasoning: 45, media: 50, questions: 51 } as const;

/** Returns true if questions and their answers are text messages. */
export const asksInWords = (version: number | undefined) =>
  version !== undefined && version < SINCE.questions;

/** Returns a function that converts each event to events that the client supports. */
export function eventsFor(version: number | undefined): (event: AguiEvent) => readonly AguiEvent[] {
  if (version === undefined) return (event) => [event];
  return (event) => {
    const { type } = event;
    if (type.startsWith("REASONING_") && version < SINCE.reasoning) return [asThinking(event)];
    if (type.startsWith("ACTIVITY_") && version < SINCE.activities) return [];
    if (type === "MESSAGES_SNAPSHOT") return [{ ...event, messages: messagesFor(version, event) }];
    if (type === "RUN_FINISHED" && asksInWords(version)) return finished(event);
    return [event];
  };
}

/** The older events have no ids, because only one thought is open at a time. */
function asThinking({ type, delta }: AguiEvent): AguiEvent {
  const older = type
    .replace("REASONING_MESSAGE_", "THINKING_TEXT_MESSAGE_")
    .replace("REASONING_", "THINKING_");
  return { type: older, ...(delta === undefined ? {} : { delta }) };
}

const Messages = z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() }));

function messagesFor(version: number, { messages }: AguiEvent): PlainObject[] {
  return Messages.parse(messages)
    .filter(({ role }) => role !== "reasoning" || version >= SINCE.reasoning)
    .map((message) =>
      Array.isArray(message.content) && version < SINCE.media
        ? { ...message, content: message.content.map(wordsOf).join("\n") }
        : message,
    );
}

const SentPart = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  source: z.looseObject({ mimeType: z.string() }).optional(),
});

function wordsOf(part: unknown): string {
  const { type, text, source } = SentPart.parse(part);
  return text ?? `[${source?.mimeType ?? type}]`;
}

const Outcome = z.looseObject({
  interrupts: z.array(
    z.looseObject({
      id: z.string(),
      reason: z.string(),
      message: z.string(),
      responseSchema: z.looseObject({
        properties: z.looseObject({
          answer: z
            .looseObject({ enum: z.array(z.string()).optional(), examples: z.array(z.string()).optional() })
            .optional(),
        }),
      }),
    }),
  ),
});

/** Returns the questions as messages of the assistant, then the end without its `outcome`. */
function finished({ outcome, ...end }: AguiEvent): AguiEvent[] {
  const { interrupts = [] } = Outcome.safeParse(outcome).data ?? {};
  const asked = interrupts.flatMap(({ id, reason, message: prompt, responseSchema }): AguiEvent[] => {
    const messageId = `ask_${id}`;
    const { enum: only, examples: options = only } = responseSchema.properties.answer ?? {};
    const delta = reason === "tool_call" ? approvalText({ prompt }) : questionText({ prompt, options });
    return [
      { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
      { type: "TEXT_MESSAGE_END", messageId },
    ];
  });
  return [...asked, end];
}
