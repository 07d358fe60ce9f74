// A person who connects an account in a browser, and an MCP server whose accounts have an authorization server.

import { answer, type HttpCall, overHttp } from "../agent/tools/mcp/over-http.ts";
import { type AuthorizationServer, type Browser, browse, newBrowser, visit } from "./authorization-server.ts";

export interface OAuthMcpServer {
  readonly url: string;
  /** Who called which tool. */
  readonly calls: { readonly user: string; readonly tool: string }[];
  /** To be changed by a test. */
  readonly state: {
    /** The document about the protected resource. */
    resource: Record<string, unknown>;
    /** Where its challenge says that the document is; default: where it is. */
    metadata?: string;
    /** More parameters of its challenge. */
    challenge: string;
    /** The scope that calls need, by tool. */
    needs: Readonly<Record<string, string>>;
  };
}

/** Each account has the tools `list` and `add`, and what they answer names it. */
export async function oauthMcpServer(issuer: AuthorizationServer): Promise<OAuthMcpServer> {
  const calls: { user: string; tool: string }[] = [];
  const state: OAuthMcpServer["state"] = { resource: {}, challenge: "", needs: {} };
  const infoOf = ({ request }: Pick<HttpCall, "request">) =>
    issuer.tokenInfo(String(request.headers.authorization ?? "").replace("Bearer ", ""));
  const reply = (tool: string) => async (call: HttpCall) => {
    const { account: user = "unknown", scopes = [] } = (await infoOf(call)) ?? {};
    const needed = state.needs[tool];
    if (needed !== undefined && !scopes.some((scope) => scope === needed)) {
      const challenge = `Bearer error="insufficient_scope", scope="${needed}"`;
      return void call.response.writeHead(403, { "www-authenticate": challenge }).end();
    }
    calls.push({ user, tool });
    answer(call.response, call.id, { content: [{ type: "text", text: `the calendar of ${user}` }] });
  };
  const server = await overHttp({ list: reply("list"), add: reply("add") }, async (request, response) => {
    const { pathname, origin } = new URL(request.url ?? "/", server.url);
    if (pathname === "/.well-known/oauth-protected-resource/mcp") {
      const document = { resource: server.url, authorization_servers: [issuer.url], ...state.resource };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
      return true;
    }
    const info = await infoOf({ request });
    const document = state.metadata ?? `${origin}/.well-known/oauth-protected-resource/mcp`;
    const about = `resource_metadata="${document}"`;
    if (!info || info.audience !== server.url) {
      const header = `Bearer ${about}${state.challenge}`;
      response.writeHead(401, { "www-authenticate": header }).end();
      return true;
    }
    return false;
  });
  return { url: server.url, calls, state };
}

interface Proceeding {
  readonly status: number;
  readonly text: string;
  /** The page on which the person proceeded. */
  readonly page?: string;
  /** The address at the authorization server. */
  readonly address?: string;
}

/** Opens the address of a request, and proceeds to the authorization server. */
export async function proceed(address: string, browser: Browser): Promise<Proceeding> {
  const page = await visit(browser, new URL(address));
  const text = await page.text();
  const link = /href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  if (link === undefined) return { status: page.status, text };
  const next = await visit(browser, new URL(link, address));
  const found = { status: next.status, text: await next.text(), page: text };
  const there = next.headers.get("location");
  return there === null ? found : { ...found, address: there };
}

/** Agrees at the authorization server. Returns the address that it sends the browser back to. */
const agree = (address: string, browser: Browser, back: string) =>
  browse(address, `${new URL(back).origin}/oauth/callback`, browser);

/** Proceeds, and agrees. Returns the address that leads back. */
export async function consent(address: string, browser: Browser): Promise<URL> {
  const there = await proceed(address, browser);
  if (there.address === undefined) throw new Error(`${there.status}: ${there.text}`);
  return agree(there.address, browser, address);
}

/** The whole way of a person who agrees. */
export async function connectAt(address: string, browser = newBrowser()) {
  const there = await proceed(address, browser);
  if (there.address === undefined) return { status: there.status, text: there.text };
  const answer = await visit(browser, await agree(there.address, browser, address));
  return { status: answer.status, text: await answer.text() };
}
