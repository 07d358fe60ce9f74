// The JSON files of rules that an agent's permissions name: read with the agents' file, so that a run has either all of
// them or, when one is broken, what was in force before.

import { dirname, join } from "node:path";
import { z } from "zod";
import { messageOf } from "../core/errors.ts";
import type { HookDefinition } from "../core/hook.ts";
import { check, type Fault, sentence } from "../lib/check.ts";
import { textBeside } from "./text-beside.ts";

export interface FiledRules {
  /** As they are written: those of the first file first. */
  readonly rules: readonly unknown[];
  /** Their paths begin at `permissions`. */
  readonly faults: readonly Fault[];
}

const Permissions = z.looseObject({ files: z.array(z.string()) });
const namesIn = (permissions: unknown) => Permissions.safeParse(permissions).data?.files ?? [];

/** The files that permissions name, wherever they lie. */
export const ruleFiles = (permissions: unknown, configFile: string): string[] =>
  namesIn(permissions).map((file) => join(dirname(configFile), file));

/** `permissions` is whatever stands there in `configFile`; its own schema speaks of what is no such list. */
export async function readRuleFiles(
  permissions: unknown,
  configFile: string,
  hook: HookDefinition | undefined,
): Promise<FiledRules> {
  const files = namesIn(permissions);
  const read = await Promise.all(files.map((file) => readRuleFile(file, configFile, hook)));
  return {
    rules: read.flatMap((each) => ("rules" in each ? each.rules : [])),
    faults: read.flatMap((each, index) =>
      "rules" in each ? [] : each.faults.map((message) => ({ path: ["files", index], message })),
    ),
  };
}

async function readRuleFile(
  file: string,
  configFile: string,
  hook: HookDefinition | undefined,
): Promise<{ rules: unknown[] } | { faults: string[] }> {
  const read = await textBeside(configFile, file);
  if ("fault" in read) return { faults: [read.fault] };
  try {
    const rules: unknown = JSON.parse(read.text);
    const checked = hook && check(hook.options, { rules });
    if (checked && "faults" in checked) return { faults: checked.faults.map((fault) => inFile(fault, file)) };
    // Its schema has taken it as a list.
    return { rules: rules as unknown[] };
  } catch (error) {
    return { faults: [`must name a JSON file: in \`${file}\`, ${messageOf(error)}`] };
  }
}

function inFile(fault: Fault, file: string): string {
  const path = fault.path.slice(1);
  return `in \`${file}\`, ${path.length === 0 ? "all of it " : ""}${sentence({ ...fault, path })}`;
}
