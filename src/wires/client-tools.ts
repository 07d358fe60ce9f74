// The tools that a front end executes, in the form of a run's `tools`.

import { z } from "zod";
import { ClientTool } from "../agent/core/records.ts";
import { check, sentence } from "../lib/check.ts";
import { isObject } from "../lib/json.ts";

/** A tool as wires describe it. */
export const DescribedTool = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.unknown().optional(),
});
export type DescribedTool = Pick<z.infer<typeof DescribedTool>, "name" | "description" | "parameters">;

/** Returns undefined if there are no tools. `refused` creates the error for a fault in the tool at `index`. */
export function clientToolsOf(
  described: readonly DescribedTool[],
  refused: (index: number, fault: string) => Error,
): ClientTool[] | undefined {
  if (described.length === 0) return undefined;
  return described.map(({ name, description, parameters }, index) => {
    const isSchema = parameters === undefined || parameters === null || isObject(parameters);
    const schema = isSchema ? { type: "object", ...(parameters as object | null | undefined) } : parameters;
    const tool = { name, description: description || name, parameters: schema };
    const checked = check(ClientTool, tool);
    if ("value" in checked) return checked.value;
    const [fault] = checked.faults;
    throw refused(index, fault ? sentence(fault) : "is refused.");
  });
}
