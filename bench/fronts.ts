// How a load is sent and read: over the native API, or over a wire as its stock clients do.

export const FRONTS = ["native", "chat", "responses", "ai-sdk", "ag-ui", "langgraph"] as const;
export type FrontName = (typeof FRONTS)[number];

export interface Front {
  path(threadId: string): string;
  /** Returns additional header lines, each with its line ending. */
  head(threadId: string): string;
  body(threadId: string, contents: readonly string[]): object;
  /** The text that precedes each token. */
  readonly token: string;
  /** A text in the last event of a successful run. */
  readonly done: string;
  /** A text in an event of a failed run. */
  readonly failed: string;
}

const noHead = () => "";
const named = (threadId: string) => `x-conversation-id: ${threadId}\r\n`;
const userMessages = (contents: readonly string[]) => contents.map((content) => ({ role: "user", content }));

export const FRONT: Readonly<Record<FrontName, Front>> = {
  native: {
    path: (threadId) => `/threads/${threadId}/runs`,
    head: noHead,
    body: (_, contents) => ({ messages: userMessages(contents) }),
    ...{ token: '"delta":"', done: "event: done\n", failed: "event: error\n" },
  },
  chat: {
    path: () => "/v1/chat/completions",
    head: named,
    body: (_, contents) => ({ model: "bench", stream: true, messages: userMessages(contents) }),
    ...{ token: '"delta":{"content":"', done: "data: [DONE]\n", failed: 'data: {"error":' },
  },
  responses: {
    path: () => "/v1/responses",
    head: named,
    body: (_, contents) => ({ model: "bench", stream: true, input: userMessages(contents) }),
    ...{ token: '"delta":"', done: "event: response.completed\n", failed: "event: response.failed\n" },
  },
  "ai-sdk": {
    path: () => "/ai-sdk/bench/chat",
    head: noHead,
    body: (id, contents) => ({
      id,
      messages: contents.map((text) => ({ role: "user", parts: [{ type: "text", text }] })),
    }),
    ...{ token: '"delta":"', done: "data: [DONE]\n", failed: '{"type":"error"' },
  },
  "ag-ui": {
    path: () => "/ag-ui/agent/bench/run",
    head: noHead,
    body: (threadId, contents) => ({
      ...{ threadId, runId: `run-of-${threadId}`, state: {}, tools: [], context: [] },
      messages: contents.map((content, n) => ({ id: `m${n}-${threadId}`, role: "user", content })),
    }),
    ...{ token: '"delta":"', done: '"type":"RUN_FINISHED"', failed: '"type":"RUN_ERROR"' },
  },
  langgraph: {
    path: (threadId) => `/langgraph/threads/${threadId}/runs/stream`,
    head: noHead,
    body: (_, contents) => ({
      ...{ assistant_id: "bench", if_not_exists: "create", stream_mode: ["messages-tuple"] },
      input: { messages: userMessages(contents) },
    }),
    ...{ token: '"content":"', done: "event: end\n", failed: "event: error\n" },
  },
};
