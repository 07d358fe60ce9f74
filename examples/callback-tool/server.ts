// A tool as another team would run it, with signed calls, progress, and results that may arrive later.
//
// Run it:   see README.md beside this file
// Test it:  npm test -- test/examples/callback-tool.test.ts

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";

interface Call {
  readonly name: string;
  readonly args: { readonly city: string; readonly kilograms: number };
  readonly user: string;
  /** The URL for a POST with a later result. Undefined if the server accepts no later result. */
  readonly result_url?: string;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_KEPT = 1000;

/** `secret`: the value that the registration returned, `whsec_…`. */
export function callbackServer(secret: string) {
  const webhook = new Webhook(secret);
  /** A retried call gets the answer of the first call, which makes the tool idempotent. */
  const answers = new Map<string, object>();

  return createServer(async (request, response) => {
    try {
      const body = await bodyOf(request);
      // Throws if Skein did not sign the call within the last five minutes.
      const call = webhook.verify(body, request.headers as Record<string, string>) as Call;
      const key = String(request.headers["idempotency-key"]);
      const answer = answers.get(key) ?? quote(call);
      answers.set(key, answer);
      for (const oldest of answers.keys()) if (answers.size > MAX_KEPT) answers.delete(oldest);
      if (call.args.kilograms > 1000 && call.result_url) return later(call.result_url, answer, response);
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write(line({ progress: `Asking carriers on behalf of ${call.user} …\n` }));
      response.end(line(answer));
    } catch {
      response.writeHead(401, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: "This call is not signed with my secret." }));
    }
  });
}

/** A failure of the tool is also a result, which the model sees. */
function quote({ args: { city, kilograms } }: Call): object {
  if (kilograms <= 0) return { error: "Nothing weighs so little. Give the weight in kilograms." };
  return { result: { city, price: Math.round(500 + kilograms * 120) / 100, currency: "EUR" } };
}

/** Responds "not yet". The run waits, and resumes once the result is delivered. */
function later(resultUrl: string, answer: object, response: ServerResponse): void {
  response.writeHead(202).end();
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(answer),
  };
  setTimeout(() => void fetch(resultUrl, init).catch(console.error), 2000);
}

/** Reads the raw bytes, because the signature covers them and not the parsed JSON. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error("The body is too large.");
  }
  return Buffer.concat(chunks).toString();
}

const line = (value: object) => `${JSON.stringify(value)}\n`;

if (import.meta.main) {
  const server = callbackServer(process.env.TOOL_SECRET ?? "");
  server.listen(Number(process.env.PORT ?? 9100), "127.0.0.1", () => console.log("Waiting for calls."));
}
