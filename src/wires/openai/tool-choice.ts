// Reads `tool_choice`: the functions that a client offers to the agent, and the function that it forces.

import { z } from "zod";
import type { ModelSettings } from "../../agent/core/model.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { DescribedTool } from "../client-tools.ts";
import { clientTools, refused } from "./given.ts";

/** The client's functions in a request. */
export interface FunctionChoice {
  readonly tools?: ClientTool[];
  readonly tool_choice?: ModelSettings["tool_choice"];
  /** The function that the client forces, and the schema of its arguments. The agent's answer must be these arguments. */
  readonly answer?: { readonly name: string; readonly schema: Record<string, unknown> };
}

/** Chat completions nest a function's name one level deeper than responses do. */
const Named = z.looseObject({
  name: z.string().optional(),
  function: z.looseObject({ name: z.string() }).optional(),
});
const Allowed = z.looseObject({
  mode: z.enum(["auto", "required"]).default("auto"),
  tools: z.array(Named).max(64),
});
const Sent = z.union([
  z.enum(["auto", "none", "required", "any"]).transform((word) => ({ type: word })),
  z.looseObject({ type: z.enum(["auto", "none", "required", "any"]) }),
  Named.extend({ type: z.enum(["function", "tool"]) }),
  Allowed.extend({ type: z.literal("allowed_tools") }),
  z
    .looseObject({ type: z.literal("allowed_tools"), allowed_tools: Allowed })
    .transform(({ type, allowed_tools }) => ({ type, ...allowed_tools })),
]);

const nameIn = ({ name, function: named }: z.infer<typeof Named>) => named?.name ?? name;

/** Throws `invalid_request` for a choice that the client does not offer. */
export function choiceOf(given: readonly DescribedTool[], tool_choice: unknown): FunctionChoice {
  if (tool_choice === undefined || tool_choice === null) return offered(given);
  const sent = Sent.safeParse(tool_choice).data;
  if (!sent)
    throw refused(
      "tool_choice",
      "must be `auto`, `none`, `required`, a function of `tools` or `allowed_tools`. The operator configures the agent's own tools.",
    );
  switch (sent.type) {
    case "none":
      return {};
    case "auto":
      return offered(given);
    case "required":
    case "any":
      return offered(given, "required");
    case "allowed_tools": {
      const names = new Set(sent.tools.map(nameIn));
      const allowed = given.filter(({ name }) => names.has(name));
      return offered(allowed, sent.mode === "required" ? "required" : undefined);
    }
    case "function":
    case "tool":
      return forced(given, nameIn(sent));
  }
}

/** `required` without client functions would force a call of the server's own tools. */
const offered = (given: readonly DescribedTool[], tool_choice?: "required"): FunctionChoice =>
  omitUndefined({
    tools: clientTools(given),
    tool_choice: given.length > 0 ? tool_choice : undefined,
  });

/** Also offers the function to the model, which may answer by calling it. */
function forced(given: readonly DescribedTool[], name: string | undefined): FunctionChoice {
  const tool = given.find((each) => each.name === name);
  if (!tool) {
    const names = given.map((each) => `\`${each.name}\``).join(", ");
    throw refused(
      "tool_choice",
      `names \`${name}\`, which is not in \`tools\`: ${names || "there are none"}.`,
    );
  }
  const choice = offered([tool]);
  const schema = {
    ...(tool.description ? { description: tool.description } : {}),
    ...choice.tools?.[0]?.parameters,
  };
  return { ...choice, answer: { name: tool.name, schema } };
}
