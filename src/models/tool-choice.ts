// Which tools a model is told to call: what the settings say, as far as it fits this request.

import { AppError } from "../core/errors.ts";
import type { ModelRequest, ModelSettings, ToolChoice } from "../core/model.ts";

/**
 * Nothing where there is nothing to choose. A choice that forces a call would keep the model calling for ever, so it
 * counts until a tool was called. Throws `model_rejected` for a tool that the model is not offered.
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
