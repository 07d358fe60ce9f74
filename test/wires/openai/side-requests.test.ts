// What front ends ask of a chat's own model beside the chat, in the form of their own templates.

import { expect, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { postJson, saidIn, threadsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

const CHAT = `USER: How do I bake bread?
With rye, please.
ASSISTANT: Mix flour and water.
USER: And then?`;
const TITLE = "How do I bake bread? With rye, please.";

/** As Open WebUI fills its templates: one message, the chat between marks. */
const template = (output: string, chat = CHAT) => `### Task:
Do something short about the chat history.
### Guidelines:
- Be concise. Your entire response must be the JSON object.
### Output:
JSON format: ${output}
### Examples:
- { "title": "📉 Stock Market Trends" }
### Chat History:
<chat_history>
${chat}
</chat_history>`;
const QUERIES = `### Task:
Analyze the chat history to determine the necessity of generating search queries.
### Output:
Strictly return in JSON format:
{
  "queries": ["query1", "query2"]
}

### Chat History:
<chat_history>
${CHAT}
</chat_history>
`;
const AUTOCOMPLETE = `### Task:
You are an autocompletion system. Continue the text in \`<text>\`.
- Respond only in JSON format: \`{ "text": "<your_completion>" }\`.
### Context:
<chat_history>
${CHAT}
</chat_history>
<type>General</type>
<text>And t</text>
#### Output:
`;
const LIBRECHAT = `Provide a concise, 5-word-or-less title for the conversation, using its same language, with no punctuation. Only return the title itself.

Conversation:
User: How do I bake bread?
With rye, please.
AI: Mix flour and water.`;

const GREETED = `ASSISTANT: Welcome to the bakery!\n${CHAT}`;

const SIDE: readonly (readonly [string, string, string, unknown])[] = [
  ["a title", "title_generation", template('{ "title": "your concise title here" }'), { title: TITLE }],
  ["a title of a chat that greets first", "title_generation", template("{}", GREETED), { title: TITLE }],
  ["tags", "tags_generation", template('{ "tags": ["tag1", "tag2"] }'), { tags: [] }],
  ["follow-ups", "follow_up_generation", template('{ "follow_ups": ["Question 1?"] }'), { follow_ups: [] }],
  ["queries", "query_generation", QUERIES, { queries: ["And then?"] }],
  ["an ending", "autocomplete_generation", AUTOCOMPLETE, { text: "" }],
];

async function started(script: readonly Turn[] | Script) {
  const { url } = await startServer({ script, agents: AGENTS });
  const ask = async (content: string, headers: Record<string, string> = {}) => {
    const body = { model: "assistant", messages: [{ role: "user", content }] };
    const answer = await postJson(`${url}/v1/chat/completions`, body, headers);
    const { choices } = (await answer.json()) as { choices: [{ message: { content: string } }] };
    return choices[0].message.content;
  };
  return { url, ask };
}

test.each(SIDE)(
  "Open WebUI receives %s in the form that it reads, and no agent runs",
  async (_, job, content, right) => {
    const { url, ask } = await started([]);
    expect(JSON.parse(await ask(content, { "X-OpenWebUI-Task": job }))).toEqual(right);
    expect(JSON.parse(await ask(content, { "X-OpenWebUI-Chat-Id": "c1" }))).toEqual(right);
    const response = await postJson(`${url}/v1/responses`, { model: "assistant", input: content });
    const { output } = (await response.json()) as { output: [{ content: [{ text: string }] }] };
    expect(JSON.parse(output[0].content[0].text)).toEqual(right);
    expect(await threadsOf(url)).toEqual([]);
  },
);

test("LibreChat receives only the title, and the chat in its header does not change", async () => {
  const { url, ask } = await started([{ say: "Mix flour and water." }]);
  const named = { "X-Conversation-Id": "c1" };
  await ask("How do I bake bread?", named);
  expect(await ask(LIBRECHAT, named)).toBe(TITLE);
  expect(await saidIn(url, "c1")).toEqual(["How do I bake bread?", "Mix flour and water."]);
});

test("a request for a title that quotes no chat receives the title of the chat that it names", async () => {
  const { ask } = await started([{ say: "Mix flour and water." }]);
  const named = { "X-OpenWebUI-Chat-Id": "c1" };
  await ask("How do I bake bread?", named);
  const title = await ask("### Task:\nName this chat.", { ...named, "X-OpenWebUI-Task": "title_generation" });
  expect(JSON.parse(title)).toEqual({ title: "How do I bake bread?" });
});

test("a side request that needs a model runs on its own thread", async () => {
  const { url, ask } = await started([{ say: "Mix." }, { say: "Both mix." }, { say: "Bread" }]);
  const named = { "X-OpenWebUI-Chat-Id": "c1" };
  await ask("How do I bake bread?", named);
  const merging = { ...named, "X-OpenWebUI-Task": "moa_response_generation" };
  expect(await ask("Merge these answers: Mix. Stir.", merging)).toBe("Both mix.");
  const structured =
    "Analyze this conversation and provide:\n1. The language\n2. A concise title\n\nUser: Hi";
  expect(await ask(structured, named)).toBe("Bread");
  expect(await saidIn(url, "c1")).toEqual(["How do I bake bread?", "Mix."]);
});

test("a person's message can look like a template", async () => {
  const { ask } = await started([{ say: "One." }, { say: "Two." }]);
  expect(await ask("### Task:\nReview <chat_history> in this file.")).toBe("One.");
  expect(await ask("Explain this: ### Task: <chat_history></chat_history>")).toBe("Two.");
});
