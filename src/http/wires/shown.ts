// What wires show of a thread's state. Other keys are matters of the server and never leave it.

import { z } from "zod";

const Todo = z.looseObject({ id: z.string(), title: z.string(), status: z.string() });

/** A todo as stock front ends draw it. */
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

/** Size and last change of each file that the thread's tools wrote, by path. */
export function shownFiles(value: unknown): Record<string, { bytes: number; op: string }> {
  const files = Files.safeParse(value).data ?? {};
  return Object.fromEntries(Object.entries(files).map(([path, { bytes, op }]) => [path, { bytes, op }]));
}
