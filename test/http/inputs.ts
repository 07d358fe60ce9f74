// Which of a user's things each input of the API names.

import { fieldsOf, type Operation } from "../support/openapi.ts";
import type { Things } from "./things.ts";

type Kind = keyof Things;

/** What an input names, by its name or by route and name; `nothing`: no user's thing. */
const INPUTS: Readonly<Record<string, Kind | "nothing">> = {
  thread_id: "thread",
  run_id: "run",
  path: "file",
  after: "event",
  "GET /threads/{thread_id}/messages after": "message",
  "last-event-id": "event",
  "idempotency-key": "key",
  cursor: "threadPage",
  "GET /threads/{thread_id}/runs cursor": "runPage",
  "POST /threads id": "thread",
  "POST /threads/{thread_id}/fork id": "thread",
  message_id: "message",
  replaces: "message",
  parent: "thread",
  "POST /tickets path": "stream",
  "POST /threads/{thread_id}/runs/{run_id}/resume id": "interrupt",
  "DELETE /tools/{name} name": "tool",
  "POST /ai-sdk/{agent}/chat id": "thread",
  "POST /ai-sdk/{agent}/chat messageId": "message",
  "GET /ai-sdk/{agent}/chat/{id}/stream id": "thread",
  "GET /ai-sdk/{agent}/chat/{id}/messages id": "thread",
  "POST /ai-sdk/{agent}/chat/{id}/stop id": "thread",
  ...{ parts: "nothing", trigger: "nothing", v: "nothing" },
  ...{ stream: "nothing", stream_options: "nothing", include_usage: "nothing", n: "nothing" },
  ...{ max_completion_tokens: "nothing", response_format: "nothing", function: "nothing" },
  ...{ tool_calls: "nothing", tool_call_id: "nothing", arguments: "nothing" },
  ...{ image_url: "nothing", url: "nothing", file: "nothing", file_data: "nothing", filename: "nothing" },
  "POST /v1/chat/completions id": "nothing",
  // Made of the call that it is about: the same for all who answered the same.
  "DELETE /agents/{name}/permissions/{id} id": "nothing",
  "DELETE /threads/{thread_id}/permissions/{id} id": "nothing",
  // What a person's rule is called, and what it says.
  ...{
    "POST /threads/{thread_id}/permissions id": "nothing",
    "POST /agents/{name}/permissions id": "nothing",
  },
  ...{ allow: "nothing", deny: "nothing", ask: "nothing", command_prefix: "nothing", regex: "nothing" },
  ...{ arguments: "nothing", matcher: "nothing", tool: "nothing", all: "nothing", priority: "nothing" },
  // Who has a ticket, or the address of a call's result, may use it: they are credentials.
  ...{ ticket: "nothing", token: "nothing" },
  // Agents and models are the server's, the same for all.
  ...{ agent: "nothing", name: "nothing", model: "nothing" },
  ...{
    children: "nothing",
    limit: "nothing",
    status: "nothing",
    q: "nothing",
    heartbeat: "nothing",
    days: "nothing",
  },
  ...{ title: "nothing", metadata: "nothing", mode: "nothing", input: "nothing", messages: "nothing" },
  ...{ role: "nothing", content: "nothing", type: "nothing", text: "nothing", media_type: "nothing" },
  ...{ data: "nothing", temperature: "nothing", max_tokens: "nothing", thinking: "nothing" },
  tool_choice: "nothing",
  ...{ on_busy: "nothing", on_disconnect: "nothing", background: "nothing" },
  ...{ answers: "nothing", decision: "nothing", args: "nothing", message: "nothing", remember: "nothing" },
  ...{ tools: "nothing", description: "nothing", parameters: "nothing", annotations: "nothing" },
  ...{ callback_url: "nothing", headers: "nothing", timeout_ms: "nothing", idempotent: "nothing" },
  ...{ agents: "nothing", read_only: "nothing", destructive: "nothing", category: "nothing" },
  ...{ requires_permission: "nothing" },
  ...{ hooks: "nothing", skills: "nothing", paths: "nothing", include: "nothing", exclude: "nothing" },
};

/** Bodies; what is to be named in one stands there in braces, unless it may be left out. */
export const BODIES: Readonly<Record<string, object>> = {
  "POST /threads": { id: "{id}" },
  "PATCH /threads/{thread_id}": { title: "Mine now" },
  "POST /threads/{thread_id}/fork": { id: "{id}" },
  "POST /threads/{thread_id}/title": {},
  "PATCH /agents/{name}/overrides": { hooks: { todos: false } },
  "POST /threads/{thread_id}/runs": { input: "hello" },
  "POST /threads/{thread_id}/runs/{run_id}/cancel": {},
  "POST /threads/{thread_id}/runs/{run_id}/messages": { input: "hello" },
  "POST /threads/{thread_id}/runs/{run_id}/resume": {
    answers: [{ id: "{id}", decision: "respond", message: "no" }],
  },
  "POST /threads/{thread_id}/permissions": { allow: "execute" },
  "POST /agents/{name}/permissions": { allow: "execute" },
  "POST /tickets": { path: "{path}" },
  "POST /tools": {
    ...{ name: "mine", description: "Mine.", callback_url: "https://tools.example.com/" },
    parameters: { type: "object" },
  },
  "POST /tool-results/{token}": { result: "found" },
  "POST /v1/chat/completions": { model: "assistant", messages: [{ role: "user", content: "hello" }] },
  "POST /ai-sdk/{agent}/chat": {
    id: "{id}",
    messages: [{ role: "user", parts: [{ type: "text", text: "hello" }] }],
  },
};

export interface Input {
  readonly place: "path" | "query" | "header" | "body";
  readonly name: string;
  readonly kind: Kind;
}

/** The inputs of an operation that may name a user's things. Throws for an input that is not listed here. */
export function inputsOf({ name: route, parameters, body, isStream }: Operation): Input[] {
  const all = [
    ...parameters.map(({ in: place, name }) => ({ place, name })),
    ...[...(body ? fieldsOf(body) : [])].map((name) => ({ place: "body" as const, name })),
    ...(isStream ? [{ place: "header" as const, name: "last-event-id" }] : []),
  ];
  return all.flatMap(({ place, name }) => {
    const kind = INPUTS[`${route} ${name}`] ?? INPUTS[name];
    if (kind) return kind === "nothing" ? [] : [{ place, name, kind }];
    throw new Error(`Say in INPUTS, in test/http/inputs.ts, what \`${name}\` of \`${route}\` names.`);
  });
}

/** Which of the inputs name what is not one's own: those of the path in every mixture, with each of the others. */
export function mixturesOf(inputs: readonly Input[]): Set<Input>[] {
  const isOfPath = ({ place }: Input) => place === "path";
  let paths: Input[][] = [[]];
  for (const input of inputs.filter(isOfPath)) paths = [...paths, ...paths.map((path) => [...path, input])];
  const others = inputs.filter((input) => !isOfPath(input));
  const mixtures = [[], ...others.map((input) => [input])].flatMap((other) =>
    paths.map((path) => new Set([...path, ...other])),
  );
  return mixtures.filter(({ size }) => size > 0 || inputs.every((input) => !isOfPath(input)));
}
