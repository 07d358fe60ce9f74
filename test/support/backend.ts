// Using a backend in a test.

import { expect } from "vitest";
import type { Backend, ExecOptions, ExecResult } from "../../src/agent/core/backend.ts";
import type { ErrorCode } from "../../src/agent/core/errors.ts";

const { signal } = new AbortController();

/** With a time limit that only ends what hangs. */
export function options(): ExecOptions {
  return { signal, timeoutMs: 60_000 };
}

export async function drained(
  stream: ReturnType<Backend["exec"]>,
  pieces: string[] = [],
): Promise<ExecResult> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return item.value;
    pieces.push(item.value.text);
  }
}

export const execute = (backend: Backend, command: string, changed: Partial<ExecOptions> = {}) =>
  drained(backend.exec(command, { ...options(), ...changed }));

export async function readAll(
  backend: Backend,
  path: string,
  range: { offset?: number; length?: number } = {},
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of backend.read(path, range, signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The names in a folder. */
export async function names(backend: Backend, folder: string): Promise<string[]> {
  const entries = await backend.list(folder, signal);
  return entries.map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
}

export async function refuses(
  attempt: () => Promise<unknown>,
  code: ErrorCode,
  words: string,
): Promise<void> {
  const error = await attempt().then(
    () => "nothing was thrown",
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
}
