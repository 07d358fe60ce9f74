// The Responses API of OpenAI's own SDK.

import OpenAI from "openai";
import type { FunctionTool, Response, ResponseOutputItem } from "openai/resources/responses/responses";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

export async function started(script: readonly Turn[] | Script, config?: object) {
  const { url, app } = await startServer({ script, agents: AGENTS, ...(config ? { config } : {}) });
  const clientWith = (headers: Record<string, string> = {}, maxRetries = 2) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", defaultHeaders: headers, maxRetries });
  return { url, app, clientWith, client: clientWith() };
}

export const model = "assistant";
export const SLOW: Turn = { say: "a ".repeat(2000), delay_ms: 20 };
export const WHERE: FunctionTool = {
  ...{ name: "where", description: "Where.", strict: false },
  type: "function",
  parameters: { type: "object", properties: {} },
};

export const typesOf = ({ output }: { output: readonly { type: string }[] }) =>
  output.map(({ type }) => type);
export const itemOf = <T extends ResponseOutputItem["type"]>({ output }: Response, type: T) => {
  const item = output.find((each) => each.type === type);
  if (!item) throw new Error(`There is no ${type}.`);
  return item as Extract<ResponseOutputItem, { type: T }>;
};
/** The thread on which a response was made. */
export function conversationOf({ conversation }: Pick<Response, "conversation">): string {
  if (!conversation) throw new Error("The response names no conversation.");
  return conversation.id;
}
