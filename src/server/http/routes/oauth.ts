// The OAuth pages that a user's browser opens: the URL of a request, the redirect to the authorization server, and the
// return from it. A cookie ties them to one browser.

import { hash, randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, hasCode } from "../../../agent/core/errors.ts";
import { clientMetadata } from "../../../engine/vault/oauth/client-id.ts";
import type { OAuth } from "../../../engine/vault/oauth/index.ts";
import type { ShownRequest } from "../../../engine/vault/oauth/parts.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { timingSafeEqualText } from "../../../lib/text.ts";
import type { Authenticate } from "../../auth/credentials.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { statusOf } from "../errors.ts";
import { connectedPage, failedPage, OAUTH_PAGE_POLICY, startPage } from "../oauth-page.ts";
import { languageOf, PAGE_REFUSALS, type PageLanguage } from "../oauth-texts.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

/** The lifetime of the cookie, in seconds: the maximum time that a user may take at the authorization server. */
const COOKIE_S = 1800;
const SECRET = /^[A-Za-z0-9_-]{43}$/;
const MAX_PARAMETER = 8_192;

type Query = Readonly<Record<string, unknown>>;
type PublicRequest = FastifyRequest<{ Querystring: Query }>;

/** If a browser's gateway sends the identity of the user, `authenticate` reads it. */
export function oauthRoutes(app: App, { oauth }: HttpServices, authenticate: Authenticate): void {
  const schema = { hide: true };
  if (!oauth) return;
  const cookie = cookieAt(oauth);

  app.get("/oauth/start", { schema }, (request: PublicRequest, reply) =>
    inWords(request, reply, async (language) => {
      const key = parameter(request, "key");
      const shown = await oauth.shown(key);
      await assertSame(request, shown, authenticate);
      const browser = cookie.in(request) ?? newSecret();
      reply.header("set-cookie", cookie.line(browser));
      const next = new URLSearchParams({ key, from: proofOf(browser, key) });
      return send(reply, startPage(language, shown, `continue?${next}`));
    }),
  );
  app.get("/oauth/continue", { schema }, (request: PublicRequest, reply) =>
    inWords(request, reply, async () => {
      const [key, from] = [parameter(request, "key"), parameter(request, "from")];
      const browser = cookie.in(request) ?? "";
      // Only the `/oauth/start` page in this browser knows the proof, so no other page can skip the question.
      if (!timingSafeEqualText(from, proofOf(browser, key))) throw noCookie();
      await assertSame(request, await oauth.shown(key), authenticate);
      const address = await oauth.begin(key, browser, clientDisconnect(reply));
      return reply.code(303).header("location", address).send();
    }),
  );
  app.get("/oauth/callback", { schema }, (request: PublicRequest, reply) =>
    inWords(request, reply, async (language) => {
      const { code, iss, error } = request.query;
      const browser = cookie.in(request);
      if (browser === undefined) throw noCookie();
      const consent = omitUndefined({ code: textIn(code), iss: textIn(iss), error: textIn(error) });
      const state = parameter(request, "state");
      await assertSame(request, await oauth.of(state), authenticate);
      const connected = await oauth.finish({ state, browser, ...consent });
      return send(reply, connectedPage(language, connected));
    }),
  );
  app.get("/oauth/client-metadata.json", { schema }, async (_, reply) => {
    const base = oauth.base();
    if (!base?.startsWith("https:"))
      throw new AppError("not_found", "This server has no public address with https.");
    return reply.type("application/json").header("cache-control", "max-age=3600").send(clientMetadata(base));
  });
}

const newSecret = () => randomBytes(32).toString("base64url");
const proofOf = (browser: string, key: string) => hash("sha256", `${browser} ${key}`, "base64url");

/** Only this origin can set a cookie with the prefix `__Host-`. */
function cookieAt({ base }: Pick<OAuth, "base">) {
  const isSecure = () => base()?.startsWith("https:") ?? false;
  const nameOf = () => (isSecure() ? "__Host-skein-connect" : "skein-connect");
  return {
    line: (value: string) =>
      `${nameOf()}=${value}; Path=/; Max-Age=${COOKIE_S}; HttpOnly; SameSite=Lax${isSecure() ? "; Secure" : ""}`,
    /** Undefined if the browser sent no cookie, or several. */
    in({ headers }: FastifyRequest): string | undefined {
      const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim().split("=", 2));
      const values = pairs.flatMap(([name, value = ""]) =>
        name === nameOf() && SECRET.test(value) ? [value] : [],
      );
      return values.length === 1 ? values[0] : undefined;
    },
  };
}

/** If a browser's requests identify a user, it may connect only that user's accounts. */
async function assertSame(request: FastifyRequest, { by }: ShownRequest, authenticate: Authenticate) {
  const principal = await authenticate(request).catch((error: unknown) => {
    // Any other error leaves the user unknown. The page must not treat it as "no one is signed in".
    if (!hasCode(error, "unauthorized")) throw error;
    return undefined;
  });
  if (!principal || (principal.tenant === by.tenant && principal.user === by.user)) return;
  throw new AppError("forbidden", PAGE_REFUSALS.otherUser);
}

const noCookie = () => new AppError("forbidden", PAGE_REFUSALS.noCookie);

const textIn = (value: unknown) =>
  typeof value === "string" && value.length <= MAX_PARAMETER ? value : undefined;

function parameter({ query }: PublicRequest, name: string): string {
  const text = textIn(query[name]);
  if (text === undefined || text === "") throw new AppError("not_found", PAGE_REFUSALS.incomplete);
  return text;
}

function send(reply: FastifyReply, html: string) {
  return reply
    .type("text/html; charset=utf-8")
    .header("vary", "accept-language")
    .header("content-security-policy", OAUTH_PAGE_POLICY)
    .header("referrer-policy", "no-referrer")
    .send(html);
}

/** Sends a refusal as a page too, because a person reads it. */
async function inWords(
  request: PublicRequest,
  reply: FastifyReply,
  answer: (language: PageLanguage) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const language = languageOf(request.headers["accept-language"]);
  try {
    return await answer(language);
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "internal") throw error;
    return send(reply.code(statusOf(error.code)), failedPage(language, error));
  }
}
