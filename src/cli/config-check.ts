// `skein config check`: everything that is wrong with the configuration, at once.

import { loadAgents } from "../agents/load.ts";
import { catalogueOf } from "../app.ts";
import { checkConfig } from "../config/check.ts";

/** Prints what there is to say; returns the exit code. */
export async function configCheck(env: NodeJS.ProcessEnv): Promise<number> {
  const catalogue = catalogueOf(env);
  const { problems, warnings, summary } = await checkConfig(env, (file) =>
    loadAgents({ file, catalogue, env }),
  );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
  process.stdout.write(`${summary}\n`);
  return problems.length > 0 ? 1 : 0;
}
