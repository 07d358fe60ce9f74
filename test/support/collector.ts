// A collector of OpenTelemetry: takes OTLP over HTTP as JSON, and refuses what is not exactly that.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { z } from "zod";

const hex = (digits: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`));
const Nanos = z.string().regex(/^\d{19}$/);
const Scalar = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.union([z.int(), z.string().regex(/^-?\d+$/)]) }),
  z.strictObject({ doubleValue: z.number() }),
  z.strictObject({ boolValue: z.boolean() }),
]);
const Value = z.union([Scalar, z.strictObject({ arrayValue: z.strictObject({ values: z.array(Scalar) }) })]);
const Attributes = z.array(z.strictObject({ key: z.string().min(1), value: Value }));
const count = z.int().min(0).optional();

const Span = z.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  traceState: z.string().optional(),
  parentSpanId: hex(16).optional(),
  flags: z.int().optional(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: Nanos,
  endTimeUnixNano: Nanos,
  attributes: Attributes,
  droppedAttributesCount: count,
  events: z.array(
    z.strictObject({
      timeUnixNano: Nanos,
      name: z.string(),
      attributes: Attributes,
      droppedAttributesCount: count,
    }),
  ),
  droppedEventsCount: count,
  links: z.array(
    z.strictObject({
      traceId: hex(32),
      spanId: hex(16),
      traceState: z.string().optional(),
      flags: z.int().optional(),
      attributes: Attributes,
      droppedAttributesCount: count,
    }),
  ),
  droppedLinksCount: count,
  status: z.strictObject({ code: z.int().min(0).max(2), message: z.string().optional() }),
});
const Export = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: Attributes, droppedAttributesCount: count }).loose(),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }).loose(),
          spans: z.array(Span),
          schemaUrl: z.string().optional(),
        }),
      ),
      schemaUrl: z.string().optional(),
    }),
  ),
});

const LogExport = z.strictObject({
  resourceLogs: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: Attributes, droppedAttributesCount: count }).loose(),
      scopeLogs: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }).loose(),
          logRecords: z.array(
            z.strictObject({
              timeUnixNano: Nanos,
              observedTimeUnixNano: Nanos,
              severityNumber: z.int().min(1).max(24),
              severityText: z.string(),
              eventName: z.string().min(1),
              body: z.strictObject({ stringValue: z.string() }),
              attributes: Attributes,
              droppedAttributesCount: count,
            }),
          ),
          schemaUrl: z.string().optional(),
        }),
      ),
      schemaUrl: z.string().optional(),
    }),
  ),
});

type Told = string | number | boolean | readonly (string | number | boolean)[];

export interface ReceivedSpan
  extends Pick<
    z.infer<typeof Span>,
    "traceId" | "spanId" | "parentSpanId" | "name" | "kind" | "status" | "links"
  > {
  readonly attributes: Readonly<Record<string, Told>>;
  readonly events: readonly string[];
  /** In ms. */
  readonly duration: number;
  readonly resource: Readonly<Record<string, Told>>;
}

export interface ReceivedRecord {
  readonly name: string;
  readonly severity: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, Told>>;
  readonly resource: Readonly<Record<string, Told>>;
}

export interface Collector {
  readonly url: string;
  readonly records: ReceivedRecord[];
  readonly spans: ReceivedSpan[];
  readonly headers: IncomingMessage["headers"][];
  /** What was wrong with what was sent. */
  readonly faults: string[];
}

/** Closed when the test has finished. */
export async function startCollector(): Promise<Collector> {
  const [spans, headers, faults]: [ReceivedSpan[], Collector["headers"], string[]] = [[], [], []];
  const records: ReceivedRecord[] = [];
  const server = createServer(async (request, reply) => {
    headers.push(request.headers);
    const body = await buffer(request);
    const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
    const json: unknown = JSON.parse(text.toString());
    const isLogs = request.url === "/v1/logs";
    if (!isLogs && request.url !== "/v1/traces") faults.push(`${request.url}`);
    const read = (isLogs ? LogExport : Export).safeParse(json);
    if (!read.success) faults.push(z.prettifyError(read.error));
    else if ("resourceLogs" in read.data) records.push(...read.data.resourceLogs.flatMap(recordsOf));
    else spans.push(...read.data.resourceSpans.flatMap(spansOf));
    reply.writeHead(read.success ? 200 : 400, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, spans, records, headers, faults };
}

function recordsOf({
  resource,
  scopeLogs,
}: z.infer<typeof LogExport>["resourceLogs"][number]): ReceivedRecord[] {
  return scopeLogs.flatMap(({ logRecords }) =>
    logRecords.map(({ eventName: name, severityText: severity, body, attributes }) => ({
      ...{ name, severity, body: body.stringValue },
      attributes: told(attributes),
      resource: told(resource.attributes),
    })),
  );
}

function spansOf({ resource, scopeSpans }: z.infer<typeof Export>["resourceSpans"][number]): ReceivedSpan[] {
  return scopeSpans.flatMap(({ spans }) =>
    spans.map(({ startTimeUnixNano, endTimeUnixNano, attributes, events, ...span }) => ({
      ...span,
      attributes: told(attributes),
      events: events.map(({ name }) => name),
      duration: Number((BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1_000_000n),
      resource: told(resource.attributes),
    })),
  );
}

const told = (attributes: z.infer<typeof Attributes>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueIn(value)]));

function valueIn(value: z.infer<typeof Value>): Told {
  if ("arrayValue" in value) return value.arrayValue.values.map((each) => valueIn(each) as string);
  const [only] = Object.values(value);
  return "intValue" in value ? Number(only) : (only as Told);
}
