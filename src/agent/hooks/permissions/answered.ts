// Applies a person's answer to the call that it approves, denies or replaces.

import type { Answer } from "../../../protocol/interrupt.ts";
import type { CallTool, ToolRequest } from "../../core/hook.ts";
import type { Stream } from "../../core/stream.ts";
import { denied, done, type ToolResult } from "../../core/tool.ts";

/**
 * Runs, denies or replaces the call, depending on the person's answer. `request` already contains the
 * arguments of an `edit`.
 */
export async function* answered(answer: Answer, request: ToolRequest, next: CallTool): Stream<ToolResult> {
  switch (answer.decision) {
    case "approve":
    case "edit":
      return yield* next(request);
    case "deny":
      return denied(
        answer.message ?? "The user does not allow this call. Do not try to achieve the same in another way.",
      );
    case "respond":
      return done(answer.message ?? "");
  }
}
