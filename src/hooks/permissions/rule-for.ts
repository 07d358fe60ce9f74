// From one call to a rule for exactly that call, for an answer that is to be remembered.

import { createHash } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import type { ToolCall } from "../../core/message.ts";
import { firstChars } from "../../lib/cut.ts";
import { type Decision, MAX_RULE_CHARS, type Rule, type Scope } from "./rule.ts";

/**
 * The same tool with the same arguments, nothing more. Two rules for the same call have the same id, whatever
 * they decide. Throws `invalid_request` for arguments that are too long to be kept.
 */
export function ruleFor({ name, args }: ToolCall, decision: Decision, scope: Scope): Rule {
  const text = JSON.stringify(args);
  if (text.length > MAX_RULE_CHARS)
    throw new AppError(
      "invalid_request",
      `The call has ${text.length} characters of arguments; at most ${MAX_RULE_CHARS} can be remembered.`,
    );
  const matcher = { tool: literal(name), arguments: args };
  const hash = createHash("sha256").update(JSON.stringify([name, args]));
  return {
    ...{ id: `answer-${hash.digest("hex").slice(0, 16)}`, scope, priority: 0, matcher, decision },
    description: firstChars(`${name} ${text}`, 200),
  };
}

/** A pattern that only the name itself matches. */
const literal = (name: string) => name.replace(/[\\*?[\]{}]/g, "\\$&");
