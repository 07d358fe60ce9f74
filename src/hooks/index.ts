// Every hook there is, in the one order in which they surround an agent: the first is outermost. The
// configuration switches them on and off and sets their options; it never reorders.

import type { HookDefinition } from "../core/hook.ts";
import { eviction } from "./eviction.ts";
import { filesystem } from "./filesystem/index.ts";
import { memory } from "./memory.ts";
import { retry } from "./retry.ts";
import { skills } from "./skills/index.ts";
import { summarization } from "./summarization/index.ts";
import { timeout } from "./timeout.ts";
import { todos } from "./todos.ts";
import { tracing } from "./tracing.ts";

export const hooks: readonly HookDefinition[] = [
  // What is measured includes everything.
  tracing,
  // A second attempt passes through all that is inside.
  retry,
  summarization,
  memory,
  skills,
  filesystem,
  todos,
  // What is too long is cut where it comes from, so that nobody further out holds it.
  eviction,
  // Only the call itself is timed, no wait for anything else.
  timeout,
];
