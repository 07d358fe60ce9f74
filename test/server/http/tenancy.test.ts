// No user learns of another user's things. Every route of openapi.yaml is asked for ada's things by a neighbour in her
// tenant and by a stranger of another tenant; the answers must equal those for things that do not exist.

import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { WireName } from "../../../src/server/config/wire-names.ts";
import { type Operation, operations } from "../../support/openapi.ts";
import { isNightly } from "../../support/seed.ts";
import { startServer } from "../../support/server.ts";
import { view } from "../../support/sse.ts";
import { BODIES, type Input, inputsOf, mixturesOf } from "./inputs.ts";
import {
  type Client,
  client,
  headersOf,
  makeThings,
  neverMade,
  type Person,
  SECRET,
  STATES,
  script,
  type Things,
} from "./things.ts";

/** For inputs that name no one's thing. */
const NONE = "none";

/** The request of `who`, whose inputs have these values. */
function request(
  { name: route, method, path, body }: Operation,
  values: ReadonlyMap<Input, string>,
  who: Person,
) {
  let address = path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = headersOf(who);
  let json = JSON.stringify(BODIES[route]);
  for (const [{ place, name }, value] of values) {
    if (place === "path") address = address.replace(`{${name}}`, value);
    if (place === "query") query.set(name, value);
    if (place === "header") headers[name] = value;
    if (place === "body" && json.includes(`{${name}}`)) json = json.replace(`{${name}}`, value);
    else if (place === "body" && value !== NONE)
      json = JSON.stringify({ ...JSON.parse(json), [name]: value });
  }
  if (body) headers["content-type"] = "application/json";
  const content = body ? json : method === "PUT" ? "mine" : null;
  return {
    path: `${address
      .replace("{name}", "assistant")
      .replace("{tenant}", ADA.tenant)
      .replace("{user}", ADA.user)
      .replace(/\{(?:agent|model|assistant_id)\}/, "assistant")
      .replace("{n}", "1")
      .replace("{token}", "token")}?${query}`,
    init: { method, headers, body: content },
  };
}

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Whole, but for its date; of a stream that does not end by itself, the head. */
async function answerTo(url: string, { path, init }: ReturnType<typeof request>): Promise<Answer> {
  const response = await fetch(url + path, { ...init, redirect: "manual" });
  const request = response.headers.get("x-request-id") ?? "";
  const head = JSON.stringify([...response.headers].filter(([name]) => !OF_ITSELF.includes(name)));
  const isEndless =
    response.headers.get("content-type") === "text/event-stream" &&
    (init.method === "GET" || path.includes("/stream/events"));
  if (isEndless) await response.body?.cancel();
  const body = isEndless ? "" : (await response.text()).replaceAll(request, "<request>");
  return { status: response.status, head, body };
}

/** Another one in each answer. */
const OF_ITSELF = ["date", "x-request-id"];

const ID = /[0-9A-Za-z]{22}/g;

/** With what was sent, and in a success what is generated each time, replaced. */
function comparable({ status, head, body }: Answer, sent: Iterable<[Input, string]>): string {
  let text = `${status}\n${head}\n${body}`;
  for (const [{ kind }, value] of sent)
    for (const part of [value, ...value.matchAll(ID)]) text = text.replaceAll(String(part), `<${kind}>`);
  if (status >= 400) return text;
  const ids: string[] = [];
  return text
    .replace(
      /(?:(?:th|run|msg|resp|wh|trg|cron)_|(?<="etag","\\"v))[0-9A-Za-z]{22}(?![0-9A-Za-z])/g,
      (id) => `<id ${ids.includes(id) ? ids.indexOf(id) : ids.push(id)}>`,
    )
    .replace(/"(created|created_at|first_token_ms|step)":\d+/g, '"$1":"<time>"')
    .replace(/"(?:bob|other)-\d+"/g, '"<newcomer>"')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/\["etag","[^\]]+"\]/, '["etag","<etag>"]')
    .replace(/\/hooks\/[0-9A-Za-z]{22}/g, "/hooks/<address>")
    .replace(/"(ticket|secret)":"[^"]+"/, '"$1":"<$1>"');
}

const ADA: Person = { tenant: "acme", user: "ada" };
let people = 1000;
/** Each is new and has nothing yet. The stranger has ada's name. */
const neighbour = (): Person => ({ tenant: ADA.tenant, user: `bob-${people++}` });
const stranger = (): Person => ({ tenant: `other-${people++}`, user: ADA.user });
const NEWCOMERS = [neighbour, stranger];
const METHODS = [...new Set(operations.map(({ method }) => method))];

const isOf = ({ tenant, user }: Person, line: Partial<Person>) =>
  line.tenant === tenant && line.user === user;
/** Tools are ada's neighbours' as well. */
const isOfTenant = ({ kind }: Input) => kind === "tool";

async function serve() {
  const log: string[] = [];
  const { url } = await startServer({
    config: {
      vault: { key: Buffer.alloc(32).toString("base64") },
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      backends: { allow_local: true },
      traces: { requests: true },
      wires: WireName.options,
    },
    script,
    logger: pino({ level: "info" }, { write: (line: string) => log.push(line) }),
  });
  return { url, log, ada: client(url, ADA) };
}

/** All that the API tells `who` of these. */
async function pictureOf(who: Client, all: readonly Things[]): Promise<string[]> {
  const paths = all.flatMap(({ thread, run, file, trigger }) => [
    ...["", "/messages", "/state", "/runs", `/runs/${run}`].map((rest) => `/threads/${thread}${rest}`),
    `/backend/files/${file}`,
    `/triggers/${trigger}`,
  ]);
  return Promise.all(["/threads", "/backend", ...paths].map(async (path) => (await who.ask(path)).text()));
}

describe.each([
  { who: "another user of the tenant", newcomer: neighbour },
  { who: "a user of another tenant", newcomer: stranger },
])("$who", ({ newcomer }) => {
  test.each(METHODS)(
    "gets the same response for ada's data as for missing data: every %s route",
    async (method) => {
      const { url, log, ada } = await serve();
      const adas: Things[] = [];
      for (const state of STATES) adas.push(await makeThings(ada, state));
      const marks = [SECRET, ...adas.flatMap((things) => Object.values<string>({ ...things }))];
      const tools = adas.map(({ tool }) => tool);
      const before = await pictureOf(ada, adas);
      const statuses = new Set<number>();

      const answered = async ({ operation, inputs, mixture }: Case, who: Asker, theirs: Things) => {
        const values = new Map<Input, string>();
        for (const input of inputs)
          if (mixture.has(input)) values.set(input, theirs[input.kind]);
          else if (input.place === "path" || input.place === "body")
            values.set(input, who.own[input.kind] ?? NONE);
        const asked = request(operation, values, who);
        const answer = await answerTo(url, asked);
        const sent = `${operation.name}: ${asked.path} ${JSON.stringify(asked.init)}`;
        const mayKnow = who.tenant === ADA.tenant ? tools : [];
        const hidden = marks.filter((mark) => !sent.includes(mark) && !mayKnow.includes(mark));
        expect(
          hidden.filter((mark) => `${answer.head}${answer.body}`.includes(mark)),
          sent,
        ).toEqual([]);
        statuses.add(answer.status);
        return { sent, text: comparable(answer, values) };
      };

      const pairFor = pairsOf(method, (isOwner) => enter(url, newcomer, isOwner));
      for (const [index, each] of casesOf(method).entries()) {
        if (newcomer === neighbour && each.inputs.some(isOfTenant)) continue;
        // The neighbour is an admin of the tenant.
        if (newcomer === neighbour && each.operation.path.startsWith("/admin/")) continue;
        // What ada shares, her neighbours read: test/e2e/sharing.test.ts.
        if (newcomer === neighbour && each.operation.path.startsWith("/shared/")) continue;
        // A newcomer's own trail names the ids that the newcomer asked for: test/e2e/audit.test.ts.
        if (each.operation.path === "/admin/audit") continue;
        const [asking, comparing] = await pairFor(each);
        // The cases take turns with the states of the run, so that a route is tried with several of them.
        for (const things of adas.filter((_, state) => isNightly || state === index % adas.length)) {
          const { sent, text } = await answered(each, asking, things);
          expect(text, sent).toBe((await answered(each, comparing, neverMade(things))).text);
        }
      }

      expect([...statuses].filter((status) => status >= 500)).toEqual([]);
      // What is written under the path of another user's file becomes a file of the writer's own.
      if (method !== "PUT") expect(statuses).toContain(404);
      expect(await pictureOf(ada, adas)).toEqual(before);
      // The lines of ada's own runs name them; what was said is in none.
      expect(log.join("")).not.toContain(SECRET);
      const ofOthers = log.filter((line) => !isOf(ADA, JSON.parse(line)));
      // A newcomer may have named a thread of its own as ada's is named.
      const names = adas.map(({ thread }) => thread);
      const foreign = marks.filter((mark) => !names.includes(mark));
      expect(foreign.filter((mark) => ofOthers.join("").includes(mark))).toEqual([]);
    },
  );
});

test("a ticket for ada's stream opens the same as a ticket for a missing stream", async () => {
  const { url, ada } = await serve();
  const things = await makeThings(ada, "running");
  for (const newcomer of NEWCOMERS) {
    const who = newcomer();
    const opened = async ({ run, thread, stream }: Things) => {
      const { ask } = client(url, who);
      const init = { method: "POST", headers: { "content-type": "application/json" } };
      const answer = await ask("/tickets", { ...init, body: JSON.stringify({ path: stream }) });
      const { ticket } = (await answer.json()) as { ticket: string };
      const response = await fetch(`${url}${stream}?ticket=${ticket}`);
      const text = (await response.text()).replace(/req_\w{22}/, "");
      return [response.status, text.replaceAll(run, "R").replaceAll(thread, "T")];
    };
    const told = await opened(things);
    expect(told).toEqual(await opened(neverMade(things)));
    expect(told[0]).toBe(404);
  }
});

test("a list, and the user's own event stream, contain nothing of ada's", async () => {
  const { url, ada } = await serve();
  const others = NEWCOMERS.map((newcomer) => newcomer());
  const streams = await Promise.all(others.map((who) => view(`${url}/events`, { headers: headersOf(who) })));
  const things = await makeThings(ada, "ended");
  await makeThings(ada, "running");
  await makeThings(ada, "interrupted");
  for (const [index, who] of others.entries()) {
    const { ask, start } = client(url, who);
    for (const query of ["", `?q=${SECRET.slice(0, 4)}`, "?status=busy", "?status=idle&agent=assistant"])
      expect(await (await ask(`/threads${query}`)).json()).toEqual({ items: [] });
    for (const path of ["/interrupts", "/backend/files/"])
      expect(await (await ask(path)).json()).toEqual({ items: [] });
    // Even in a thread of the same name.
    await (await start(things.thread, { input: "hello" })).text();
    const { items } = await client(url, who).read(`/threads/${things.thread}/runs`);
    expect(items.length).toBe(1);
    const stream = streams[index];
    await expect.poll(() => stream?.others.join()).toContain("run_ended");
    stream?.leave();
    const heard = stream?.others.join() ?? "";
    expect(new Set(heard.match(/run_[0-9A-Za-z]{22}/g))).toEqual(new Set(items.map(({ id }) => id)));
    expect(heard).not.toContain(things.run);
    expect(heard).not.toContain(SECRET);
  }
});

type Case = ReturnType<typeof casesOf>[number];

const casesOf = (method: string) =>
  operations
    .filter((operation) => operation.method === method)
    .flatMap((operation) => {
      const inputs = inputsOf(operation);
      return mixturesOf(inputs).map((mixture) => ({ operation, inputs, mixture }));
    });

interface Asker extends Person {
  /** What of his own he names beside what is not. */
  readonly own: Partial<Things>;
}

/** Two that are alike. Reading leaves no trace, so that what only reads is asked by the same two; all else by new ones. */
function pairsOf(method: string, entered: (isOwner: boolean) => Promise<Asker>) {
  const pairs = new Map<boolean, Promise<[Asker, Asker]>>();
  return ({ inputs, mixture }: Case): Promise<[Asker, Asker]> => {
    const isOwner = inputs.some((input) => input.place === "path" && !mixture.has(input));
    const pair = pairs.get(isOwner) ?? Promise.all([entered(isOwner), entered(isOwner)]);
    if (method === "GET") pairs.set(isOwner, pair);
    return pair;
  };
}

/** With a thread and a run when `isOwner`. */
async function enter(url: string, newcomer: () => Person, isOwner: boolean): Promise<Asker> {
  const who = newcomer();
  if (!isOwner) return { ...who, own: {} };
  const { start, read } = client(url, who);
  await (await start("mine", { input: "hello" })).text();
  return { ...who, own: { thread: "mine", run: (await read("/threads/mine/runs")).items[0]?.id ?? "" } };
}
