// The editor's sessions, which are threads on the server.

import {
  type AgentContext,
  type ClientCapabilities,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type LoadSessionRequest,
  type McpServer,
  type NewSessionRequest,
  type PromptRequest,
  type PromptResponse,
  RequestError,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { type Content, textOf, userMessage } from "../../agent/core/message.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import { titleFrom } from "../../agent/core/title.ts";
import {
  type Client,
  type ClientOptions,
  createClient,
  type Interrupt,
  ProblemError,
} from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { askFor, inWords } from "./asking.ts";
import { contentOf, text } from "./content.ts";
import { historyOf, project } from "./table.ts";
import { runTurn, type Start } from "./turn.ts";

export interface SessionsOptions {
  readonly url: string;
  readonly key: string | undefined;
  /** Default: the thread's own agent or, if it has none, the server's default agent. */
  readonly agent: string | undefined;
  /** Aborts when the editor has disconnected. */
  readonly signal: AbortSignal;
  readonly log: (message: string) => void;
}

/**
 * The maximum number of sessions per editor. If an editor opens more sessions, the oldest session is forgotten and must
 * be loaded again.
 */
const MOST_SESSIONS = 1000;
const SESSIONS_A_PAGE = 100;

interface Session {
  readonly cwd: string;
  readonly contextWindow: number;
  /** True until the first prompt creates the thread, because editors open sessions that they never use. */
  readonly isNew: boolean;
  /** A notice that the user has not seen yet. */
  readonly notice?: string | undefined;
}

/** The editor that sent a request. */
interface Editor {
  readonly editor: AgentContext;
  readonly capabilities: ClientCapabilities;
}

/** Every function throws `RequestError` or the server's refusal. */
export function createSessions(options: SessionsOptions) {
  const { url, key, agent, log } = options;
  const server = { baseUrl: url, headers: omitUndefined({ authorization: key && `Bearer ${key}` }) };
  const { threads, agents } = createClient(server);
  const known = new Map<string, Session>();
  /** The prompts in progress, by session. */
  const stops = new Map<string, AbortController>();

  const keep = (id: string, session: Session) => {
    known.delete(id);
    known.set(id, session);
    const [oldest] = known.keys();
    if (known.size > MOST_SESSIONS && oldest !== undefined) known.delete(oldest);
  };

  /**
   * This is also the first request to the server, so it fails if the server is unreachable, or refuses the key or the
   * agent.
   */
  const contextWindowOf = async (name: string | undefined): Promise<number> => {
    if (name !== undefined) return (await agents.get(name)).context_window;
    return (await agents.list()).find(({ default: isDefault }) => isDefault)?.context_window ?? 0;
  };

  const noticeOf = (servers: readonly McpServer[]): string | undefined => {
    if (servers.length === 0) return undefined;
    const names = servers.map(({ name }) => name).join(", ");
    const notice = `The agent uses its own tools and ignores the editor's MCP servers (${names}).`;
    log(notice);
    return notice;
  };

  /** Creates the thread. Returns the title that its first run will give it. */
  const create = async (id: string, { cwd }: Session, content: Content): Promise<string | undefined> => {
    await threads.create({ id, metadata: { cwd } });
    return titleFrom([userMessage(content)]);
  };

  return {
    async open({ cwd, mcpServers }: NewSessionRequest): Promise<{ sessionId: string }> {
      const contextWindow = await contextWindowOf(agent);
      const sessionId = newThreadId();
      keep(sessionId, { cwd, contextWindow, isNew: true, notice: noticeOf(mcpServers) });
      return { sessionId };
    },

    /** Shows the thread's messages. */
    async load({ sessionId, cwd, mcpServers }: LoadSessionRequest, from: Editor): Promise<object> {
      const thread = await threads.get(sessionId).catch((error: unknown) => {
        if (error instanceof ProblemError && error.status === 404)
          throw RequestError.sessionNotFound(sessionId);
        throw error;
      });
      const contextWindow = await contextWindowOf(agent ?? thread.agent);
      const { messages, todos } = await threads.state(sessionId);
      const show = shower(sessionId, from);
      for (const update of historyOf(messages as Parameters<typeof historyOf>[0], todos)) await show(update);
      const { title, updated_at: updatedAt } = thread;
      await show({ sessionUpdate: "session_info_update", ...omitUndefined({ title, updatedAt }) });
      const session = { cwd, contextWindow, isNew: false, notice: noticeOf(mcpServers) };
      await tellNotice(sessionId, session, from);
      keep(sessionId, { ...session, notice: undefined });
      return {};
    },

    list: (request: ListSessionsRequest) => listSessions(threads, agent, request),

    /** Resolves once the whole turn has ended. */
    async prompt(
      { sessionId, prompt }: PromptRequest,
      from: Editor & { readonly signal: AbortSignal },
    ): Promise<PromptResponse> {
      const session = known.get(sessionId);
      if (!session) throw RequestError.sessionNotFound(sessionId);
      if (stops.has(sessionId))
        throw new RequestError(
          -32602,
          "This session already has a prompt in progress. Cancel it, or wait until it ends.",
        );
      const content = contentOf(prompt);
      const stopping = new AbortController();
      const { signal: abandoned } = from;
      abandoned.addEventListener("abort", () => isCancelled(abandoned.reason) && stopping.abort());
      stops.set(sessionId, stopping);
      try {
        await tellNotice(sessionId, session, from);
        const title = session.isNew ? await create(sessionId, session, content) : undefined;
        keep(sessionId, { ...session, isNew: false, notice: undefined });
        const prompted = { session, title, from, stopped: stopping.signal };
        return { stopReason: await turn({ ...options, server }, sessionId, content, prompted) };
      } finally {
        stops.delete(sessionId);
      }
    },

    /** Stops the prompt in progress, if any. */
    cancel(sessionId: string): void {
      stops.get(sessionId)?.abort();
    },
  };
}

const shower =
  (sessionId: string, { editor }: Editor) =>
  (update: SessionUpdate) =>
    editor.notify("session/update", { sessionId, update });

const tellNotice = async (id: string, session: Session, from: Editor) => {
  if (session.notice === undefined || !from.capabilities.session?.notices) return;
  await shower(id, from)({ sessionUpdate: "notice", severity: "info", title: session.notice });
};

/** A thread that another client created has no folder, so it is listed for every folder. */
async function listSessions(
  threads: Client["threads"],
  agent: string | undefined,
  { cwd, cursor }: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const page = await threads.list({
    limit: SESSIONS_A_PAGE,
    ...omitUndefined({ agent, cursor: cursor ?? undefined }),
  });
  const here = cwd ?? process.cwd();
  const sessions = page.items.map(({ id, title, updated_at: updatedAt, metadata }) => ({
    sessionId: id,
    cwd: typeof metadata.cwd === "string" ? metadata.cwd : here,
    ...omitUndefined({ title, updatedAt }),
  }));
  return {
    sessions: sessions.filter((session) => !cwd || session.cwd === cwd),
    ...omitUndefined({ nextCursor: page.next_cursor }),
  };
}

/** The server and the options of its editor. */
interface Link extends SessionsOptions {
  readonly server: ClientOptions;
}

/** A prompt in progress. */
interface ActivePrompt {
  readonly session: Session;
  /** The title that the first run will give the thread. */
  readonly title: string | undefined;
  readonly from: Editor;
  readonly stopped: AbortSignal;
}

async function turn(
  { server, agent, signal, log }: Link,
  sessionId: string,
  content: Content,
  { session, title, from, stopped }: ActivePrompt,
) {
  const { editor, capabilities } = from;
  const show = shower(sessionId, from);
  if (title !== undefined) await show({ sessionUpdate: "session_info_update", title });

  const leaving = new AbortController();
  const client = createClient({
    ...server,
    onRetry(reason, attempt) {
      if (attempt === 3) log(`${reason.message} Retrying.`);
      if (stopped.aborted) leaving.abort();
    },
  });
  const run: Start = (runSignal, options) =>
    client.run(
      sessionId,
      { messages: [{ role: "user", content }], ...omitUndefined({ agent }) },
      runSignal,
      options,
    );
  const question = (await client.interrupts(sessionId)).find(({ kind }) => kind === "question");
  const answerTo =
    ({ id, run_id }: Interrupt): Start =>
    (runSignal, options) => {
      const answers = [{ id, decision: "respond", message: textOf(content) } as const];
      return client.resume(sessionId, run_id, answers, runSignal, options);
    };
  const { compaction, notices } = capabilities.session ?? {};
  return runTurn(
    {
      client,
      thread: sessionId,
      fold: project({
        contextWindow: session.contextWindow,
        shows: { notices: Boolean(notices), compaction: Boolean(compaction) },
      }),
      show,
      ask: (interrupt) => askFor(interrupt, { editor, capabilities, sessionId, signal: stopped }),
      sayQuestion: (interrupt) =>
        show({ sessionUpdate: "agent_message_chunk", content: text(inWords(interrupt)) }),
      stopped,
      signal: AbortSignal.any([signal, leaving.signal]),
    },
    question ? answerTo(question) : run,
  );
}

/** Returns true if the editor cancelled the request rather than disconnecting. */
const isCancelled = (reason: unknown) => reason instanceof RequestError && reason.code === -32800;
