// The filesystem hook: the tools that use the backend.

import { z } from "zod";
import { defineHook } from "../../core/hook.ts";
import { editFile, writeFile } from "./change.ts";
import { execute } from "./execute.ts";
import { hostLimits, requestHost } from "./hosts.ts";
import { glob, grep, ls, readFile } from "./read.ts";

export const filesystem = defineHook({
  name: "filesystem",
  userMay: "disable",
  tools: ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "execute", "request_host"],
  options: z.strictObject({}),
  activeByDefault: (agent) => agent.backend !== undefined,
  create(_, { agent, backend }) {
    if (!backend) return { name: "filesystem" };
    const tools = [
      ...[ls, readFile, writeFile, editFile, glob, grep].map((make) => make(backend)),
      execute(backend, agent.backend),
      ...(hostLimits(agent.backend)?.ask ? [requestHost] : []),
    ];
    return { name: "filesystem", tools: () => tools };
  },
});
