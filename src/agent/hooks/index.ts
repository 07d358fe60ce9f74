// All hooks, outermost first. The configuration switches them on and off and sets their options; it never reorders them.

import type { HookDefinition } from "../core/hook.ts";
import { context } from "./context.ts";
import { eviction } from "./eviction.ts";
import {
  failureReflection,
  notes,
  progressReminder,
  reflections,
  slidingWindow,
  stallDetection,
  tasks,
} from "./extra-hooks.ts";
import { filesystem } from "./filesystem/index.ts";
import { guardrails } from "./guardrails/index.ts";
import { loopDetection } from "./loop-detection.ts";
import { memory } from "./memory.ts";
import { permissions } from "./permissions/index.ts";
import { metering } from "./quota-enforcement.ts";
import { refusedFiles } from "./refused-files.ts";
import { retry } from "./retry.ts";
import { budgets } from "./run-limits.ts";
import { skills } from "./skills/index.ts";
import { subagents } from "./subagents/index.ts";
import { summarization } from "./summarization/index.ts";
import { timeout } from "./timeout.ts";
import { todos } from "./todos.ts";
import { tracing } from "./tracing.ts";
import { trimming } from "./trimming.ts";

export const hooks: readonly HookDefinition[] = [
  // Spans include everything inside.
  tracing,
  // Waiting between attempts counts.
  budgets,
  // A retry passes through everything inside.
  retry,
  // Refused text reaches nothing further in or out.
  guardrails,
  // A repeatedly denied call is a loop as well.
  loopDetection,
  stallDetection,
  failureReflection,
  // The person who approves a call sees its final form.
  permissions,
  // The cheap ones first, by position in the thread, before any of them removes messages.
  trimming,
  slidingWindow,
  summarization,
  // Summaries cover the conversation alone.
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
  // Cut long results at the source, so that no outer hook holds them.
  eviction,
  // Each attempt is counted and timed.
  refusedFiles,
  // Counts every call, including those that outer hooks make.
  metering,
  // Times the call itself, without any waiting outside of it.
  timeout,
];
