// Sends the entries of the audit trail to an OpenTelemetry collector as log records, over OTLP/HTTP. The stored trail
// is complete, but the collector's copy may not be. Entries that do not fit into the queue or cannot be delivered are
// counted and not sent again.

import { type Attributes, SeverityNumber } from "@opentelemetry/api";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import type { AuditEntry } from "../../engine/audit/entry.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { telemetryResource } from "./resource.ts";

/** `dropped`: the queue was full. `failed`: the collector did not accept the entry. */
export type RecordOutcome = "sent" | "failed" | "dropped";

export interface AuditRecordOptions {
  readonly version: string;
  readonly logger: Pick<Logger, "info" | "warn">;
  /** Counts entries by their outcome. */
  count(outcome: RecordOutcome, entries: number): void;
}

export interface AuditRecords {
  /** Queues an entry. Returns at once and never throws. */
  send(entry: AuditEntry): void;
  /** Sends the queued entries, for at most five seconds. */
  close(): Promise<void>;
}

/** The maximum number of entries that wait to be sent, or for a response. */
const MAX_QUEUE = 8192;
const BATCH_SIZE = 512;
/** The maximum time that an entry waits for other entries, in ms. */
const DELAY_MS = 1_000;
const CLOSE_MS = 5_000;

/** The endpoint, its headers and the resource come from OpenTelemetry's environment variables. */
export function createAuditRecords({ version, logger, count }: AuditRecordOptions): AuditRecords {
  const exporter = new OTLPLogExporter();
  let unsettled = 0;
  let isFailing = false;
  const settled = (entries: number, error: Error | undefined) => {
    unsettled -= entries;
    count(error ? "failed" : "sent", entries);
    if (error && !isFailing)
      logger.warn({ err: error, entries }, "the audit trail cannot be delivered to the collector");
    if (!error && isFailing) logger.info({}, "the audit trail is delivered to the collector again");
    isFailing = error !== undefined;
  };
  const processor = new BatchLogRecordProcessor({
    ...{ maxQueueSize: MAX_QUEUE, maxExportBatchSize: BATCH_SIZE, scheduledDelayMillis: DELAY_MS },
    exporter: {
      export: (records, done) =>
        exporter.export(records, (result) => {
          const failure = result.error ?? new Error("The export failed.");
          settled(records.length, result.code === 0 ? undefined : failure);
          done(result);
        }),
      forceFlush: () => exporter.forceFlush(),
      shutdown: () => exporter.shutdown(),
    },
  });
  const provider = new LoggerProvider({ resource: telemetryResource(version), processors: [processor] });
  const records = provider.getLogger("skein", version);

  return {
    send(entry) {
      if (unsettled >= MAX_QUEUE) {
        count("dropped", 1);
        return;
      }
      unsettled++;
      const severity = entry.outcome === "ok" ? SeverityNumber.INFO : SeverityNumber.WARN;
      records.emit({
        eventName: "skein.audit",
        timestamp: Date.parse(entry.at),
        ...{ severityNumber: severity, severityText: SeverityNumber[severity] },
        body: entry.action,
        attributes: attributesOf(entry),
      });
    },
    async close() {
      const timeout = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      await Promise.race([provider.shutdown().catch(() => {}), timeout]);
    },
  };
}

/**
 * Returns flat attributes, because many collectors index only those. The names for HTTP and the client are
 * OpenTelemetry's.
 */
const attributesOf = ({ actor, target, ...entry }: AuditEntry): Attributes =>
  omitUndefined({
    "skein.audit.id": entry.id,
    "skein.audit.action": entry.action,
    "skein.audit.outcome": entry.outcome,
    "skein.audit.dropped": entry.dropped,
    "skein.tenant": entry.tenant,
    "skein.audit.actor.type": actor.type,
    "skein.audit.actor.id": actor.id,
    "skein.audit.actor.user": actor.user,
    "skein.audit.actor.tenant": actor.tenant,
    "skein.audit.target.type": target?.type,
    "skein.audit.target.id": target?.id,
    "skein.audit.target.user": target?.user,
    "skein.request.id": entry.request_id,
    "http.response.status_code": entry.status,
    "client.address": entry.ip,
  });
