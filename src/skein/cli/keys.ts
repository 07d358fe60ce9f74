// `skein keys`: creates, lists and revokes API keys, in the store that a running server uses.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { check, sentence } from "../../lib/check.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { ApiKey, type ApiKeyStore, issueApiKey, newApiKey, readApiKey } from "../../server/auth/api-keys.ts";

/** Options of the command line. */
export interface KeyOptions {
  readonly tenant?: string | undefined;
  readonly user?: string | undefined;
  readonly scopes?: string | undefined;
  readonly name?: string | undefined;
  readonly expires?: string | undefined;
}

/** `output` goes to standard output, for scripts; `note` goes to standard error, for people. */
export interface KeyLine {
  readonly output: string;
  readonly note?: string;
}

const HOUR = 3_600_000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR };

const Expiry = z.string().transform((text, context) => {
  const time = timeOf(text);
  if (time > Date.now()) return new Date(time).toISOString();
  const message = "must be in the future, such as 90d, 12h, 2031-01-31 or 2031-01-31T10:00:00Z";
  context.addIssue({ code: "custom", message });
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

/** The output is the key alone. Throws `invalid_request` for invalid options. */
export async function createKey(store: ApiKeyStore, options: KeyOptions): Promise<KeyLine> {
  const checked = check(NewKey, omitUndefined(options));
  if (!("value" in checked)) {
    const problems = checked.faults.map((fault) => `--${sentence(fault)}`);
    throw new AppError("invalid_request", problems.join("\n"));
  }
  const { expires, ...about } = checked.value;
  const { key, record } = await issueApiKey(store, { ...about, ...omitUndefined({ expires_at: expires }) });
  const end = record.expires_at ? `until ${record.expires_at}` : "until it is revoked";
  return {
    output: key,
    note: `Key ${record.id}: user ${record.user} of tenant ${record.tenant} may ${record.scopes.join(", ")}, ${end}.\nThe key is shown only once. Revoke it with \`skein keys revoke ${record.id}\`.`,
  };
}

/** A key that no store knows: for `BOOTSTRAP_API_KEY`. */
export function generateKey(): KeyLine {
  return {
    output: newApiKey().key,
    note: "The key is not stored. Start a server with it as BOOTSTRAP_API_KEY: it then has all scopes, as the user `admin`.",
  };
}

const HEAD = ["ID", "TENANT", "USER", "SCOPES", "CREATED", "STATE", "NAME"];

/** Newest first. */
export async function listKeys(store: ApiKeyStore, options: KeyOptions): Promise<KeyLine> {
  const rows = [HEAD, ...(await store.list(options.tenant)).map(rowOf)];
  const widths = HEAD.map((_, column) =>
    rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0),
  );
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  return { output: lines.map((line) => line.trimEnd()).join("\n") };
}

function rowOf({ id, tenant, user, scopes, created_at, name, ...times }: ApiKey): string[] {
  return [id, tenant, user, scopes.join(","), created_at, stateOf(times), name];
}

function stateOf({ revoked_at, expires_at }: Pick<ApiKey, "revoked_at" | "expires_at">): string {
  if (revoked_at) return `revoked ${revoked_at}`;
  if (!expires_at) return "valid";
  return `${Date.parse(expires_at) > Date.now() ? "until" : "expired"} ${expires_at}`;
}

/** Accepts the id or the whole key. Throws `not_found`. */
export async function revokeKey(store: ApiKeyStore, text: string): Promise<KeyLine> {
  const id = readApiKey(text)?.id ?? text;
  const revoked = await store.revoke(id);
  if (!revoked)
    throw new AppError("not_found", "There is no key with this id. `skein keys list` shows all keys.");
  return { output: `Revoked ${id}. Servers may accept it for a few more seconds.` };
}
