// Session hooks, which load the conversation from elsewhere and save it there. A server does not need them, because its
// thread is the session.

import type { Hook, Message } from "../../src/index.ts";

export interface Sessions {
  load(id: string): Promise<readonly Message[]>;
  save(id: string, messages: readonly Message[]): Promise<void>;
}

export function session(sessions: Sessions): Hook {
  let earlier: readonly Message[] = [];
  return {
    name: "session",
    async beforeAgent(run) {
      earlier = await sessions.load(run.threadId);
    },
    modifyRequest: (request) => ({ ...request, messages: [...earlier, ...request.messages] }),
    afterAgent: (_outcome, run) => sessions.save(run.threadId, [...earlier, ...run.messages]),
  };
}
