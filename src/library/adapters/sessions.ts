// Threads by another name: the sessions of one user, with one of them current. A convenience of programs with one user
// at a time; a server never guesses which thread is meant.

import { newRunId, newThreadId, type Owner } from "../../core/ids.ts";
import type { Message } from "../../core/message.ts";
import type { Thread } from "../../core/records.ts";
import type { Stores } from "../../core/stores.ts";

export interface Sessions {
  /** A new one, which is then the current one. */
  create(title: string): Promise<Thread>;
  get(id: string): Promise<Thread | undefined>;
  /** The current one; when there is none, a new one called "New Session". */
  current(): Promise<Thread>;
  /** False, and nothing changed, when there is none of that id. */
  setCurrent(id: string): Promise<boolean>;
  /** Last changed first; a hundred at most. */
  list(): Promise<Thread[]>;
  /** False when there was none. Throws `thread_busy` while a run is active or waits; so do those below. */
  delete(id: string): Promise<boolean>;
  addMessage(id: string, message: Message): Promise<boolean>;
  /** A copy. */
  getMessages(id: string): Promise<Message[]>;
  clearMessages(id: string): Promise<boolean>;
  updateTitle(id: string, title: string): Promise<boolean>;
}

const MOST = 100;

export function sessionsOf(
  stores: Stores,
  { tenant = "default", user = "default" }: Partial<Owner> = {},
): Sessions {
  const { threads } = stores;
  const owner = { tenant, user };
  let current: string | undefined;

  const create = async (title: string) => {
    const thread = await threads.create(owner, { id: newThreadId(), title, metadata: {} });
    current = thread.id;
    return thread;
  };
  /** Of several that ask at once for the current one, all get the same. */
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
    list: async () => (await threads.list(owner, { limit: MOST })).items,
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

/** Messages join a thread in runs: this one does nothing else, and asks nobody. */
async function enter(
  { runs, events, threads }: Stores,
  owner: Owner,
  id: string,
  message: Message,
): Promise<void> {
  const agent = (await threads.get(owner, id))?.agent ?? "agent";
  const run = { id: newRunId(), thread_id: id, agent, request: { input: [], settings: {} }, metadata: {} };
  const started = await runs.start(owner, run, "reject");
  if (started.outcome !== "claimed") return;
  const { usage } = started.claim.run;
  await events.append(started.claim.lease, [
    { event: "run_start", data: { agent, model: "none:none", attempt: 1 } },
    { event: "on_message", data: { message } },
    { event: "done", data: { status: "success", stop_reason: "end_turn", usage } },
  ]);
}
