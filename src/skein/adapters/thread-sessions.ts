// A user's threads as sessions, one of which is the current session. Intended for programs that serve one user at a
// time, because a server must never guess which thread is meant.

import { randomUUID } from "node:crypto";
import type { Message, Run, Stores } from "../../index.ts";

type Owner = Run["owner"];
type Thread = Awaited<ReturnType<Stores["threads"]["create"]>>;

export interface Sessions {
  /** Creates a session and makes it the current one. */
  create(title: string): Promise<Thread>;
  get(id: string): Promise<Thread | undefined>;
  /** Returns the current session. Creates "New Session" if there is none. */
  current(): Promise<Thread>;
  /** Returns false if the session does not exist. */
  setCurrent(id: string): Promise<boolean>;
  /** Returns the 100 most recently changed sessions, newest first. */
  list(): Promise<Thread[]>;
  /**
   * Returns false if the session does not exist. Like the methods below, throws `thread_busy` while a run is active or
   * queued.
   */
  delete(id: string): Promise<boolean>;
  addMessage(id: string, message: Message): Promise<boolean>;
  /** Returns a copy of the messages. */
  getMessages(id: string): Promise<Message[]>;
  clearMessages(id: string): Promise<boolean>;
  updateTitle(id: string, title: string): Promise<boolean>;
}

export function sessionsOf(
  stores: Stores,
  { tenant = "default", user = "default" }: Partial<Owner> = {},
): Sessions {
  const { threads } = stores;
  const owner = { tenant, user };
  let current: string | undefined;

  const create = async (title: string) => {
    const thread = await threads.create(owner, { id: `th_${randomUUID()}`, title, metadata: {} });
    current = thread.id;
    return thread;
  };
  /** Shared by concurrent callers, so they get the same session. */
  let making: Promise<Thread> | undefined;
  const makeOne = () => {
    making ??= create("New Session").finally(() => {
      making = undefined;
    });
    return making;
  };

  return {
    create,
    get: (id) => threads.get(owner, id),
    current: async () => (current === undefined ? undefined : await threads.get(owner, current)) ?? makeOne(),
    async setCurrent(id) {
      if (!(await threads.get(owner, id))) return false;
      current = id;
      return true;
    },
    list: async () => (await threads.list(owner, { limit: 100 })).items,
    async delete(id) {
      const isDeleted = await threads.delete(owner, id);
      if (isDeleted && current === id) current = undefined;
      return isDeleted;
    },
    async addMessage(id, message) {
      if (!(await threads.get(owner, id))) return false;
      await enter(stores, owner, id, message);
      return true;
    },
    getMessages: (id) => threads.messages(owner, id),
    clearMessages: (id) => threads.clear(owner, id),
    updateTitle: async (id, title) => (await threads.update(owner, id, { title })) !== undefined,
  };
}

/** Messages can only be added to a thread by a run. This run adds the message without a model call. */
async function enter(
  { runs, events, threads }: Stores,
  owner: Owner,
  id: string,
  message: Message,
): Promise<void> {
  const agent = (await threads.get(owner, id))?.agent ?? "agent";
  const run = {
    id: `run_${randomUUID()}`,
    thread_id: id,
    agent,
    request: { input: [], settings: {} },
    metadata: {},
  };
  const started = await runs.start(owner, run, "reject");
  if (started.outcome !== "claimed") return;
  const { usage } = started.claim.run;
  await events.append(started.claim.lease, [
    { event: "run_start", data: { agent, model: "none:none", attempt: 1 } },
    { event: "on_message", data: { message } },
    { event: "done", data: { status: "success", stop_reason: "end_turn", usage } },
  ]);
}
