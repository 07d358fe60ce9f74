// Adapts the configured `tool_choice` to a request.

import { AppError } from "../core/errors.ts";
import type { ModelRequest, ModelSettings, ToolChoice } from "../core/model.ts";

/**
 * Returns undefined when the request has no tools. A choice that forces a call would never let the run end,
 * so it becomes `auto` after the first tool call. Throws `model_rejected` if the model is not offered the
 * chosen tool.
 */
export function toolChoiceOf(
  { tools, toolCalled }: ModelRequest,
  { tool_choice: choice }: ModelSettings,
): ToolChoice | undefined {
  if (tools.length === 0 || choice === undefined) return undefined;
  if (choice === "auto" || choice === "none") return choice;
  if (toolCalled) return "auto";
  if (typeof choice === "string" || tools.some(({ name }) => name === choice.name)) return choice;
  const names = tools.map(({ name }) => name).join(", ");
  throw new AppError(
    "model_rejected",
    `tool_choice: there is no tool \`${choice.name}\`. Use one of: ${names}.`,
  );
}

export const forces = (choice: ToolChoice | undefined) => choice === "required" || typeof choice === "object";
