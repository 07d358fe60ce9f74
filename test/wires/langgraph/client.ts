// LangGraph's own SDK, and what its front ends make of what they read.

import { Client, type Message as LangChainMessage } from "@langchain/langgraph-sdk";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { FILE_AGENTS } from "../agents.ts";

export const clientFor = (url: string, defaultHeaders: Record<string, string> = {}) =>
  new Client({ apiUrl: `${url}/langgraph`, apiKey: "", defaultHeaders });

export async function started(script: readonly Turn[] | Script, agents = FILE_AGENTS, config: object = {}) {
  const { url } = await startServer({ script, agents, config });
  return { url, client: clientFor(url) };
}

export interface Values {
  messages: LangChainMessage[];
  todos: object[];
  files: Record<string, string>;
  __interrupt__?: { id: string; value: Record<string, unknown> }[];
}
export interface Frame {
  id?: string;
  event: string;
  data: unknown;
}

export const said = (content: string, id?: string) => ({
  messages: [{ type: "human" as const, content, ...(id ? { id } : {}) }],
});

export const all = async (stream: AsyncIterable<unknown>) => {
  const frames: Frame[] = [];
  for await (const frame of stream) frames.push(frame as Frame);
  return frames;
};
export const lastValues = (frames: readonly Frame[]) =>
  frames.findLast(({ event }) => event === "values")?.data as Values | undefined;
export const contents = (values: { messages: LangChainMessage[] } | undefined) =>
  values?.messages.map(({ content }) => content);
export const toolIn = (values: Values | undefined) => values?.messages.find(({ type }) => type === "tool");

/** Puts the pieces of each message together, as front ends do. */
export function assembled(frames: readonly Frame[]) {
  const texts = new Map<string, { text: string; thought: string; pieces: number }>();
  for (const { event, data } of frames) {
    if (event !== "messages") continue;
    const [piece] = data as [
      { id: string; type: string; content: string; additional_kwargs?: Record<string, string> },
    ];
    if (piece.type === "remove") texts.delete(piece.id);
    if (piece.type !== "AIMessageChunk") continue;
    const known = texts.get(piece.id) ?? { text: "", thought: "", pieces: 0 };
    texts.set(piece.id, {
      text: known.text + piece.content,
      thought: known.thought + (piece.additional_kwargs?.reasoning_content ?? ""),
      pieces: known.pieces + 1,
    });
  }
  return [...texts.values()];
}
