// Generation hooks that bring a conversation from another place, and take it back there.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import { Message } from "../../core/message.ts";
import { unknownTo } from "../../core/messages.ts";
import type { GenerationHook } from "./generation.ts";

export const Session = z.object({
  id: z.string(),
  user_id: z.string(),
  messages: z.array(Message),
  updated_at: z.iso.datetime(),
});
export type Session = z.infer<typeof Session>;

/** Nobody finds another owner's session under an id of their own. */
export interface SessionRepository {
  /** Nothing when there is none. */
  get(owner: Owner, id: string): Promise<Session | undefined>;
  put(owner: Owner, session: Session): Promise<void>;
}

/** `loader` for `fromPreGeneration`, `saver` for `fromPostGeneration`. What the thread holds already is not shown twice. */
export function sessionHooks(repository: SessionRepository): {
  loader: GenerationHook;
  saver: GenerationHook;
} {
  return {
    async loader(state) {
      const session = await repository.get(state.run.owner, state.sessionId);
      if (session) state.messages.unshift(...unknownTo(state.messages, session.messages));
    },
    async saver({ run, sessionId, userId, messages, outputMessages }) {
      await repository.put(run.owner, {
        ...{ id: sessionId, user_id: userId, messages: [...messages, ...outputMessages] },
        updated_at: new Date().toISOString(),
      });
    },
  };
}

/** What a repository holds under an id. Throws `internal` for something else. */
export function sessionFrom(json: string): Session {
  const parsed = Session.safeParse(JSON.parse(json));
  if (parsed.success) return parsed.data;
  throw new AppError("internal", "A session that was kept cannot be read.", { cause: parsed.error });
}
