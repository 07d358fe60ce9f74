// The small pages that a user sees when connecting an account, before and after the visit to the authorization server.
// They work without scripts.

import { hash } from "node:crypto";
import type { ShownRequest } from "../../engine/vault/oauth/parts.ts";

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1.5rem;color:#1c1c1e;background:#fff}
h1{font-size:1.4rem}a.go{display:inline-block;margin-top:1rem;padding:.6rem 1.2rem;border-radius:.5rem;background:#1a5fb4;color:#fff;text-decoration:none}
a.go:focus-visible{outline:3px solid #99c1f1}strong{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#f2f2f2;background:#1c1c1e}a.go{background:#62a0ea;color:#101012}}`;

/** Allows no scripts, requests or frames. */
export const OAUTH_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", STYLE, "base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TEXTS = {
  connect: "Connect an account",
  connected: "The account is connected",
  failed: "The account was not connected",
  go: "Continue",
  ask: "Continue only if you asked for this yourself, in Skein. Otherwise, others could use your account.",
  close: "You can close this page. A conversation that waited for the account continues.",
};

/** Asks the user before anything is sent to the authorization server. `next` is the link's target. */
export function startPage(request: ShownRequest, next: string): string {
  const body = `<p>The account at ${strong(request.server)} will be used by ${whose(request)}.</p><p>${TEXTS.ask}</p><p><a class="go" href="${escaped(next)}">${TEXTS.go}</a></p>`;
  return page(TEXTS.connect, body);
}

export function connectedPage(request: ShownRequest): string {
  const body = `<p>The account at ${strong(request.server)} is now used by ${whose(request)}.</p><p>${TEXTS.close}</p>`;
  return page(TEXTS.connected, body);
}

export const failedPage = (message: string) => page(TEXTS.failed, `<p>${escaped(message)}</p>`);

function whose({ keeper: { tenant, user }, by }: ShownRequest): string {
  if (user !== undefined) return `the Skein user ${strong(user)} of the tenant ${strong(tenant)}`;
  const from = by.tenant === tenant ? "" : ` of the tenant ${strong(by.tenant)}`;
  return `all Skein users of the tenant ${strong(tenant)}, for which ${strong(by.user)}${from} connects it`;
}

const strong = (text: string) => `<strong>${escaped(text)}</strong>`;

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title} – Skein</title><style>${STYLE}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>`;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escaped = (text: string) => text.replace(/[&<>"']/g, (each) => ENTITIES[each] ?? "");
