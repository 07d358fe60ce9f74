// Every hook there is, in the one order in which they surround an agent: the first is outermost. The
// configuration switches them on and off and sets their options; it never reorders.

import type { HookDefinition } from "../core/hook.ts";
import { context } from "./context.ts";
import { eviction } from "./eviction.ts";
import { filesystem } from "./filesystem/index.ts";
import { guardrails } from "./guardrails/index.ts";
import { memory } from "./memory.ts";
import { notes } from "./notes.ts";
import { permissions } from "./permissions/index.ts";
import { metering } from "./quota-enforcement.ts";
import { reflections } from "./reflections.ts";
import { retry } from "./retry.ts";
import { budgets } from "./run-limits.ts";
import { failureReflection, loopDetection, progressReminder, stallDetection } from "./self-control.ts";
import { skills } from "./skills/index.ts";
import { subagents } from "./subagents/index.ts";
import { summarization } from "./summarization/index.ts";
import { tasks } from "./tasks.ts";
import { timeout } from "./timeout.ts";
import { todos } from "./todos.ts";
import { tracing } from "./tracing.ts";
import { slidingWindow, trimming } from "./trimming.ts";

export const hooks: readonly HookDefinition[] = [
  // What is measured includes everything.
  tracing,
  // A wait for the next attempt takes time too.
  budgets,
  // A second attempt passes through all that is inside.
  retry,
  // What is refused goes no further, and nobody further out has seen it.
  guardrails,
  // A call that is denied over and over is a loop as well.
  loopDetection,
  stallDetection,
  failureReflection,
  // Whoever is asked about a call sees it as it would be run.
  permissions,
  // First what costs nothing: the place in the thread decides, so before anything leaves messages out.
  trimming,
  slidingWindow,
  summarization,
  // A summary is made of the conversation alone.
  context,
  memory,
  skills,
  filesystem,
  todos,
  subagents,
  tasks,
  notes,
  reflections,
  progressReminder,
  // What is too long is cut where it comes from, so that nobody further out holds it.
  eviction,
  // Every call that is made is counted, whoever further out makes it.
  metering,
  // Only the call itself is timed, no wait for anything else.
  timeout,
];
