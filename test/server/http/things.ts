// What people have on a server: a thread, its runs, messages and events, a file. For tests of who finds what.

import type { Script } from "../../../src/agent/models/scripted.ts";
import { randomId } from "../../../src/lib/random-id.ts";
import { responseIdOf } from "../../../src/wires/openai/responses/ids.ts";

export interface Person {
  readonly tenant: string;
  readonly user: string;
}

/** By which each thing is named in a request. */
export interface Things {
  readonly thread: string;
  readonly run: string;
  readonly message: string;
  /** The run, as clients of OpenAI's API name it. */
  readonly response: string;
  /** A cursor in the run. */
  readonly event: string;
  /** The path of the run's stream. */
  readonly stream: string;
  readonly threadPage: string;
  readonly runPage: string;
  /** Of `GET /runs`. */
  readonly allRunsPage: string;
  /** With which the run was started. */
  readonly key: string;
  readonly file: string;
  /** What the run asks; of a run that asks nothing, one that it might have asked. */
  readonly interrupt: string;
  /** Of the thread. */
  readonly share: string;
  readonly schedule: string;
  /** Of the tenant. */
  readonly tool: string;
  readonly webhook: string;
  readonly connection: string;
  readonly trigger: string;
}

/** What every text of ada's holds. */
export const SECRET = "what-ada-is-up-to";

/** As a gateway says it. */
export const headersOf = ({ tenant, user }: Person) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": "read,run,tools,admin",
});

export interface Row {
  readonly id: string;
  readonly status: string;
  readonly next_cursor: string;
  readonly items: readonly Row[];
}

export interface Client {
  /** Throws what is refused. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  read(path: string): Promise<Row>;
  start(thread: string, body: object, headers?: Record<string, string>): Promise<Response>;
}

export function client(url: string, who: Person): Client {
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(url + path, { ...init, headers: { ...init.headers, ...headersOf(who) } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  return {
    ask,
    read: async (path) => (await ask(path)).json() as Promise<Row>,
    start: (thread, body, headers = {}) =>
      ask(`/threads/${thread}/runs`, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
      }),
  };
}

/** What the second run of a thread is at: it is over, is at work, waits behind one that is, or waits for an answer. */
export const STATES = ["ended", "running", "waiting", "interrupted"] as const;

const CLIENT_TOOL = { name: "ask_me", description: SECRET, parameters: { type: "object" } };

/** Says what it says slowly for longer than any test takes, and asks with a tool when told so. */
export const script: Script = ({ messages, system }) => {
  if (system.some(({ id }) => id === "title")) return { say: "About something" };
  const last = messages.findLast(({ role }) => role === "user");
  const text = JSON.stringify(last ?? "");
  if (text.includes("slowly")) return { say: SECRET, delay_ms: 600_000 };
  if (text.includes("ask me")) return { call: [{ tool: CLIENT_TOOL.name, id: `call_${randomId()}` }] };
  return { say: "ok" };
};

/** A new thread with a run that has ended and another one, whose things these are; and a file and a tool. */
export async function makeThings(
  { ask, read, start }: Client,
  state: (typeof STATES)[number],
): Promise<Things> {
  const thread = `th_${randomId()}`;
  const path = `/threads/${thread}`;
  const key = `key-${randomId()}`;
  const file = `folder-${randomId()}/notes.txt`;
  await (await start(thread, { input: SECRET })).text();
  const slow = { input: `${SECRET} slowly`, background: true };
  if (state === "waiting") await start(thread, slow);
  const body = {
    ended: { input: SECRET },
    running: slow,
    waiting: slow,
    interrupted: { input: `${SECRET} ask me`, tools: [CLIENT_TOOL] },
  }[state];
  const started = await start(
    thread,
    { ...body, background: true, on_busy: "enqueue" },
    { "idempotency-key": key },
  );
  const { id: run } = (await started.json()) as Row;
  if (state === "ended" || state === "interrupted") await (await ask(`${path}/runs/${run}/events`)).text();
  const [asked] = (await read(`${path}/interrupts`)).items;
  const tool = `tool_${randomId()}`;
  const registration = {
    name: tool,
    description: "Looks it up.",
    callback_url: "https://tools.example.com/",
  };
  await ask("/tools", {
    method: "POST",
    body: JSON.stringify({ ...registration, parameters: { type: "object" } }),
    headers: { "content-type": "application/json" },
  });
  const trigger = `trg_${randomId()}`;
  await ask(`/triggers/${trigger}`, {
    method: "PUT",
    body: JSON.stringify({ agent: "assistant", verify: { scheme: "github" }, input: SECRET }),
    headers: { "content-type": "application/json" },
  });
  await ask(`/backend/files/${file}`, { method: "PUT", body: SECRET });
  await ask(path, {
    method: "PATCH",
    body: JSON.stringify({ title: `${SECRET} today` }),
    headers: { "content-type": "application/json" },
  });
  const schedule = `schedule_${randomId()}`;
  await ask(`/schedules/${schedule}`, {
    method: "PUT",
    body: JSON.stringify({ cron: "0 9 1 1 *", input: SECRET }),
    headers: { "content-type": "application/json" },
  });
  const webhook = `wh_${randomId()}`;
  await ask(`/webhooks/${webhook}`, {
    method: "PUT",
    body: JSON.stringify({ url: "https://hooks.example.com/", on: ["schedule.paused"] }),
    headers: { "content-type": "application/json" },
  });
  const connection = `con_${randomId()}`;
  await ask(`/me/connections/${connection}`, {
    method: "PUT",
    body: JSON.stringify({
      type: "static_bearer",
      mcp_server_url: "https://mcp.example.com/",
      token: "token",
    }),
    headers: { "content-type": "application/json" },
  });
  const shared = await ask(`${path}/shares`, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  return {
    ...{ thread, run, key, file, event: `${run}:1-1`, stream: `${path}/runs/${run}/events` },
    message: (await read(`${path}/messages`)).items[0]?.id ?? "",
    response: responseIdOf({ id: run, thread_id: thread }),
    runPage: (await read(`${path}/runs?limit=1`)).next_cursor,
    allRunsPage: Buffer.from(`${new Date().toISOString()} ${run}`).toString("base64url"),
    share: ((await shared.json()) as Row).id,
    interrupt: asked?.id ?? `tool_call_${randomId()}`,
    ...{ tool, webhook, schedule, trigger, connection },
    threadPage: Buffer.from(`${Date.now()} ${thread}`).toString("base64url"),
  };
}

/** The same, of things that never were: every id in them is another one of the same length. */
export function neverMade(things: Things): Things {
  const others = new Map<string, string>();
  const other = (text: string) =>
    text.replace(/(?<=_|key-|folder-)[0-9A-Za-z]{22}/g, (id) => {
      const made = others.get(id) ?? randomId();
      others.set(id, made);
      return made;
    });
  const entries = Object.entries(things).map(([kind, value]: [string, string]) => {
    const plain = other(value);
    if (plain !== value) return [kind, plain] as const;
    return [
      kind,
      Buffer.from(other(Buffer.from(value, "base64url").toString())).toString("base64url"),
    ] as const;
  });
  // The keys are those of `things`.
  return Object.fromEntries(entries) as unknown as Things;
}
