// What every backend promises: its files first, then its searches, then its commands. An implementation's own test calls
// this. Everything goes through the port; the workspace is a POSIX one with `sh`.

import { afterAll, beforeAll } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { commands } from "./commands.ts";
import { files } from "./files.ts";
import type { It } from "./it.ts";
import { searches } from "./searches.ts";

export interface OpenedBackend {
  readonly backend: Backend;
  close(): Promise<void>;
}

export function backendContract(open: () => Promise<OpenedBackend>): void {
  const it = opening(open);
  files(it);
  searches(it);
  commands(it);
}

/** The part of it that is about files; commands only serve the tests. */
export function filesContract(open: () => Promise<OpenedBackend>): void {
  const it = opening(open);
  files(it);
  searches(it);
}

/** The part of it that is about commands; of the files it uses `read`, `write`, `stat` and `remove`. */
export function commandsContract(open: () => Promise<OpenedBackend>): void {
  commands(opening(open));
}

function opening(open: () => Promise<OpenedBackend>): It {
  let opened: OpenedBackend;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());
  return () => opened.backend;
}
