// The small pages that a user sees when connecting an account, before and after the visit to the authorization server.
// They work without scripts.

import { hash } from "node:crypto";
import type { AppError } from "../../agent/core/errors.ts";
import type { ShownRequest } from "../../engine/vault/oauth/parts.ts";
import { type PageLanguage, textsIn } from "./oauth-texts.ts";

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

/** Asks the user before anything is sent to the authorization server. `next` is the link's target. */
export function startPage(language: PageLanguage, request: ShownRequest, next: string): string {
  const texts = textsIn(language);
  const { server } = request;
  const body = `<p>${texts.willBeUsed(strong(server), whose(texts, request))}</p><p>${texts.ask}</p><p><a class="go" href="${escaped(next)}">${texts.go}</a></p>`;
  return page(language, texts.connect, body);
}

export function connectedPage(language: PageLanguage, request: ShownRequest): string {
  const texts = textsIn(language);
  const body = `<p>${texts.isUsed(strong(request.server), whose(texts, request))}</p><p>${texts.close}</p>`;
  return page(language, texts.connected, body);
}

/** A `reason` in the error's details is for admins. */
export function failedPage(language: PageLanguage, { message, details }: AppError): string {
  const { failed, refusal, reason, unknown } = textsIn(language);
  const known = refusal(message);
  if (known === undefined) return page(language, failed, quoted(unknown, message));
  const why = typeof details?.reason === "string" ? quoted(reason, details.reason) : "";
  return page(language, failed, `<p>${escaped(known)}</p>${why}`);
}

/** `text` is in English. */
const quoted = (words: string, text: string) => `<p>${words} <q lang="en">${escaped(text)}</q></p>`;

function whose(texts: ReturnType<typeof textsIn>, { keeper: { tenant, user }, by }: ShownRequest): string {
  if (user !== undefined) return texts.user(strong(user), strong(tenant));
  const asker = by.tenant === tenant ? strong(by.user) : texts.userOf(strong(by.user), strong(by.tenant));
  return texts.allUsers(strong(tenant), asker);
}

const strong = (text: string) => `<strong>${escaped(text)}</strong>`;

const page = (language: PageLanguage, title: string, body: string) =>
  `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title} – Skein</title><style>${STYLE}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>`;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escaped = (text: string) => text.replace(/[&<>"']/g, (each) => ENTITIES[each] ?? "");
