// `skein keys`: creates, lists and revokes API keys in the store of a running server.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { check, sentence } from "../../lib/check.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { ApiKey, type ApiKeyStore, issueApiKey, newApiKey, readApiKey } from "../../server/auth/api-keys.ts";
import { date } from "./locale.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

/** The options of the command line. */
export interface KeyOptions {
  readonly tenant?: string | undefined;
  readonly user?: string | undefined;
  readonly scopes?: string | undefined;
  readonly name?: string | undefined;
  readonly expires?: string | undefined;
}

/** `output` goes to standard output for scripts, and `note` goes to standard error for people. */
export interface KeyLine {
  readonly output: string;
  readonly note?: string;
}

const HOUR = 3_600_000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR };

const Expiry = z.string().transform((text, context) => {
  const time = timeOf(text);
  if (time > Date.now()) return new Date(time).toISOString();
  context.addIssue({ code: "custom", message: t().keys.expiryInPast });
  return z.NEVER;
});

function timeOf(text: string): number {
  const [, amount, unit = ""] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  if (amount !== undefined) return Date.now() + Number(amount) * (UNITS[unit] ?? Number.NaN);
  return /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
}

const { tenant, user, scopes, name } = ApiKey.shape;
const NewKey = z.object({
  tenant: tenant.default("default"),
  user,
  scopes: z
    .string()
    .default("read,run")
    .transform((text) => [...new Set(text.split(","))])
    .pipe(scopes),
  name: name.default(""),
  expires: Expiry.optional(),
});

/** Creates a key. `output` contains only the key. Throws `invalid_request` for invalid options. */
export async function createKey(store: ApiKeyStore, options: KeyOptions): Promise<KeyLine> {
  const checked = check(NewKey, omitUndefined(options));
  if (!("value" in checked)) {
    const problems = checked.faults.map((fault) => `--${sentence(fault)}`);
    throw new AppError("invalid_request", problems.join("\n"));
  }
  const { expires, ...about } = checked.value;
  const { key, record } = await issueApiKey(store, { ...about, ...omitUndefined({ expires_at: expires }) });
  const words = t().keys;
  const { id, user, tenant, expires_at } = record;
  const end = expires_at ? words.until(date(expires_at)) : words.untilRevoked;
  return {
    output: key,
    note: words.created({ id, user, tenant, scopes: record.scopes.join(", ") }, end),
  };
}

/** Generates a key for `BOOTSTRAP_API_KEY` without storing it. */
export function generateKey(): KeyLine {
  return {
    output: newApiKey().key,
    note: t().keys.generated,
  };
}

/** Lists keys, newest first. Times are ISO 8601 in UTC in every language, because scripts read and sort them. */
export async function listKeys(store: ApiKeyStore, options: KeyOptions): Promise<KeyLine> {
  return { output: tableOf([t().keys.head, ...(await store.list(options.tenant)).map(rowOf)]) };
}

function rowOf({ id, tenant, user, scopes, created_at, name, ...times }: ApiKey): string[] {
  return [id, tenant, user, scopes.join(","), created_at, stateOf(times), name];
}

function stateOf({ revoked_at, expires_at }: Pick<ApiKey, "revoked_at" | "expires_at">): string {
  const { revoked, valid, until, expired } = t().keys.states;
  if (revoked_at) return `${revoked} ${revoked_at}`;
  if (!expires_at) return valid;
  return `${Date.parse(expires_at) > Date.now() ? until : expired} ${expires_at}`;
}

/** Revokes a key, given its id or the whole key. Throws `not_found`. */
export async function revokeKey(store: ApiKeyStore, text: string): Promise<KeyLine> {
  const id = readApiKey(text)?.id ?? text;
  const revoked = await store.revoke(id);
  if (!revoked) throw new AppError("not_found", t().keys.unknown);
  return { output: t().keys.revoked(id) };
}
