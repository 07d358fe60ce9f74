// Opens the services other than runs, such as schedules, with one function per service.

import type { KeyWrapper } from "../../agent/core/key-wrapper.ts";
import type { OwnSchedules } from "../../agent/core/own-schedules.ts";
import type { UserRecords } from "../../engine/admin/services.ts";
import type { NewEntry } from "../../engine/audit/entry.ts";
import { type Audit, createAudit } from "../../engine/audit/index.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import type { Runs } from "../../engine/runs/executor.ts";
import type { AnsweredRun } from "../../engine/runs/services.ts";
import { createSchedules } from "../../engine/schedules/index.ts";
import { createAgentSchedules } from "../../engine/schedules/of-agents.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import { createTemporaryThreads, type TemporaryThreads } from "../../engine/temporary-threads/index.ts";
import { createTriggers } from "../../engine/triggers/index.ts";
import { localWrapper } from "../../engine/vault/cipher.ts";
import type { Keeper } from "../../engine/vault/credential.ts";
import { createVault, type Vault } from "../../engine/vault/index.ts";
import { createOAuth, type OAuth } from "../../engine/vault/oauth/index.ts";
import type { OAuthOptions } from "../../engine/vault/oauth/parts.ts";
import { createWebhooks, type Webhooks } from "../../engine/webhooks/index.ts";
import { hostList, isLoopback } from "../../lib/hosts.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { createPublicFetch } from "../../lib/ssrf-safe-fetch/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Credentials } from "../../server/auth/credential-end.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { AuditRecords } from "../../server/telemetry/audit-records.ts";
import type { Metrics } from "../../server/telemetry/metrics.ts";

export interface NounParts {
  readonly stores: AllStores;
  readonly quotas: Quotas;
  readonly runs: Runs;
  readonly webhooks: Webhooks;
  readonly audit: Audit;
  readonly credentials: Credentials;
  /** Undefined if there is no key. */
  readonly vault: Vault | undefined;
  /** The MCP servers whose accounts the server connects. */
  readonly accounts: Pick<OAuthOptions, "serverOf" | "servers">;
  /** Returns the address at which the server listens, or undefined until it listens. */
  ownAddress(): string | undefined;
  readonly logger: Logger;
}

export type Nouns = ReturnType<typeof openNouns>;

/** The caller opens and closes the services. */
export function openNouns(config: ServerConfig, parts: NounParts) {
  const { vault } = parts;
  const temporaryThreads = temporaryThreadsOf(config, parts);
  const schedules = schedulesOf(config, parts, temporaryThreads);
  const triggers = triggersOf(config, parts);
  const oauth = oauthOf(config, parts);
  const workers = [temporaryThreads, schedules, ...(oauth ? [oauth] : [])];
  const records: UserRecords[] = [
    { type: "schedule", ...schedules },
    { type: "trigger", ...triggers.records },
    // Deleted before the connections, so no request can become a connection afterwards.
    ...(oauth ? [{ type: "connection_request", ...oauth.records }] : []),
    ...(vault ? [{ type: "connection", ...vault.records }] : []),
  ];
  return {
    /** The services that the routes use. */
    services: { temporaryThreads, schedules, triggers, vault, oauth },
    agentSchedules: agentSchedulesOf(config, parts),
    /** The records that are deleted and exported together with a user. */
    records,
    /** Starts to process documents that are due. */
    open() {
      for (const worker of workers) worker.open();
    },
    async close() {
      await Promise.all([...workers, triggers].map((each) => each.close()));
    },
  };
}

const schedulesOf = (
  { limits }: ServerConfig,
  { stores, runs, webhooks, audit, credentials, logger }: NounParts,
  temporaryThreads: TemporaryThreads,
) =>
  createSchedules({
    ...{ documents: stores.documents, runs, logger, perUser: limits.schedules },
    endOfKey: credentials.endOfKey,
    announce: (owner, thread_id) => temporaryThreads.announce(owner, thread_id, true),
    onStarted: ({ tenant, user }, id, run) =>
      audit.record({
        ...{ tenant, actor: { type: "schedule", id, user }, action: "run.start", outcome: "ok" },
        target: { type: "run", id: run.id, user },
      }),
    async onPaused(owner, { id, agent, pause }) {
      const { tenant, user } = owner;
      audit.record({
        ...{ tenant, actor: { type: "schedule", id, user }, action: "schedule.pause", outcome: "failed" },
        target: { type: "schedule", id, user },
      });
      const data = { schedule_id: id, reason: pause?.reason, message: pause?.message };
      const event = { type: "schedule.paused" as const, ...omitUndefined({ agent }), data };
      await webhooks.emit(owner, event, `schedule_${id}_${owner.user}_${pause?.since}`);
    },
  });

const agentSchedulesOf = ({ limits }: ServerConfig, { stores, runs, audit }: NounParts): OwnSchedules =>
  createAgentSchedules({
    ...{ documents: stores.documents, runs },
    most: { ofUser: limits.schedules, ofAgents: limits.agent_schedules },
    onChanged: ({ tenant, user }, agent, action, id) =>
      audit.record({
        ...{ tenant, actor: { type: "agent", id: agent, user }, outcome: "ok" },
        action: action === "create" ? "schedule.update" : "schedule.delete",
        target: { type: "schedule", id, user },
      }),
  });

const triggersOf = (
  { limits, public_url }: ServerConfig,
  { stores: { documents }, quotas, runs, audit, credentials, logger }: NounParts,
) =>
  createTriggers({
    ...{ documents, runs, quotas, logger },
    endOfKey: credentials.endOfKey,
    publicUrl: public_url,
    onDelivery({ tenant, user }, id, { outcome, run_id, request_id }) {
      if (outcome !== "started" && outcome !== "refused" && outcome !== "failed") return;
      audit.record({
        ...{ tenant, actor: { type: "trigger", id, user }, action: "run.start", request_id },
        outcome: outcome === "started" ? "ok" : outcome,
        target: run_id === undefined ? { type: "trigger", id, user } : { type: "run", id: run_id, user },
      });
    },
    limits: { triggers: limits.triggers, requestsPerMinute: limits.trigger_requests },
  });

const temporaryThreadsOf = ({ retention, limits }: ServerConfig, { stores, quotas, logger }: NounParts) =>
  createTemporaryThreads({
    ...{ stores, quotas, logger },
    keepMs: retention.temporary_threads,
    most: limits.temporary_threads,
  });

/** The maximum number of a tenant's entries, with `STORE=memory` and with the other stores. */
const ENTRIES = { inMemory: 10_000, elsewhere: 100_000 };

/** The caller opens and closes the audit trail. */
export function openAudit(
  { audit: { keep, entries, log }, store }: ServerConfig,
  { documents }: AllStores,
  {
    logger,
    metrics,
    webhooks,
    records,
  }: {
    readonly logger: Logger;
    readonly metrics: Metrics | undefined;
    readonly webhooks: Pick<Webhooks, "emit">;
    readonly records: Pick<AuditRecords, "send"> | undefined;
  },
): Audit {
  const count = entries ?? (store === "memory" ? ENTRIES.inMemory : ENTRIES.elsewhere);
  return createAudit({
    ...{ documents, logger, kept: { ms: keep, count }, isLogged: log },
    onWritten: (entry) => {
      records?.send(entry);
      return webhooks.emit({ tenant: entry.tenant }, { type: "audit.entry", data: { entry } }, entry.id);
    },
    onCounted: (outcome, number) => metrics?.auditEntries.inc({ outcome }, number),
  });
}

/** Records the answers to questions in the audit trail, from all wires. */
export const answersTo =
  (audit: Pick<Audit, "record">) =>
  ({ tenant, user }: Owner, { answers, api_key, origin }: AnsweredRun): void => {
    const actor = { type: api_key === undefined ? "user" : "key", id: api_key ?? user, user } as const;
    const about = {
      tenant,
      actor,
      outcome: "ok",
      ...omitUndefined({ request_id: origin?.request_id }),
    } as const;
    for (const { id, decision } of answers)
      audit.record({ ...about, action: `interrupt.${decision}`, target: { type: "interrupt", id } });
  };

/** Created first, because runs and quotas report events to them. The caller opens and closes the webhooks. */
export function openWebhooks(
  { limits, http_tools, interrupts: { webhook } }: ServerConfig,
  { documents, runs, threads, isDurable }: AllStores,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics | undefined },
): Webhooks {
  const { url, secret } = webhook;
  return createWebhooks({
    ...{ documents, runs, threads, isDurable, logger },
    onOutcome(whose, outcome) {
      if (whose === "user") metrics?.deliveries.inc({ outcome });
      else metrics?.webhooks.inc({ outcome: outcome === "failed" ? "dropped" : outcome });
    },
    maxWebhooks: limits.webhooks,
    allow: hostList(http_tools.allow),
    operator: url && secret ? { url, secret } : undefined,
  });
}

/** `vaultKey` comes from a plugin and replaces the key in the settings. The caller opens and closes the vault. */
export function openVault(
  { http_tools, vault: { key, previous_keys, connections: most } }: ServerConfig,
  { documents }: AllStores,
  {
    vaultKey,
    audit,
    logger,
  }: { readonly vaultKey: KeyWrapper | undefined } & Pick<NounParts, "audit" | "logger">,
): Vault | undefined {
  const ofSettings = [key, ...previous_keys].flatMap((each) =>
    each === undefined ? [] : localWrapper(each),
  );
  const [current, ...previousKeys] = [...(vaultKey ? [vaultKey] : []), ...ofSettings];
  if (!current) return undefined;
  const fetch = createPublicFetch({ allow: hostList(http_tools.allow) });
  return createVault({
    ...{ documents, logger, key: current, previousKeys, most, fetch },
    onUse({ tenant, user }, id) {
      const actor = { type: "server" as const, id: "vault" };
      const target = { type: "connection", id, ...omitUndefined({ user }) };
      audit.record({ tenant, actor, action: "connection.use", target, outcome: "ok" });
    },
    onConsentsEnded: (keeper, id, by) => audit.record(actOn({ keeper, id, by }, "connection.end_consents")),
  });
}

function oauthOf(
  { http_tools, public_url, listen }: ServerConfig,
  { stores, runs, audit, vault, accounts, ownAddress, logger }: NounParts,
): OAuth | undefined {
  if (!vault) return undefined;
  const allow = hostList(http_tools.allow);
  return createOAuth({
    ...{ documents: stores.documents, owners: stores.owners, vault, runs, logger, allow },
    fetch: createPublicFetch({ allow }),
    ...accounts,
    // Browsers on this machine can reach a server that listens only on this machine.
    base: () => public_url ?? (isLoopback(listen.host) ? ownAddress() : undefined),
    onConnected: ({ keeper, by, server: id }) =>
      audit.record(actOn({ keeper, id, by }, "connection.connect")),
  });
}

/** Returns the audit entry of a person who did something to a connection. */
function actOn(
  { keeper: { tenant, user }, id, by }: { readonly keeper: Keeper; readonly id: string; readonly by: Owner },
  action: string,
): NewEntry {
  const of =
    by.tenant === tenant ? { type: "user" as const } : { type: "operator" as const, tenant: by.tenant };
  const actor = { ...of, id: by.user, user: by.user };
  const target = { type: "connection", id, ...omitUndefined({ user }) };
  return { tenant, actor, action, target, outcome: "ok" };
}
