// What a list of a client's messages is to a thread.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  assistantMessage,
  type Message,
  type UserMessage,
  userMessage,
} from "../../src/agent/core/message.ts";
import { align } from "../../src/engine/runs/align.ts";
import { sideRequest } from "../../src/wires/openai/side-requests.ts";

const thread = (words: readonly string[]): Message[] =>
  words.flatMap((each) => [userMessage(each), assistantMessage(`You said ${each}.`)]);
const idsOf = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.role === "user" ? [message.id] : []));
const sent = (id: string) => ({ id, content: id });

const words = fc.array(fc.string({ minLength: 1 }), { maxLength: 6 });
const unknown = fc.array(fc.option(fc.uuid(), { nil: undefined }), { minLength: 1, maxLength: 8 });

test("a list without any message of the thread replaces nothing, however long it is", () => {
  fc.assert(
    fc.property(words, unknown, fc.boolean(), fc.boolean(), (said, ids, isWhole, isRegenerated) => {
      const list = ids.map((id) => ({ id, content: "?" }));
      expect(align(thread(said), list, { isWhole, isRegenerated })).toEqual({ as: "new" });
    }),
  );
});

test("a replacement follows a message that the client has shown", () => {
  fc.assert(
    fc.property(words, fc.array(fc.nat(12), { minLength: 1, maxLength: 8 }), (said, picks) => {
      const messages = thread(said);
      const known = idsOf(messages);
      const list = picks.map((at) => sent(known[at] ?? `unknown-${at}`));
      const place = align(messages, list, { isWhole: true, isRegenerated: false });
      if (place.as !== "replacement") return;
      const at = known.indexOf(place.of);
      const shown = list.map(({ id }) => id);
      expect(shown.includes(place.of) || shown.includes(known[at - 1] ?? "")).toBe(true);
    }),
  );
});

const OPTIONS = { isWhole: true, isRegenerated: true };

test("an edit, a regeneration and a trimmed list work as before", () => {
  const messages = thread(["one", "two", "three"]);
  const [one = "", two = "", three = ""] = idsOf(messages);
  const as = (...ids: string[]) => align(messages, ids.map(sent), OPTIONS);
  expect(as(one, "edited")).toEqual({ as: "replacement", of: two });
  expect(as(one, two, three)).toEqual({ as: "replacement", of: three });
  expect(as(one)).toEqual({ as: "replacement", of: one });
  expect(as(two, three, "four")).toEqual({ as: "new" });
  const newest = messages.at(-2) as UserMessage;
  const repeated = { id: newest.id, content: newest.content };
  expect(align(messages, [repeated], { ...OPTIONS, isRegenerated: false })).toEqual({ as: "repeat" });
});

test.each([
  [
    "### Task:\nGenerate a concise, 3-5 word title …\n<chat_history>\nUSER: hi\n</chat_history>",
    "title_generation",
  ],
  ["### Task:\nGenerate 1-3 broad tags …\n<chat_history>\nUSER: hi\n</chat_history>", "side_job"],
  ["### Task:\nSuggest 3-5 relevant follow-up questions …\n<chat_history>\n</chat_history>", "side_job"],
  [
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\nConversation:\nhi",
    "title_generation",
  ],
  ["### Task: write a poem", undefined],
  ["Here is what I have: ### Task: <chat_history>", undefined],
  ["Analyze this conversation and provide: a summary", undefined],
])(
  "a front end's side request is recognised by its default prompt, and nothing else is one: %s",
  (text, task) => {
    expect(sideRequest({}, { text, isAlone: true })?.job).toBe(task);
  },
);
