// Methods that send one request and return its response. Each method throws `ProblemError` if the server refuses the
// request, `ConnectionLost` if no response arrives, and the reason of `signal` if it aborts.

import { adminMethods } from "./admin-methods.ts";
import { ProblemError } from "./connection.ts";
import { connectionMethods } from "./connection-methods.ts";
import type { Body, Query, Reply, Requests } from "./requests.ts";
import { webhookMethods } from "./webhook-methods.ts";
import type { FileEntry, Interrupt, Part, RememberedRule } from "./wire.ts";

type Signal = AbortSignal | undefined;
type Rule = Body<"POST /agents/{name}/permissions">;

/** The agent whose backend to use. Defaults to the first agent. */
export interface OfAgent {
  readonly agent?: string | undefined;
}
export interface ReadOptions extends OfAgent {
  /** The first and last byte to read, both included. Without `last`, reads to the end. */
  readonly range?: { readonly first: number; readonly last?: number };
}

export interface WriteOptions extends OfAgent {
  /**
   * The version from an earlier read. The file is written only if it still has this version. With `null`, it is written
   * only if it does not exist. By default, it is always written.
   */
  readonly version?: string | null | undefined;
}
export interface ReadFile {
  readonly bytes: Blob;
  readonly version: string;
}

const ifVersion = (version: string | null): Readonly<Record<string, string>> =>
  version === null ? { "if-none-match": "*" } : { "if-match": version };

export function createMethods({ call, open }: Requests) {
  return {
    /** Returns the current user, their scopes and how the server authenticates them. */
    me: (signal?: Signal) => call("GET /me", {}, signal),
    /** Returns how this server authenticates users and where they sign in. Requires no credentials. */
    signInOptions: (signal?: Signal) => call("GET /sign-in", {}, signal),
    usage: (query: Query<"GET /usage"> = {}, signal?: Signal) => call("GET /usage", { query }, signal),
    /** Returns the server's version. Requires no credentials. */
    health: (signal?: Signal) => call("GET /health", {}, signal),
    /** Throws `ProblemError` while the server cannot serve requests. Requires no credentials. */
    ready: (signal?: Signal) => call("GET /ready", {}, signal),
    /** Creates a ticket for an `EventSource`, which cannot send headers. `path` is the path of a stream, such as `/events`. */
    ticket: (path: string, signal?: Signal) => call("POST /tickets", { body: { path } }, signal),

    /** Lists the open interrupts of a thread. Returns an empty list if the thread does not exist. */
    async interrupts(threadId: string, signal?: Signal): Promise<Interrupt[]> {
      try {
        return (await call("GET /threads/{thread_id}/interrupts", { path: { thread_id: threadId } }, signal))
          .items;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return [];
        throw error;
      }
    },
    /** Lists the open interrupts of all threads. A page can be empty and still have a `next_cursor`. */
    openInterrupts: (query: Query<"GET /interrupts"> = {}, signal?: Signal) =>
      call("GET /interrupts", { query }, signal),

    /** Stops a run: `cancel` stops it now, `interrupt` after its current step. */
    stop: (threadId: string, runId: string, mode: "cancel" | "interrupt" = "cancel", signal?: Signal) =>
      call(
        "POST /threads/{thread_id}/runs/{run_id}/cancel",
        { path: { thread_id: threadId, run_id: runId }, body: { mode } },
        signal,
      ),
    /**
     * Adds a user message to a run in progress. The run's next model call includes the message. Throws
     * `run_not_active`.
     */
    steer: (threadId: string, runId: string, content: string | readonly Part[], signal?: Signal) =>
      call(
        "POST /threads/{thread_id}/runs/{run_id}/messages",
        { path: { thread_id: threadId, run_id: runId }, body: { content } },
        signal,
      ),

    threads: threadMethods({ call }),
    shares: shareMethods({ call }),
    feedback: feedbackMethods({ call }),
    schedules: scheduleMethods({ call }),
    runs: runMethods({ call }),
    agents: agentMethods({ call }),
    tools: toolMethods({ call }),
    webhooks: webhookMethods({ call }),
    connections: connectionMethods({ call }),
    triggers: triggerMethods({ call }),
    permissions: permissionMethods({ call }),
    backend: backendMethods({ call }),
    files: fileMethods({ call, open }),
    admin: adminMethods({ call, open }),
  };
}

/** Identifies a thread that a user of the tenant shares. */
export interface SharedPlace {
  readonly user: string;
  readonly thread: string;
  readonly share: string;
}

function shareMethods({ call }: Pick<Requests, "call">) {
  const of = (threadId: string) => ({ path: { thread_id: threadId } });
  const at = ({ user, thread, share }: SharedPlace) => ({
    path: { user, thread_id: thread, share_id: share },
  });
  return {
    /** Lets other users of the tenant read the thread. */
    create: (threadId: string, share: Body<"POST /threads/{thread_id}/shares"> = {}, signal?: Signal) =>
      call("POST /threads/{thread_id}/shares", { ...of(threadId), body: share }, signal),
    /** Lists the active shares, newest first. */
    of: async (threadId: string, signal?: Signal) =>
      (await call("GET /threads/{thread_id}/shares", of(threadId), signal)).items,
    end: (threadId: string, shareId: string, signal?: Signal) =>
      call(
        "DELETE /threads/{thread_id}/shares/{share_id}",
        { path: { thread_id: threadId, share_id: shareId } },
        signal,
      ),
    /** Reads a shared thread. After the share has ended, throws `ProblemError` with status 404. */
    get: (place: SharedPlace, signal?: Signal) =>
      call("GET /shared/{user}/{thread_id}/{share_id}", at(place), signal),
    /** Lists the messages, oldest first. */
    messages: (
      place: SharedPlace,
      query: Query<"GET /shared/{user}/{thread_id}/{share_id}/messages"> = {},
      signal?: Signal,
    ) => call("GET /shared/{user}/{thread_id}/{share_id}/messages", { ...at(place), query }, signal),
  };
}

function scheduleMethods({ call }: Pick<Requests, "call">) {
  const of = (scheduleId: string) => ({ path: { schedule_id: scheduleId } });
  return {
    /** Lists your schedules, sorted by id. */
    list: (query: Query<"GET /schedules"> = {}, signal?: Signal) => call("GET /schedules", { query }, signal),
    get: (scheduleId: string, signal?: Signal) =>
      call("GET /schedules/{schedule_id}", of(scheduleId), signal),
    /** Creates or replaces a schedule. */
    put: (scheduleId: string, schedule: Body<"PUT /schedules/{schedule_id}">, signal?: Signal) =>
      call("PUT /schedules/{schedule_id}", { ...of(scheduleId), body: schedule }, signal),
    delete: (scheduleId: string, signal?: Signal) =>
      call("DELETE /schedules/{schedule_id}", of(scheduleId), signal),
    /** Returns the next times of a schedule without storing the schedule. */
    preview: (times: Body<"POST /schedules/preview">, signal?: Signal) =>
      call("POST /schedules/preview", { body: times }, signal),
    /** Starts a run of the schedule now, in addition to its scheduled runs. */
    run: (scheduleId: string, signal?: Signal) =>
      call("POST /schedules/{schedule_id}/run", of(scheduleId), signal),
  };
}

function feedbackMethods({ call }: Pick<Requests, "call">) {
  const at = (threadId: string, messageId: string) => ({
    path: { thread_id: threadId, message_id: messageId },
  });
  return {
    /** Lists the ratings of a thread's answers, most recent change first. */
    of: async (threadId: string, signal?: Signal) =>
      (await call("GET /threads/{thread_id}/feedback", { path: { thread_id: threadId } }, signal)).items,
    /** Rates an answer and replaces any earlier rating. */
    put: (
      threadId: string,
      messageId: string,
      rating: Body<"PUT /threads/{thread_id}/messages/{message_id}/feedback">,
      signal?: Signal,
    ) =>
      call(
        "PUT /threads/{thread_id}/messages/{message_id}/feedback",
        { ...at(threadId, messageId), body: rating },
        signal,
      ),
    remove: (threadId: string, messageId: string, signal?: Signal) =>
      call("DELETE /threads/{thread_id}/messages/{message_id}/feedback", at(threadId, messageId), signal),
  };
}

function threadMethods({ call }: Pick<Requests, "call">) {
  const of = (threadId: string) => ({ path: { thread_id: threadId } });
  return {
    /** Lists threads, most recent change first. */
    list: (query: Query<"GET /threads"> = {}, signal?: Signal) => call("GET /threads", { query }, signal),
    create: (thread: Body<"POST /threads"> = {}, signal?: Signal) =>
      call("POST /threads", { body: thread }, signal),
    get: (threadId: string, signal?: Signal) => call("GET /threads/{thread_id}", of(threadId), signal),
    /** Returns the messages, todos, files and status. */
    state: (threadId: string, signal?: Signal) =>
      call("GET /threads/{thread_id}/state", of(threadId), signal),
    /** Lists the messages, oldest first. */
    messages: (threadId: string, query: Query<"GET /threads/{thread_id}/messages"> = {}, signal?: Signal) =>
      call("GET /threads/{thread_id}/messages", { ...of(threadId), query }, signal),
    rename: (threadId: string, title: string, signal?: Signal) =>
      call("PATCH /threads/{thread_id}", { ...of(threadId), body: { title } }, signal),
    /** Changes the title, the metadata, or both. */
    update: (threadId: string, changes: Body<"PATCH /threads/{thread_id}">, signal?: Signal) =>
      call("PATCH /threads/{thread_id}", { ...of(threadId), body: changes }, signal),
    /** Asks a model for a title and sets it. */
    suggestTitle: (threadId: string, signal?: Signal) =>
      call("POST /threads/{thread_id}/title", { ...of(threadId), body: {} }, signal),
    /** Deletes the thread, its runs and the threads of its subagents. */
    delete: (threadId: string, signal?: Signal) => call("DELETE /threads/{thread_id}", of(threadId), signal),
    /** Deletes the thread's messages and state, but keeps the thread. */
    clear: (threadId: string, signal?: Signal) =>
      call("DELETE /threads/{thread_id}/messages", of(threadId), signal),
    /** Creates a thread that starts with a copy of the messages up to one of them. */
    fork: (threadId: string, options: Body<"POST /threads/{thread_id}/fork"> = {}, signal?: Signal) =>
      call("POST /threads/{thread_id}/fork", { ...of(threadId), body: options }, signal),
    /** Lists the thread's branches, newest first. A branch is a thread with messages that were replaced. */
    branches: async (threadId: string, signal?: Signal) =>
      (await call("GET /threads/{thread_id}/branches", of(threadId), signal)).items,
    /** Restores a branch. The messages that it replaces become a branch. */
    restore: (threadId: string, branchId: string, signal?: Signal) =>
      call(
        "POST /threads/{thread_id}/branches/{branch_id}/restore",
        { path: { thread_id: threadId, branch_id: branchId } },
        signal,
      ),
    usage: (threadId: string, signal?: Signal) =>
      call("GET /threads/{thread_id}/usage", of(threadId), signal),
  };
}

function runMethods({ call }: Pick<Requests, "call">) {
  const at = (threadId: string, runId: string) => ({ path: { thread_id: threadId, run_id: runId } });
  return {
    /** Lists the runs of all threads, newest first. */
    list: (query: Query<"GET /runs"> = {}, signal?: Signal) => call("GET /runs", { query }, signal),
    /** Lists the runs of a thread, newest first. */
    of: (threadId: string, query: Query<"GET /threads/{thread_id}/runs"> = {}, signal?: Signal) =>
      call("GET /threads/{thread_id}/runs", { path: { thread_id: threadId }, query }, signal),
    get: (threadId: string, runId: string, signal?: Signal) =>
      call("GET /threads/{thread_id}/runs/{run_id}", at(threadId, runId), signal),
    trace: (threadId: string, runId: string, signal?: Signal) =>
      call("GET /threads/{thread_id}/runs/{run_id}/trace", at(threadId, runId), signal),
    /** Returns the request of the run's `n`th own model call, numbered as in the trace. Throws `not_recorded`. */
    request: (threadId: string, runId: string, n: number, signal?: Signal) =>
      call(
        "GET /threads/{thread_id}/runs/{run_id}/requests/{n}",
        { path: { thread_id: threadId, run_id: runId, n } },
        signal,
      ),
  };
}

function agentMethods({ call }: Pick<Requests, "call">) {
  const of = (name: string) => ({ path: { name } });
  return {
    list: async (signal?: Signal) => (await call("GET /agents", {}, signal)).items,
    get: (name: string, signal?: Signal) => call("GET /agents/{name}", of(name), signal),
    /** Lists the tools that your runs offer to the agent's model, sorted by name. */
    tools: async (name: string, signal?: Signal) =>
      (await call("GET /agents/{name}/tools", of(name), signal)).items,
    /** Returns the blocks of the agent's system prompt. Requires the scope `admin` or `operator`. */
    prompt: async (name: string, signal?: Signal) =>
      (await call("GET /agents/{name}/prompt", of(name), signal)).items,
    overrides: (name: string, signal?: Signal) => call("GET /agents/{name}/overrides", of(name), signal),
    /** Merges changes into your overrides. `null` removes an override. */
    setOverrides: (name: string, changes: Body<"PATCH /agents/{name}/overrides">, signal?: Signal) =>
      call("PATCH /agents/{name}/overrides", { ...of(name), body: changes }, signal),
    deleteOverrides: (name: string, signal?: Signal) =>
      call("DELETE /agents/{name}/overrides", of(name), signal),
  };
}

function toolMethods({ call }: Pick<Requests, "call">) {
  return {
    /** Lists tools, sorted by name. */
    list: (query: Query<"GET /tools"> = {}, signal?: Signal) => call("GET /tools", { query }, signal),
    /** Registers a tool, or replaces the tool of the same name. Only this response contains the secret. */
    put: (tool: Body<"POST /tools">, signal?: Signal) => call("POST /tools", { body: tool }, signal),
    /** Changes a tool without changing its secret. New headers are merged into its headers. */
    change: (name: string, changes: Body<"PATCH /tools/{name}">, signal?: Signal) =>
      call("PATCH /tools/{name}", { path: { name }, body: changes }, signal),
    delete: (name: string, signal?: Signal) => call("DELETE /tools/{name}", { path: { name } }, signal),
    /** Calls the tool's endpoint once, outside a run. */
    try: (name: string, args: Body<"POST /tools/{name}/try">["args"] = {}, signal?: Signal) =>
      call("POST /tools/{name}/try", { path: { name }, body: { args } }, signal),
    /** Delivers the result of a deferred call, with the token from the URL that came with the call. */
    deliver: (token: string, result: Body<"POST /tool-results/{token}">, signal?: Signal) =>
      call("POST /tool-results/{token}", { path: { token }, body: result }, signal),
  };
}

function triggerMethods({ call }: Pick<Requests, "call">) {
  const of = (id: string) => ({ path: { trigger_id: id } });
  return {
    /** Lists your triggers, newest first. */
    list: (query: Query<"GET /triggers"> = {}, signal?: Signal) => call("GET /triggers", { query }, signal),
    /** Returns a trigger with its last deliveries. */
    get: (id: string, signal?: Signal) => call("GET /triggers/{trigger_id}", of(id), signal),
    /**
     * Creates a trigger with an id chosen by the server. If the server creates the secret, only this response contains
     * it.
     */
    create: (trigger: Body<"POST /triggers">, signal?: Signal) =>
      call("POST /triggers", { body: trigger }, signal),
    /** Creates or replaces a trigger. A replaced trigger keeps its URL and, unless you send a new one, its secret. */
    put: (id: string, trigger: Body<"PUT /triggers/{trigger_id}">, signal?: Signal) =>
      call("PUT /triggers/{trigger_id}", { ...of(id), body: trigger }, signal),
    delete: (id: string, signal?: Signal) => call("DELETE /triggers/{trigger_id}", of(id), signal),
    /** Replaces the secret. The old secret stays valid for a day, or for `keep_old_for` seconds. */
    rotate: (id: string, options: Body<"POST /triggers/{trigger_id}/rotate"> = {}, signal?: Signal) =>
      call("POST /triggers/{trigger_id}/rotate", { ...of(id), body: options }, signal),
    /** Returns the run that a delivery would start, without starting it. */
    test: (id: string, delivery: Body<"POST /triggers/{trigger_id}/test">, signal?: Signal) =>
      call("POST /triggers/{trigger_id}/test", { ...of(id), body: delivery }, signal),
  };
}

function permissionMethods({ call }: Pick<Requests, "call">) {
  const thread = (threadId: string) => ({ path: { thread_id: threadId } });
  const agent = (name: string) => ({ path: { name } });
  const itemsOf = async (rules: Promise<Reply<"GET /agents/{name}/permissions">>) => (await rules).items;
  return {
    ofThread: (threadId: string, signal?: Signal): Promise<RememberedRule[]> =>
      itemsOf(call("GET /threads/{thread_id}/permissions", thread(threadId), signal)),
    /** Lists your rules for all your threads with the agent. */
    ofAgent: (name: string, signal?: Signal): Promise<RememberedRule[]> =>
      itemsOf(call("GET /agents/{name}/permissions", agent(name), signal)),
    /** Adds a rule. Replaces a rule with the same id. */
    addToThread: (threadId: string, rule: Rule, signal?: Signal) =>
      call("POST /threads/{thread_id}/permissions", { ...thread(threadId), body: rule }, signal),
    /** Adds a rule. Replaces a rule with the same id. */
    addToAgent: (name: string, rule: Rule, signal?: Signal) =>
      call("POST /agents/{name}/permissions", { ...agent(name), body: rule }, signal),
    removeFromThread: (threadId: string, id: string, signal?: Signal) =>
      call("DELETE /threads/{thread_id}/permissions/{id}", { path: { thread_id: threadId, id } }, signal),
    removeFromAgent: (name: string, id: string, signal?: Signal) =>
      call("DELETE /agents/{name}/permissions/{id}", { path: { name, id } }, signal),
    /** Removes all rules of a thread. */
    clearThread: (threadId: string, signal?: Signal) =>
      call("DELETE /threads/{thread_id}/permissions", thread(threadId), signal),
  };
}

function backendMethods({ call }: Pick<Requests, "call">) {
  const of = (agent: string | undefined) => ({ query: { agent } });
  return {
    /** Returns the status of the backend without starting it. */
    status: (agent?: string, signal?: Signal) => call("GET /backend", of(agent), signal),
    start: (agent?: string, signal?: Signal) => call("POST /backend/start", of(agent), signal),
    /** Stops the backend. Its files remain. */
    stop: (agent?: string, signal?: Signal) => call("POST /backend/stop", of(agent), signal),
    restart: (agent?: string, signal?: Signal) => call("POST /backend/restart", of(agent), signal),
  };
}

/** Methods for the files of a workspace. Paths are relative to it. */
function fileMethods({ call, open }: Pick<Requests, "call" | "open">) {
  const at = (path: string, agent: string | undefined) => ({ path: { path }, query: { agent } });
  return {
    /** Lists the entries of a folder. Defaults to the whole workspace. */
    async list(path = "", { agent }: OfAgent = {}, signal?: Signal): Promise<FileEntry[]> {
      return (await call("GET /backend/files/{path}", at(path, agent), signal)).items;
    },
    /** Reads a file, or a range of its bytes. Throws `invalid_request` for a folder. */
    async read(path: string, options: ReadOptions = {}, signal?: Signal): Promise<Blob> {
      return (await this.readVersion(path, options, signal)).bytes;
    },
    /** Reads a file along with its version, which you can pass to a later `write`. */
    async readVersion(path: string, { agent, range }: ReadOptions = {}, signal?: Signal): Promise<ReadFile> {
      const bytes = range && `bytes=${range.first}-${range.last ?? ""}`;
      const extra = bytes === undefined ? {} : { headers: { range: bytes } };
      const connection = await open("GET /backend/files/{path}", at(path, agent), signal, extra);
      if (!connection.headers.get("content-type")?.startsWith("application/json"))
        return { version: connection.headers.get("etag") ?? "", bytes: await connection.blob() };
      connection.close();
      throw new ProblemError(400, {
        code: "invalid_request",
        detail: `\`${path}\` is a folder, not a file.`,
      });
    },
    /** Replaces the whole file. Throws `precondition_failed` if the file no longer has the given `version`. */
    write: (
      path: string,
      content: Blob | Uint8Array<ArrayBuffer> | ArrayBuffer | string,
      { agent, version }: WriteOptions = {},
      signal?: Signal,
    ) => {
      const headers = version === undefined ? {} : ifVersion(version);
      return call("PUT /backend/files/{path}", at(path, agent), signal, { bytes: content, headers });
    },
    /** Deletes a file, or a folder with its contents. */
    delete: (path: string, { agent }: OfAgent = {}, signal?: Signal) =>
      call("DELETE /backend/files/{path}", at(path, agent), signal),
  };
}
