// zod as Fastify's validator and serialiser: what a route declares is what it takes and gives.

import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { z } from "zod";
import { AppError } from "../core/errors.ts";
import { check, type Fault, sentence } from "../lib/check.ts";

/** The server as the routes see it. */
export type App = ReturnType<typeof withZod>;

export function withZod(server: FastifyInstance) {
  server.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => (data) => {
    // Fastify says null for a body that is not there.
    const checked = check(schema, data ?? undefined);
    return "value" in checked ? checked : { error: invalid(checked.faults, httpPart ?? "body") };
  });
  // Also drops what a schema does not name: a reply holds nothing that is not documented.
  server.setSerializerCompiler<z.ZodType>(
    ({ schema }) =>
      (data) =>
        JSON.stringify(schema.parse(data)),
  );
  return server.withTypeProvider<ZodTypeProvider>();
}

const MAX_ISSUES = 20;

function invalid(faults: readonly Fault[], part: string): AppError {
  const issues = faults.slice(0, MAX_ISSUES).map((fault) => ({
    path: fault.path.join("."),
    message: fault.message,
  }));
  const [first] = faults;
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
  return new AppError("invalid_request", `Invalid ${part}: ${first ? sentence(first) : "refused"}${more}.`, {
    details: { issues },
  });
}
