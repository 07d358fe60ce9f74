// The HTTP server above stores that a test has in its hands: it can bend them, or publish on their bus.

import { pino } from "pino";
import { expect, onTestFinished } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";
import { OwnRuleSpec } from "../../src/agent/hooks/permissions/rule.ts";
import { createHttpToolStore } from "../../src/agent/tools/http/store.ts";
import { QuotaConfig } from "../../src/engine/quotas/config.ts";
import { createQuotas, type Quotas } from "../../src/engine/quotas/index.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { createTemporaryThreads } from "../../src/engine/temporary-threads/index.ts";
import { AuthConfig } from "../../src/server/auth/config.ts";
import { createServer } from "../../src/server/http/server.ts";
import { managed } from "../engine/runs/managed.ts";
import { ENDLESS_CREDENTIALS } from "./credentials.ts";
import { NO_NOUNS } from "./nouns.ts";
import { newPool } from "./pool.ts";

const MIB = 1024 * 1024;

const unlimited = () => createQuotas(createMemoryStores().quotas, QuotaConfig.parse({}), { threadMs: 1000 });

interface Bare {
  readonly quotas?: Quotas;
  /** How many streams may be open. */
  readonly streams?: number;
}

/** The address of a server above these stores, whose only agent speaks for a minute. Closed when the test has finished. */
export async function bareServer(
  stores: Stores,
  { quotas = unlimited(), streams = 10 }: Bare = {},
): Promise<string> {
  const script = [{ say: "a b c", delay_ms: 60_000 }];
  const { runs, agents } = managed(stores, { quotas, script });
  await runs.open();
  const backends = newPool({ dataDir: "/nonexistent" });
  const { owners, documents } = createMemoryStores();
  const logger = pino({ level: "silent" });
  const server = await createServer(
    {
      stores,
      admin: {
        runs,
        quotas,
        backends,
        records: [],
        owners,
        documents,
        sandboxes: async () => [],
        agents: () => [],
        forgetEngine: () => expect.fail(),
        backUp: () => expect.fail(),
      },
      ...NO_NOUNS,
      httpTools: createHttpToolStore(documents, MIB),
      temporaryThreads: createTemporaryThreads({
        stores: { ...stores, documents },
        ...{ quotas, logger, keepMs: 1000, most: 1 },
      }),
      runs,
      agents: {
        ...agents,
        list: () => [],
        ...{ seenWith: () => expect.fail(), choices: () => expect.fail(), changeable: () => ({}) },
      },
      backends,
      quotas,
      access: { auth: AuthConfig.parse({}), credentials: ENDLESS_CREDENTIALS, origins: [] },
      limits: {
        bodyBytes: 1000,
        incomingBytes: 100_000,
        bodyEntries: 1000,
        requestMs: 10_000,
        uploadBytes: 1000,
        streams,
        heartbeatMs: 10_000,
        stallMs: 10_000,
        unreadBytes: 1_000_000,
      },
      permissionRule: OwnRuleSpec,
      page: true,
      wires: [],
      isRefusedTool: async () => false,
      tryTool: () => expect.fail(),
      ...NO_NOUNS,
      dependencies: { states: async () => [] },
      version: "0",
    },
    logger,
  );
  onTestFinished(() => server.close());
  return server.listen({ port: 0, host: "127.0.0.1" });
}
