// All hooks, outermost first. The configuration turns them on and off and sets their options, but never reorders
// them.

import type { HookDefinition } from "../core/hook.ts";
import { budgets } from "./budgets.ts";
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
import { metering } from "./metering.ts";
import { permissions } from "./permissions/index.ts";
import { refusedFiles } from "./refused-files.ts";
import { retry } from "./retry.ts";
import { skills } from "./skills/index.ts";
import { subagents } from "./subagents/index.ts";
import { summarization } from "./summarization/index.ts";
import { timeout } from "./timeout.ts";
import { todos } from "./todos.ts";
import { tracing } from "./tracing.ts";
import { trimming } from "./trimming.ts";

export const hooks: readonly HookDefinition[] = [
  // Outermost, so spans include all other hooks.
  tracing,
  // Budgets include the wait between attempts.
  budgets,
  // A retry passes through all inner hooks.
  retry,
  // Refused text goes no further, in either direction.
  guardrails,
  // A call that is denied repeatedly is also a loop.
  loopDetection,
  stallDetection,
  failureReflection,
  // Placed here so the person who approves a call sees its final form.
  permissions,
  // Cheap hooks come first. They rely on positions in the thread, so they run before any hook removes
  // messages.
  trimming,
  slidingWindow,
  summarization,
  // Summaries cover only the conversation.
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
  // Shortens long results at the source, so outer hooks never process them.
  eviction,
  // Counts and times each attempt.
  refusedFiles,
  // Counts every call, including calls that outer hooks make.
  metering,
  // Times only the call, without any wait outside it.
  timeout,
];
