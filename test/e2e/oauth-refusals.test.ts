// Browsers, answers and authorization servers that connect no account, and the pages that say so.

import { expect, test } from "vitest";
import { type Deployment, deployment, serve } from "../support/account-server.ts";
import { newBrowser, visit } from "../support/authorization-server.ts";
import { connectAt, consent, proceed } from "../support/connecting.ts";

test("only the browser that opened Skein's address can return with the consent", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const ada = as("ada");
  const [mine, theirs] = [newBrowser(), newBrowser()];
  const address = await ada.address();
  const back = await consent(address, mine);
  // The link of the authorization server was sent to someone else, who agreed to it.
  for (const browser of [theirs, newBrowser()]) expect((await visit(browser, back)).status).toBe(403);
  await visit(theirs, new URL(await ada.address()));
  expect((await visit(theirs, back)).status).toBe(403);
  expect(await ada.connections()).toEqual([]);
  // No link leads past the question of Skein.
  const { searchParams } = new URL(address);
  const past = new URL(`/oauth/continue?key=${searchParams.get("key")}&from=${"x".repeat(43)}`, url);
  expect((await visit(theirs, past)).status).toBe(403);
  expect((await visit(mine, back)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a browser that is signed in as another user is stopped, and the page names the account's owner", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const address = await as("ada").address();
  for (const other of [as("bob"), as("ada", "other")]) {
    const browser = { ...newBrowser(), headers: other.headers };
    expect(await proceed(address, browser)).toMatchObject({ status: 403 });
  }
  const { page } = await proceed(address, { ...newBrowser(), headers: as("ada").headers });
  expect(page).toContain("<strong>ada</strong> of the tenant <strong>acme</strong>");
  expect(parts.issuer.tokenRequests).toEqual([]);
});

test("a browser that returns signed in as another user connects nothing", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const browser = newBrowser();
  const back = await consent(await ada.address(), browser);
  for (const other of [as("bob"), as("ada", "other")])
    expect((await visit({ ...browser, headers: other.headers }, back)).status).toBe(403);
  expect(parts.issuer.tokenRequests).toEqual([]);
  expect(await ada.connections()).toEqual([]);
  // Their visits have not used it up.
  expect((await visit({ ...browser, headers: ada.headers }, back)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a consent counts once, and only within ten minutes", async () => {
  const parts = await deployment();
  let moment = Date.now();
  const { as } = await serve(parts, { now: () => moment });
  const ada = as("ada");
  const browser = newBrowser();
  const back = await consent(await ada.address(), browser);
  expect((await visit(browser, back)).status).toBe(200);
  expect((await visit(browser, back)).status).toBe(404);
  expect(parts.issuer.tokenRequests).toHaveLength(1);
  const [first, second] = [await ada.address(), await ada.address()];
  const tooLate = await consent(first, browser);
  moment += 10 * 60_000;
  expect((await visit(browser, tooLate)).status).toBe(404);
  expect(await proceed(second, newBrowser())).not.toHaveProperty("page");
  expect(parts.issuer.tokenRequests).toHaveLength(1);
});

test("an answer from a different authorization server is refused, and its text is not shown", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  for (const change of [
    (back: URL) => back.searchParams.set("iss", "https://evil.example.com"),
    (back: URL) => back.searchParams.delete("iss"),
    (back: URL) => {
      back.searchParams.set("iss", "https://evil.example.com");
      back.searchParams.set("error", "words_of_an_attacker");
    },
  ]) {
    const browser = newBrowser();
    const back = await consent(await ada.address(), browser);
    change(back);
    const answer = await visit(browser, back);
    const text = await answer.text();
    expect(answer.status).toBe(403);
    expect(text).not.toMatch(/evil|attacker/);
    // A second answer with the same state is none.
    back.searchParams.set("iss", parts.issuer.url);
    expect((await visit(browser, back)).status).toBe(404);
  }
  expect(parts.issuer.tokenRequests).toEqual([]);
  expect(await ada.connections()).toEqual([]);
});

const SPOILED: readonly [string, (parts: Deployment) => void, string][] = [
  [
    "names another issuer",
    ({ issuer }) => (issuer.state.metadata = (own) => ({ ...own, issuer: "https://evil.example.com" })),
    "another issuer",
  ],
  [
    "has no PKCE",
    ({ issuer }) =>
      (issuer.state.metadata = (own) => ({ ...own, code_challenge_methods_supported: undefined })),
    "PKCE",
  ],
  [
    "has URLs without TLS",
    ({ issuer }) =>
      (issuer.state.metadata = (own) => ({ ...own, token_endpoint: "http://example.com/token" })),
    "without TLS",
  ],
  [
    "registers no one",
    ({ issuer }) => (issuer.state.metadata = (own) => ({ ...own, registration_endpoint: undefined })),
    "auth.oauth.client_id",
  ],
  ["refuses the registration", ({ issuer }) => (issuer.state.refusesClients = 403), "auth.oauth.client_id"],
  [
    "is at a private address",
    ({ calendar }) => (calendar.state.resource.authorization_servers = ["https://10.255.255.1"]),
    "no public address",
  ],
  [
    "is named without TLS",
    ({ calendar }) => (calendar.state.resource.authorization_servers = ["http://issuer.example.com"]),
    "authorization server must begin with https://",
  ],
  [
    "has its metadata at an address without TLS",
    ({ calendar }) => (calendar.state.metadata = "http://metadata.example.com/mcp"),
    "metadata must begin with https://",
  ],
  [
    "is of a server that is not itself",
    ({ calendar }) => (calendar.state.resource.resource = "https://other.example.com/mcp"),
    "another resource",
  ],
];

test.each(SPOILED)(
  "an authorization server that %s is not used, and the caller learns why",
  async (_, spoil, words) => {
    const parts = await deployment();
    const { as } = await serve(parts);
    spoil(parts);
    await expect(as("ada").address()).rejects.toThrow(words);
    expect(await as("ada").connections()).toEqual([]);
  },
);

test("a user cannot connect a server without `auth`, an unknown one or a tenant's", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { per: "tenant" });
  await expect(as("ada").address()).rejects.toThrow("per: user");
  await expect(as("ada").client.connections.authorize("unknown")).rejects.toThrow("Send credentials instead");
});

test("a person who declines sees a confirmation, and can agree later", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await ada.run("look");
  const [asked] = await ada.interrupts();
  parts.issuer.state.agrees = false;
  expect(await connectAt(asked?.url ?? "")).toMatchObject({
    status: 403,
    text: expect.stringContaining("you declined"),
  });
  expect(await ada.interrupts()).toHaveLength(1);
  parts.issuer.state.agrees = true;
  expect((await connectAt(asked?.url ?? "")).status).toBe(200);
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
});

test("the operator's client is used only at its own issuer", async () => {
  const parts = await deployment();
  const auth = `{ oauth: { client_id: mine, client_secret: secret, issuer: "https://login.example.com" } }`;
  const { as } = await serve(parts, { auth });
  await expect(as("ada").address()).rejects.toThrow("auth.oauth.issuer");
  const other = await serve(parts, {
    auth: `{ oauth: { client_id: mine, issuer: "${parts.issuer.url}", scopes: [calendar] } }`,
  });
  const { address } = await proceed(await other.as("ada").address(), newBrowser());
  expect(Object.fromEntries(new URL(address ?? "").searchParams)).toMatchObject({
    ...{ client_id: "mine", resource: parts.calendar.url, code_challenge_method: "S256" },
    scope: "calendar offline_access",
  });
});

test("a person reads the pages in the language of their browser, refusals too", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const address = await as("ada").address();
  const browser = { ...newBrowser(), headers: { "accept-language": "fr, de-CH;q=0.8, en;q=0.5" } };
  const { page } = await proceed(address, browser);
  expect(page).toContain('<html lang="de">');
  expect(page).toContain("<strong>ada</strong> beim Mandanten <strong>acme</strong>");
  const back = await consent(address, browser);
  const stranger = { ...newBrowser(), headers: browser.headers };
  expect(await (await visit(stranger, back)).text()).toContain("keine Cookies");
  expect(await (await visit(browser, back)).text()).toContain("Das Konto ist verbunden");
  expect(await (await visit(browser, back)).text()).toContain("wurde schon verwendet");
  expect(await (await visit(browser, new URL("/oauth/start", url))).text()).toContain("unvollständig");
  for (const accepted of ["en, de;q=0.5", "fr", "de;q=0", "*", "x".repeat(5000)]) {
    const other = { ...newBrowser(), headers: { "accept-language": accepted } };
    expect(await (await visit(other, back)).text()).toContain('<html lang="en">');
  }
});

test("a person reads in their own language why an authorization server failed, and its reason in English", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const pages = async (language: string, change: (back: URL) => void) => {
    const browser = { ...newBrowser(), headers: { "accept-language": language } };
    const back = await consent(await ada.address(), browser);
    change(back);
    return (await visit(browser, back)).text();
  };
  const refuse = (back: URL) => back.searchParams.set("error", "server_error");
  expect(await pages("en", refuse)).toMatch(
    /refused the request.*<q lang="en">it answered `server_error`<\/q>/,
  );
  expect(await pages("de", refuse)).toMatch(
    /die Anfrage abgelehnt hat.*<q lang="en">it answered `server_error`<\/q>/,
  );
  const words = (back: URL) => back.searchParams.set("error", "call 555 now");
  expect(await pages("en", words)).not.toMatch(/555|<q/);
  parts.issuer.state.failsWith = 503;
  const fail = () => {};
  expect(await pages("en", fail)).toMatch(/did not issue tokens.*<q lang="en">its issuer answered 503<\/q>/);
  expect(await pages("de", fail)).toMatch(
    /keine Tokens dafür ausgestellt.*<q lang="en">its issuer answered 503<\/q>/,
  );
  expect(await ada.connections()).toEqual([]);
});

test.each([
  ["de", "Teilen Sie Ihrem Admin"],
  ["en", "Tell your admin"],
])(
  "a problem that Skein describes only in English has words in the person's language around it: %s",
  async (language, words) => {
    const parts = await deployment();
    const { as } = await serve(parts);
    const address = await as("ada").address();
    parts.issuer.state.metadata = (own) => ({ ...own, issuer: "https://evil.example.com" });
    const browser = { ...newBrowser(), headers: { "accept-language": language } };
    const { status, text } = await proceed(address, browser);
    expect(status).toBe(503);
    expect(text).toMatch(
      new RegExp(`${words}.*<q lang="en">Accounts at \`calendar\` cannot be connected now`),
    );
    // What Skein can say in this language, it says itself.
    const refused = await proceed(address.replace(/key=.*/, "key=unknown"), browser);
    expect(refused.text).not.toContain("<q");
  },
);
