// `skein config check`: prints every problem and warning of the configuration.

import type { ServerPlugins } from "../app/server-plugins.ts";
import { checkConfig } from "../config/check.ts";
import { agentsIn, requireScheme, serverPlugins } from "./agents-file.ts";

/** Resolves with the exit code: 1 when the server would not start. */
export async function configCheck(env: NodeJS.ProcessEnv): Promise<number> {
  let own: ServerPlugins | undefined;
  const { problems, warnings, summary } = await checkConfig(
    env,
    (file) => agentsIn(file, env, own),
    async (config) => {
      own = await serverPlugins(config);
      requireScheme(config, own);
    },
  );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
  process.stdout.write(`${summary}\n`);
  return problems.length > 0 ? 1 : 0;
}
