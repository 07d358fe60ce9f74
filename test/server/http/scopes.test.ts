// Every route of openapi.yaml, as callers of the schemes with state meet it: without credentials, without the scope that the route
// needs, and with credentials that have ended.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqliteKeyFile } from "../../../src/engine/stores/sqlite/key-file.ts";
import { createApiKeys, issueApiKey } from "../../../src/server/auth/api-keys.ts";
import { Scope } from "../../../src/server/auth/principal.ts";
import { WireName } from "../../../src/server/config/wire-names.ts";
import { type Operation, operations } from "../../support/openapi.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";
import { AUDIENCE, ISSUER, issuer, token } from "../auth/issuer.ts";

type Headers = Record<string, string>;
interface Scheme {
  readonly auth: object;
  /** The headers of a caller who has these scopes. */
  caller(scopes: readonly Scope[]): Promise<Headers>;
  /** Ends the credentials of all callers; absent where they have no state. */
  end?(): Promise<unknown>;
}

const SCHEMES: Readonly<Record<string, (dir: string) => Promise<Scheme>>> = {
  api_key: async (dir) => {
    const { documents } = openSqliteKeyFile(join(dir, "data"));
    const keys = createApiKeys(documents);
    const ids: string[] = [];
    return {
      auth: { scheme: "api_key" },
      caller: async (scopes) => {
        const made = await issueApiKey(keys, { tenant: "acme", user: "ada", scopes: [...scopes], name: "" });
        ids.push(made.record.id);
        return { "x-api-key": made.key };
      },
      end: () => Promise.all(ids.map((id) => keys.revoke(id))),
    };
  },
  jwt: async () => ({
    auth: { scheme: "jwt", jwt: { jwks_url: (await issuer()).url, issuer: ISSUER, audience: AUDIENCE } },
    caller: async (scopes) => ({ authorization: `Bearer ${await token({ scope: scopes.join(" ") })}` }),
  }),
};

const guarded = operations.filter(({ isPublic }) => !isPublic);

async function statusOf(url: string, { method, path, body }: Operation, headers: Headers): Promise<number> {
  const response = await fetch(url + path.replace(/\{\w+\}/g, "x"), {
    method,
    headers: { ...headers, ...(body ? { "content-type": "application/json" } : {}) },
    body: body ? "{}" : null,
  });
  await response.body?.cancel();
  return response.status;
}

test.each(Object.entries(SCHEMES))(
  "no route accepts callers without its scope, with %s",
  async (_, schemeIn) => {
    const dir = await temporaryFolder();
    const { auth, caller, end } = await schemeIn(dir);
    const { url } = await startServer({
      dir,
      config: { auth, wires: WireName.options, backends: { allow_local: true } },
    });
    const all = Scope.options.filter((scope) => scope !== "operator");
    const without = new Map<string | undefined, Headers>();
    for (const scope of all) without.set(scope, await caller(all.filter((other) => other !== scope)));
    const everyone = await caller(all);
    const refusals = async (status: number, headersOf: (operation: Operation) => Headers) => {
      const answers = guarded.map(async (operation) => {
        const got = await statusOf(url, operation, headersOf(operation));
        return got === status ? [] : [`${operation.name}: ${got}`];
      });
      return (await Promise.all(answers)).flat();
    };
    expect(guarded.length).toBeGreaterThan(100);
    expect(await refusals(401, () => ({}))).toEqual([]);
    const isOpen = ({ scope }: Operation) => scope === undefined;
    const others = await refusals(403, ({ scope }) => without.get(scope) ?? everyone);
    expect(others.map((line) => line.replace(/: \d+$/, ""))).toEqual(
      guarded.filter(isOpen).map(({ name }) => name),
    );
    if (!end) return;
    await end();
    const me = () => fetch(`${url}/me`, { headers: everyone });
    await expect.poll(async () => (await me()).status).toBe(401);
    expect(await refusals(401, () => everyone)).toEqual([]);
  },
);
