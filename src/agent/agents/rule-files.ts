// The JSON rule files that an agent's permissions name. They are read together with agents.yaml, so if one is invalid, the
// previous configuration remains in effect.

import { dirname, join } from "node:path";
import { z } from "zod";
import { check, type Fault, SELDOM, sentence } from "../../lib/check.ts";
import { messageOf } from "../core/errors.ts";
import type { HookDefinition } from "../core/hook.ts";
import { textBeside } from "./text-beside.ts";

export interface FiledRules {
  /** The rules as written, in the order in which the files are listed. */
  readonly rules: readonly unknown[];
  /** The faults. The path of each fault is relative to `permissions`. */
  readonly faults: readonly Fault[];
}

const Permissions = z.looseObject({ files: z.array(z.string()) });
const namesIn = (permissions: unknown) => Permissions.safeParse(permissions, SELDOM).data?.files ?? [];

/** Returns the paths of all rule files that the permissions name. */
export const ruleFiles = (permissions: unknown, configFile: string): string[] =>
  namesIn(permissions).map((file) => join(dirname(configFile), file));

/**
 * Reads the rules in files. `permissions` may be invalid, because its schema is applied later and reports
 * invalid values.
 */
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
    // The cast is safe, because the schema accepted a list.
    return { rules: rules as unknown[] };
  } catch (error) {
    return { faults: [`must name a JSON file: in \`${file}\`, ${messageOf(error)}`] };
  }
}

function inFile(fault: Fault, file: string): string {
  const path = fault.path.slice(1);
  return `in \`${file}\`, ${path.length === 0 ? "all of it " : ""}${sentence({ ...fault, path })}`;
}
