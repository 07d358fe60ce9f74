// Makes an agent out of what a program says of it.

import { omitUndefined } from "../lib/omit-undefined.ts";
import { define } from "./definition.ts";
import type { AgentOptions, LocalAgent } from "./local-agent.ts";
import { createRuntime, type Runtime } from "./runtime.ts";

/** Connects to nobody. Throws `config_invalid` with everything that is wrong, one a line. */
export function createAgent(options: AgentOptions = {}): LocalAgent {
  const { definition, catalogue, backend } = define(options);
  let own: Runtime | undefined;
  const agent: LocalAgent = {
    ...{ name: definition.name, definition, catalogue },
    ...omitUndefined({ description: definition.description, backend, loop: options.loop }),
    subagents: (options.subagents ?? []).map((each) => ("agent" in each ? each.agent : each)),
    run(input, spawning = {}) {
      own ??= createRuntime({ agents: [agent] });
      return own.spawn(agent, { ...spawning, input });
    },
    with: (changes) => createAgent({ ...options, ...changes }),
    async close() {
      const closing = own;
      own = undefined;
      await closing?.close();
    },
  };
  return agent;
}
