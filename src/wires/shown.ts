// The parts of a thread that wires show: the results of calls, and the values of its state that concern clients.

import { z } from "zod";
import { isBlank, type ToolMessage, textOf } from "../agent/core/message.ts";
import type { Interrupt } from "../protocol/interrupt.ts";

/** Returns the result of a call as text. If the call failed or was denied, the reason comes first. */
export function resultText({ content, error }: Pick<ToolMessage, "content" | "error">): string {
  if (error === undefined) return textOf(content);
  return isBlank(content) ? error : `${error}\n${textOf(content)}`;
}

const Todo = z.looseObject({ id: z.string(), title: z.string(), status: z.string() });

/** A todo in the form that stock front ends display. */
export interface ShownTodo {
  readonly id: string;
  readonly content: string;
  readonly status: string;
}

export function shownTodos(value: unknown): ShownTodo[] {
  return (z.array(Todo).safeParse(value).data ?? []).map(({ id, title, status }) => ({
    id,
    content: title,
    status: status === "done" ? "completed" : status,
  }));
}

const Files = z.record(z.string(), z.looseObject({ bytes: z.number(), op: z.string() }));

/** Returns the size and last change of each file that the thread's tools wrote, by path. */
export function shownFiles(value: unknown): Record<string, { bytes: number; op: string }> {
  const files = Files.safeParse(value).data ?? {};
  return Object.fromEntries(Object.entries(files).map(([path, { bytes, op }]) => [path, { bytes, op }]));
}

const Contents = z.record(z.string(), z.looseObject({ bytes: z.number(), content: z.string().optional() }));

/** Returns the content of each file that the thread's tools wrote, by path, or its size if the content is not stored. */
export function shownContents(value: unknown): Record<string, string> {
  const files = Contents.safeParse(value).data ?? {};
  return Object.fromEntries(
    Object.entries(files).map(([path, { bytes, content }]) => [path, content ?? `[${bytes} bytes]`]),
  );
}

/** Returns an open question for a program that answers it. */
export const shownInterrupt = ({ id, kind, name, args, prompt, url, options }: Interrupt) => ({
  id,
  kind,
  name,
  args,
  prompt,
  ...(url === undefined ? {} : { url }),
  ...(options ? { options } : {}),
});
