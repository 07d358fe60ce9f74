// Signing in as people do it: on the page, in a browser, at an issuer.

import { describe, expect } from "vitest";
import { AUDIENCE, ISSUER, issuer, token } from "../server/auth/issuer.ts";
import { openTab, test } from "../support/chromium.ts";
import { startOidcIssuer } from "../support/oidc-issuer.ts";
import { startServer } from "../support/server.ts";

async function visit(auth: object, hash = "#/settings") {
  const { url } = await startServer({ config: { auth } });
  const tab = await openTab(`${url}/${hash}`);
  // Chromium logs each refusal, from which the page learns that it is signed out.
  tab.allowErrors("401");
  return { url, ...tab };
}

/** Seconds, in which a person signs in on a busy machine. */
const LASTING = 15;

describe("at an issuer", () => {
  async function signedIn(change: Partial<Awaited<ReturnType<typeof startOidcIssuer>>["state"]> = {}) {
    const issuer = await startOidcIssuer();
    Object.assign(issuer.state, change);
    const { page, url } = await visit(issuer.auth);
    await page.getByRole("button", { name: "Sign in at 127.0.0.1" }).click();
    await page.getByRole("link", { name: "Log in as Ada" }).click();
    await page.getByRole("cell", { name: "acme" }).waitFor();
    return { ...issuer, page, home: `${url}/#/settings` };
  }

  test("people return to their place, stay signed in after a reload, and sign out there too", async () => {
    const { page, state, home } = await signedIn();
    await expect.poll(() => page.url()).toBe(home);
    await page.reload();
    await page.getByRole("cell", { name: "ada" }).waitFor();
    expect(state.grants).toEqual(["authorization_code"]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in at 127.0.0.1" }).waitFor();
    // The page may offer to sign in before it leaves for the issuer.
    await expect.poll(() => state.isSignedIn).toBe(false);
    expect(state.faults).toEqual([]);
  });

  test("an expiring token is renewed while the page does not change", async () => {
    const { page, state } = await signedIn({ lifetime: 3 });
    await page.evaluate("globalThis.isSamePage = true");
    await expect.poll(() => state.grants.length).toBeGreaterThan(2);
    expect(new Set(state.grants)).toEqual(new Set(["authorization_code", "refresh_token"]));
    await expect.poll(() => page.evaluate("globalThis.isSamePage")).toBe(true);
  });

  test("without refresh tokens, the page asks the issuer again silently, and keeps its place", async () => {
    const { page, state, home } = await signedIn({ lifetime: LASTING, givesRefreshTokens: false });
    await expect.poll(() => state.grants.length).toBeGreaterThan(1);
    await page.getByRole("cell", { name: "ada" }).waitFor();
    await expect.poll(() => page.url()).toBe(home);
  });

  test("a person who was signed out at the issuer sees it when the token expires; the page asks there only once", async () => {
    const { page, state } = await signedIn({ lifetime: LASTING, givesRefreshTokens: false });
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    Object.assign(state, { isSignedIn: false, silentVisits: 0, answersAfter: promise });
    const shown = new Set<string>();
    page.on("console", (message) => state.silentVisits > 0 && shown.add(message.text()));
    // During a redirect, Playwright cannot press anything.
    await page.evaluate(`let count = 0;
      setInterval(() => {
        location.hash = ["#/agents", "#/schedules", "#/inbox", "#/settings"][count++ % 4];
        console.log(count);
      }, 100)`);
    await expect.poll(() => shown.size).toBeGreaterThan(10);
    answer();
    await page.getByText("Your sign-in has expired.").waitFor();
    expect(state.silentVisits).toBe(1);
  });

  test("an issuer that cannot be reached is not taken for the server", async () => {
    const { auth } = await startOidcIssuer();
    const { page, allowErrors } = await visit(auth);
    allowErrors("ERR_FAILED");
    await page.route("**/token", (route) => route.abort());
    await page.getByRole("button", { name: "Sign in at 127.0.0.1" }).click();
    await page.getByRole("link", { name: "Log in as Ada" }).click();
    await page.getByText("The sign-in service does not respond.").waitFor();
  });

  test("an answer that the page did not request signs no one in", async () => {
    const { page, state } = await signedIn();
    await page.evaluate("sessionStorage.clear()");
    await page.goto(`${new URL(page.url()).origin}/?code=stolen&state=x`);
    await page.getByRole("button", { name: "Sign in at 127.0.0.1" }).waitFor();
    expect(state.grants).toEqual(["authorization_code"]);
  });
});

test("an invalid token is refused with the server's text; a valid one works until the tab is closed", async () => {
  const { url: jwks_url } = await issuer();
  const { page } = await visit({
    scheme: "jwt",
    jwt: { jwks_url, issuer: ISSUER, audience: AUDIENCE, clock_tolerance: 1 },
  });
  await page.getByLabel("Token").fill("none");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The token is malformed, or the issuer did not sign it.").waitFor();
  await page.getByLabel("Token").fill(await token());
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("cell", { name: "acme" }).waitFor();
  await page.reload();
  await page.getByRole("cell", { name: "acme" }).waitFor();
});

test("the next user of a tab sees nothing of the previous one", async () => {
  const { url: jwks_url } = await issuer();
  const jwt = { jwks_url, issuer: ISSUER, audience: AUDIENCE, clock_tolerance: 1 };
  const { page, url } = await visit({ scheme: "jwt", jwt });
  const signIn = async (given: string) => {
    await page.getByLabel("Token").fill(given);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  const headers = { authorization: `Bearer ${await token()}`, "content-type": "application/json" };
  const body = JSON.stringify({ title: "What Ada is up to" });
  expect((await fetch(`${url}/threads`, { method: "POST", headers, body })).status).toBe(201);
  await signIn(await token({ exp: Math.floor(Date.now() / 1000) + LASTING }));
  await page.getByText("What Ada is up to").waitFor();
  await page.evaluate("sessionStorage.setItem('draft', 'of Ada')");
  await page.getByLabel("Token").waitFor();
  await signIn(await token({ sub: "bob" }));
  await page.getByRole("cell", { name: "bob" }).waitFor();
  await page.getByText("Your conversations appear here.").waitFor();
  const left = [
    await page.getByText("What Ada is up to").count(),
    await page.evaluate("sessionStorage.getItem('draft')"),
  ];
  expect(left).toEqual([0, null]);
});

test("behind a gateway that does not identify the user, the page explains who must", async () => {
  const { page } = await visit({ scheme: "header", trusted_proxies: ["10.0.0.1"] });
  await page.getByText("You sign in at the gateway in front of this server").waitFor();
});

test("a second tab is signed in by the first; signing out in one signs out both, and nothing stays in the browser", async () => {
  const { url: jwks_url } = await issuer();
  const jwt = { jwks_url, issuer: ISSUER, audience: AUDIENCE, clock_tolerance: 1 };
  const { page, url } = await visit({ scheme: "jwt", jwt });
  const second = await page.context().newPage();
  await second.goto(`${url}/#/settings`);
  await second.getByLabel("Token").waitFor();
  await page.getByLabel("Token").fill(await token());
  await page.getByRole("button", { name: "Sign in" }).click();
  for (const each of [page, second]) await each.getByRole("cell", { name: "ada" }).waitFor();
  const third = await page.context().newPage();
  await third.goto(`${url}/#/settings`);
  await third.getByRole("cell", { name: "ada" }).waitFor();
  const stored = await third.evaluate<string>("JSON.stringify(localStorage)");
  expect(stored).not.toContain("token");
  await second.getByRole("button", { name: "Sign out" }).click();
  for (const each of [page, second, third]) {
    await each.getByLabel("Token").waitFor();
    await expect.poll(() => each.evaluate("sessionStorage.getItem('skein.credentials')")).toBe(null);
  }
});
