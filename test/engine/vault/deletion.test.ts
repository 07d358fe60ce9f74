// A connection that is deleted while another process stores the tokens of an earlier consent.

import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { Documents } from "../../../src/agent/core/documents.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { localWrapper } from "../../../src/engine/vault/cipher.ts";
import { createVault } from "../../../src/engine/vault/index.ts";
import { createFlowStore } from "../../../src/engine/vault/oauth/flow-store.ts";
import { createPublicFetch } from "../../../src/lib/ssrf-safe-fetch/index.ts";
import { SILENT } from "../../sandbox/egress/secret-host.ts";

const ADA = { tenant: "acme", user: "ada" };

test("an account stays deleted when another process finishes an earlier consent during the deletion", async () => {
  const stores = createMemoryStores();
  onTestFinished(() => stores.close());
  const key = localWrapper(randomBytes(32).toString("base64"));
  const vaultAt = (documents: Documents) =>
    createVault({
      ...{ documents, key, logger: SILENT as never, most: 9, previousKeys: [], fetch: createPublicFetch() },
      onUse() {},
      onConsentsEnded() {},
    });
  const other = vaultAt(stores.documents);
  const flows = createFlowStore(stores.documents);
  const about = { server: "calendar", by: "ada", scopes: [], lifetimeMs: 60_000 };
  const { request } = await flows.create(ADA, about);
  const agreed = await flows.update(ADA, request.id, (before, now) => ({ ...before, grant: { at: now } }));
  const spec = { type: "static_bearer" as const, mcp_server_url: "https://calendar.example.com", token: "t" };
  await other.put(ADA, "calendar", spec);
  let isFinished = false;
  const vault = vaultAt({
    ...stores.documents,
    async write(collection, writes, options) {
      const outcome = await stores.documents.write(collection, writes, options);
      const isDeletion = collection.kind === "connections" && writes[0]?.body === undefined;
      if (!isDeletion || isFinished) return outcome;
      isFinished = true;
      await other.put(ADA, "calendar", spec, { request: { id: request.id, at: agreed?.now ?? 0 } });
      await other.endRequest(ADA, "calendar", request.id);
      await flows.delete(ADA, request);
      return outcome;
    },
  });
  await vault.delete(ADA, "calendar", { by: ADA });
  expect(isFinished).toBe(true);
  expect(await other.get(ADA, "calendar")).toBeUndefined();
});
