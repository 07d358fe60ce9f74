// The URLs of triggers, which other services call. The URL identifies the trigger, and the trigger's secret
// authenticates the sender.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import type { OpenTrigger } from "../../../engine/triggers/index.ts";
import { fromFastify } from "../errors.ts";
import { jsonReader, refuseEncoded } from "../json-body.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

/** The maximum size of a delivery in bytes, unless `limits.body_bytes` is less. */
const MAX_BYTES = 1024 * 1024;
const FORM = /^application\/x-www-form-urlencoded\b/i;

const HookParams = z.object({ address: z.string().max(64) });
const Started = z.object({ thread_id: z.string(), run_id: z.string() });
const IgnoredDelivery = z.object({ ignored: z.string().describe("Reason why the delivery starts no run.") });

export function hookRoutes(app: App, services: RouteServices): void {
  void app.register(async (scope) => hookRoute(withRawBodies(scope), services));
}

function hookRoute(app: App, { triggers, limits }: RouteServices): void {
  const opened = new WeakMap<FastifyRequest, OpenTrigger>();
  const readJson = jsonReader(app as unknown as FastifyInstance, limits.bodyEntries);

  app.post(
    "/hooks/:address",
    {
      bodyLimit: Math.min(limits.bodyBytes, MAX_BYTES),
      // Runs before the body is read, because this route takes no credentials.
      onRequest: async (request) => {
        const { address } = request.params as z.infer<typeof HookParams>;
        opened.set(request, await triggers.open(address));
      },
      schema: {
        summary: "Deliver an event to a trigger",
        description:
          "Other services send their webhooks here. The address comes from `PUT /triggers/{trigger_id}`, and the trigger's secret verifies the delivery. Returns 202 immediately, with the run that the delivery starts or the reason why it starts none. If the delivery is repeated, returns the run of the first delivery. Returns 404 for an unknown address and a paused trigger, and 401 for a delivery that cannot be verified.",
        tags: ["triggers"],
        params: HookParams,
        response: {
          200: z
            .object({ challenge: z.string() })
            .describe("Response to Slack's `url_verification` request."),
          202: z.union([Started, IgnoredDelivery]),
        },
      },
    },
    async (request, reply) => {
      const open = opened.get(request);
      if (!open) throw new AppError("internal", "A delivery came without its trigger.");
      refuseEncoded(request);
      // The parser of this route passes the body on as bytes.
      const raw = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
      const answer = await triggers.receive(open, {
        headers: singleHeaders(request),
        raw,
        request_id: request.id,
        parse: () =>
          parsed(request, raw, readJson).catch((error: Error) => {
            throw fromFastify(error, request);
          }),
      });
      return "challenge" in answer ? reply.code(200).send(answer) : reply.code(202).send(answer);
    },
  );
}

/** Slack sends users' clicks as a form whose field `payload` is JSON. */
async function parsed(
  request: FastifyRequest,
  raw: Buffer,
  readJson: (request: FastifyRequest, text: Buffer) => Promise<unknown>,
): Promise<unknown> {
  if (raw.length === 0) return undefined;
  if (!FORM.test(request.headers["content-type"] ?? "")) return readJson(request, raw);
  const form = new URLSearchParams(raw.toString());
  const payload = form.get("payload");
  return payload === null ? Object.fromEntries(form) : readJson(request, Buffer.from(payload));
}

/** Returns the headers that were sent only once. */
function singleHeaders({ headers }: FastifyRequest): Record<string, string> {
  const single = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === "string" ? [[name, value] as const] : [],
  );
  return Object.fromEntries(single);
}

/** A sender signs the bytes, so bodies of every type are kept as bytes. */
function withRawBodies(scope: App): App {
  (scope as unknown as FastifyInstance).removeAllContentTypeParsers();
  scope.addContentTypeParser(
    "*",
    { parseAs: "buffer" },
    async (_request: FastifyRequest, body: Buffer) => body,
  );
  return scope;
}
