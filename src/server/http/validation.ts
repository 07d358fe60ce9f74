// Uses zod as Fastify's validator and serializer. Routes accept and return exactly the values that their schemas
// declare.

import { isDeepStrictEqual } from "node:util";
import type { FastifyInstance, FastifyTypeProvider } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { check, checkInTicks, type Fault, sentence } from "../../lib/check.ts";
import { fitted } from "../../lib/fitted.ts";
import { tenantOf } from "../auth/guard.ts";
import { isLargeBody } from "./json-body.ts";

/** Derives the types of a route's input and reply from its schemas. */
interface ZodTypeProvider extends FastifyTypeProvider {
  readonly validator: this["schema"] extends z.ZodType ? z.output<this["schema"]> : unknown;
  readonly serializer: this["schema"] extends z.ZodType ? z.output<this["schema"]> : unknown;
}

/** The server as the routes see it. */
export type App = ReturnType<typeof withZod>;

export function withZod(server: FastifyInstance) {
  const known = checkLargeBodies(server);
  server.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => (data) => {
    if (known.has(data)) return { value: data };
    // Fastify passes null for a missing body.
    const checked = check(schema, data ?? undefined);
    return "value" in checked ? checked : { error: invalid(checked.faults, httpPart ?? "body") };
  });
  server.setSerializerCompiler<z.ZodType>(({ schema, method, url }) =>
    fittingJson(server, schema, { method, url }),
  );
  return server.withTypeProvider<ZodTypeProvider>();
}

/** Checks large bodies before the others, because Fastify's validators cannot pause. Returns the bodies that passed. */
function checkLargeBodies(server: FastifyInstance): Pick<WeakSet<object>, "has"> {
  const known = new WeakSet<object>();
  server.addHook("preValidation", (request, _reply, done) => {
    const { schema } = request.routeOptions;
    if (!isLargeBody(request.body) || !(schema?.body instanceof z.ZodType)) return done();
    const checking = checkInTicks(schema.body, request.body, tenantOf(request)).then((checked) => {
      if ("faults" in checked) throw invalid(checked.faults, "body");
      request.body = checked.value;
      known.add(Object(checked.value));
    });
    checking.then(() => done(), done);
  });
  return known;
}

/**
 * Writes responses with documented fields only. Data stored by an earlier version may not match the schema but must
 * stay readable, so it is corrected and logged once. Call this once per route. `text` is the data as JSON, if it is
 * already written.
 */
export function fittingJson(
  { log }: Pick<FastifyInstance, "log">,
  schema: z.ZodType,
  { method, url }: { method: string; url: string },
): (data: unknown, text?: string) => string {
  let isLogged = false;
  return (data, text) => {
    const { value, changed } = fitted(schema, data);
    if (changed.length > 0 && !isLogged)
      log.warn(
        { method, route: url, paths: changed.slice(0, MAX_ISSUES) },
        "a reply did not fit its schema and was corrected",
      );
    isLogged ||= changed.length > 0;
    // If nothing was corrected or left out, a long text does not have to be written again.
    return text !== undefined && isDeepStrictEqual(value, data) ? text : JSON.stringify(value);
  };
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
