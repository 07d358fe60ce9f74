// A fake provider: it speaks the vendors' wires, rejects what they reject, and answers from a script.

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { anthropic } from "./anthropic.ts";
import { azure } from "./azure.ts";
import { bedrock } from "./bedrock.ts";
import { gemini } from "./gemini.ts";
import { openai } from "./openai.ts";
import { type Answer, say } from "./script.ts";
import type { Refusal, Vendor } from "./vendor.ts";
import { vertex } from "./vertex.ts";

const VENDORS: readonly Vendor[] = [anthropic, azure, bedrock, gemini, vertex, openai];

export interface RecordedRequest {
  readonly vendor: Vendor["name"];
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** JSON of any vendor: `sentBody` looks into it. */
  readonly body: unknown;
  /** The answer that it got. */
  readonly status: number;
  /** Resolves when the client hangs up before the answer is over. Never, when it does not. */
  readonly hungUp: Promise<void>;
}

export type Script = (request: RecordedRequest, count: number) => Answer;

const ok: Script = () => ({ blocks: [say("ok")] });

export interface FakeProvider {
  /** Where it listens. Anthropic's and Azure's base URL; OpenAI's is this with `/v1`, Gemini's with `/v1beta/openai`. */
  readonly url: string;
  /** The next answers, in order. After the last one: the script's. */
  enqueue(...answers: readonly Answer[]): void;
  /** All requests so far, refused ones included; without a journal only these. */
  requests(): readonly RecordedRequest[];
  /** Resolves with the request of that number, from 0, as soon as it is here. */
  request(number: number): Promise<RecordedRequest>;
  connections(): number;
  close(): Promise<void>;
}

export interface FakeProviderOptions {
  /** 0 = any free one. */
  readonly port?: number;
  readonly script?: Script;
  /** Off for long measurements. */
  readonly journal?: boolean;
}

export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const { port = 0, script = ok, journal = true } = options;
  const queue: Answer[] = [];
  const requests: RecordedRequest[] = [];
  const waiting: { number: number; resolve: (request: RecordedRequest) => void }[] = [];
  let count = 0;
  let connections = 0;

  const record = (request: RecordedRequest) => {
    count++;
    if (!journal && request.status < 400) return;
    requests.push(request);
    for (const { number, resolve } of waiting) if (number === requests.length - 1) resolve(request);
  };

  const server = createServer(async (request, response) => {
    const vendor = VENDORS.find(({ path }) => path.test(request.url ?? ""));
    const text = await textOf(request);
    if (!vendor) return refuse(response, { status: 404, body: { error: `no route ${request.url}` } });
    const asked = {
      url: request.url ?? "",
      headers: request.headers,
      text,
      body: JSON.parse(text) as unknown,
    };
    const refusal = vendor.refuse(asked);
    const recorded = {
      ...{ vendor: vendor.name, ...asked, status: refusal?.status ?? 200 },
      hungUp: hungUp(response),
    };
    // A request that a vendor refuses takes nothing from the queue: no answer fits it.
    const answer = refusal ? {} : (queue.shift() ?? script(recorded, count));
    const failure = refusal ?? (answer.fail ? vendor.fail(answer.fail, answer) : undefined);
    record({ ...recorded, status: failure?.status ?? 200 });
    if (failure) return refuse(response, failure, answer.headers);
    const frames = answer.raw?.map((data) => rawFrame(data, vendor)) ?? vendor.frames(answer, asked);
    if (!answer.hang) await stream(response, answer, [vendor, frames]);
  });
  // A connection outlasts a test that is busy for long, as with loading an SDK.
  server.keepAliveTimeout = 0;
  server.on("connection", () => connections++);
  server.listen(port, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  // A server that listens on TCP has such an address.
  const { port: listening } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${listening}`,
    enqueue: (...answers) => void queue.push(...answers),
    requests: () => requests,
    request: (number) => {
      const known = requests[number];
      if (known) return Promise.resolve(known);
      return new Promise((resolve) => void waiting.push({ number, resolve }));
    },
    connections: () => connections,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function rawFrame(data: unknown, vendor: Vendor): string | Buffer {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return vendor.rawFrame?.(text) ?? `data: ${text}\n\n`;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function hungUp(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once("close", () => {
      if (!response.writableFinished) resolve();
    });
  });
}

function refuse(response: ServerResponse, { status, body }: Refusal, headers: Answer["headers"] = {}): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_fake", ...headers });
  response.end(JSON.stringify(body));
}

async function stream(
  response: ServerResponse,
  answer: Answer,
  [vendor, frames]: [Vendor, readonly (string | Buffer)[]],
) {
  const { batch = 1, delayMs = 0, breakAfter, headers = {} } = answer;
  response.writeHead(200, {
    "content-type": vendor.contentType ?? "text/event-stream; charset=utf-8",
    ...headers,
  });
  const sent = breakAfter ? frames.slice(0, breakAfter.frames) : frames;
  for (let start = 0; start < sent.length; start += batch) {
    if (start > 0) await (delayMs > 0 ? sleep(delayMs) : turn());
    if (response.destroyed) return;
    const packet = Buffer.concat(sent.slice(start, start + batch).map((frame) => Buffer.from(frame)));
    if (!response.write(packet)) await drained(response);
  }
  switch (breakAfter?.with) {
    case "silence":
      return;
    case "destroy":
      await turn();
      response.destroy();
      return;
    case "overloaded":
    case "rate_limit":
    case "server_error":
      response.write(vendor.errorFrame(breakAfter.with));
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once("drain", resolve);
    response.once("close", resolve);
  });
}
