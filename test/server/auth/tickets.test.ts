import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Authenticate, unauthorized } from "../../../src/server/auth/credentials.ts";
import { type Principal, Scope } from "../../../src/server/auth/principal.ts";
import { createTickets } from "../../../src/server/auth/tickets.ts";
import { answerTo, type Guarded, type GuardedOptions, guarded } from "./guarded.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const SECRET = "s".repeat(32);
const ADA: Principal = { tenant: "acme", user: "ada", scopes: Scope.options };
const READER: Principal = { ...ADA, user: "reader", scopes: ["read"] };
const RUNNER: Principal = { ...ADA, user: "runner", scopes: ["run"] };

/** Who says a name is that one. */
const byName: Authenticate = async ({ headers }) => {
  const found = [ADA, READER, RUNNER].find(({ user }) => headers.authorization === user);
  if (!found) throw unauthorized("Say a name.");
  return found;
};

const server = (options: GuardedOptions = {}) => guarded(byName, { secret: SECRET, ...options });

function order({ url }: Guarded, path: string, authorization = "ada") {
  const headers = { authorization, "content-type": "application/json" };
  return answerTo(`${url}/tickets`, { method: "POST", headers, body: JSON.stringify({ path }) });
}

async function ticketFor(guarded: Guarded, path: string): Promise<string> {
  return String((await order(guarded, path)).body.ticket);
}

const open = ({ url }: Guarded, path: string, ticket: string, init: RequestInit = {}) =>
  answerTo(`${url}${path}${path.includes("?") ? "&" : "?"}ticket=${encodeURIComponent(ticket)}`, init);

describe("a stream ticket", () => {
  test("opens its stream for its owner to read", async () => {
    const site = await server();
    for (const path of ["/events", "/threads/my-thread/events"]) {
      const ticket = await ticketFor(site, path);
      const answer = await open(site, path, ticket);
      expect(answer).toMatchObject({ status: 200, body: { tenant: "acme", user: "ada", scopes: ["read"] } });
      expect(await open(site, `${path}?after=x`, ticket)).toEqual(answer);
    }
  });

  test("opens it again within its minute, as a browser does after a disconnection, but not later", async () => {
    let time = START;
    const site = await server({ now: () => time });
    const { status, body } = await order(site, "/events");
    expect({ status, end: body.expires_at }).toEqual({ status: 201, end: "2026-11-21T10:01:00.000Z" });
    const ticket = String(body.ticket);
    for (time of [START, START + 1_000, START + 59_999])
      expect((await open(site, "/events", ticket)).status).toBe(200);
    for (time of [START + 60_000, START + 1e9])
      expect(await open(site, "/events", ticket)).toMatchObject({
        status: 401,
        body: { code: "unauthorized" },
      });
  });

  test("is accepted by every process with the same secret, and by no other", async () => {
    const ticket = await ticketFor(await server(), "/events");
    expect((await open(await server(), "/events", ticket)).status).toBe(200);
    expect((await open(await server({ secret: "t".repeat(32) }), "/events", ticket)).status).toBe(401);
  });

  test("of a process with its own secret is accepted only by that one", async () => {
    const own = [createTickets(undefined), createTickets(undefined)];
    const ticket = own[0]?.issue(ADA, "/events").ticket ?? "";
    expect(own[0]?.verify(ticket, "/events")).toMatchObject({ user: "ada" });
    expect(() => own[1]?.verify(ticket, "/events")).toThrow(/not valid/);
  });

  test("ends with the credentials behind it, and has their key", () => {
    const tickets = createTickets(SECRET, () => START);
    const own = { api_key: "key_1", expires_at: START + 1_000 };
    const { ticket, expires_at } = tickets.issue({ ...ADA, ...own }, "/events");
    expect(expires_at).toBe("2026-11-21T10:00:01.000Z");
    expect(tickets.verify(ticket, "/events")).toMatchObject(own);
  });

  test.each([
    ["another stream", "/threads/other/events"],
    ["the same one, written otherwise", "/threads/%6dine/events"],
    ["another one that begins alike", "/threads/mine2/events"],
    ["what is no stream", "/threads/mine"],
  ])("does not open %s", async (_, path) => {
    const site = await server();
    const ticket = await ticketFor(site, "/threads/mine/events");
    expect((await open(site, "/threads/mine/events", ticket)).status).toBe(200);
    expect((await open(site, path, ticket)).status).toBe(401);
  });

  test("starts nothing", async () => {
    const site = await server();
    const ticket = await ticketFor(site, "/events");
    expect((await open(site, "/threads", ticket, { method: "POST" })).status).toBe(401);
    expect((await open(site, "/tickets", ticket, { method: "POST" })).status).toBe(401);
  });

  test("that was changed, shortened, signed by others or sent twice opens nothing", async () => {
    const site = await server();
    const ticket = await ticketFor(site, "/events");
    const [content = "", mark = ""] = ticket.split(".");
    const forged = Buffer.from(JSON.stringify(["acme", "eve", "/events", START * 2])).toString("base64url");
    const signed = (key: string) => createHmac("sha256", key).update(forged).digest("base64url");
    const bad = [
      ...["", ".", "..", "x", content, `${content}.`, `.${mark}`, `${ticket}=`, `${ticket}.x`, `${ticket} `],
      ...[
        `${forged}.${mark}`,
        `${forged}.${signed("")}`,
        `${forged}.${signed(SECRET)}`,
        mark,
        "x".repeat(9_000),
      ],
      ...[`${content.slice(0, -1)}.${mark}`, `${content}.${mark.toLowerCase()}`, "\u0000", "null.null"],
    ];
    const refused = await open(site, "/events", "x");
    expect(refused).toMatchObject({ status: 401, challenge: 'Bearer realm="skein"' });
    for (const each of bad) expect(await open(site, "/events", each), each).toEqual(refused);
    expect((await open(site, `/events?ticket=${ticket}`, ticket)).status).toBe(401);
    expect((await open(site, "/events", ticket)).status).toBe(200);
  });

  test("that is invalid is refused even with valid credentials", async () => {
    const site = await server();
    expect((await open(site, "/events", "x", { headers: { authorization: "ada" } })).status).toBe(401);
  });

  test("never appears in the log or in a response", async () => {
    const lines: string[] = [];
    const site = await server({ log: (line) => lines.push(line) });
    const ticket = await ticketFor(site, "/threads/mine/events");
    const answers = [
      await open(site, "/threads/mine/events", ticket),
      await open(site, "/threads/other/events", ticket),
      await open(site, "/threads/mine", ticket),
      await open(site, "/nowhere", ticket, { headers: { authorization: "ada" } }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 404]);
    expect(JSON.stringify(answers)).not.toContain(ticket);
    const log = lines.join("");
    for (const path of ["/threads/mine/events", "/threads/other/events", "/nowhere"])
      expect(log).toContain(path);
    expect(log).not.toContain(ticket.slice(0, 20));
    expect(log).not.toContain("?");
  });
});

describe("tickets are issued", () => {
  test("to users with the scope `read`", async () => {
    const site = await server();
    expect((await order(site, "/events", "reader")).status).toBe(201);
    expect(await order(site, "/events", "runner")).toMatchObject({
      status: 403,
      body: { details: { scope: "read" } },
    });
    expect((await order(site, "/events", "stranger")).status).toBe(401);
  });

  test.each([
    ...[
      "",
      "/",
      "/threads",
      "/threads/t",
      "/backend",
      "/metrics",
      "/tickets",
      "events",
      "/events/",
      "//events",
    ],
    ...["/events?after=1", "/events#x", "/threads//events", "/threads/../events", "/threads/a%2Fb/events"],
    ...["https://other.example/events", "/events\n", "/threads/t/runs/events/x", "/threads/t/runs/r/cancel"],
  ])("for streams, not for `%s`", async (path) => {
    expect(await order(await server(), path)).toMatchObject({
      status: 400,
      body: { code: "invalid_request" },
    });
  });

  test("for a run's stream too", async () => {
    expect((await order(await server(), "/threads/t/runs/run_1/events")).status).toBe(201);
  });
});
