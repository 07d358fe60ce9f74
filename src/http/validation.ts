// zod as Fastify's validator and serialiser: what a route declares is what it takes and gives.

import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { z } from "zod";
import { AppError } from "../core/errors.ts";

/** The server as the routes see it. */
export type App = ReturnType<typeof withZod>;

export function withZod(server: FastifyInstance) {
  server.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => (data) => {
    // Fastify says null for a body that is not there.
    const parsed = schema.safeParse(data ?? undefined);
    return parsed.success
      ? { value: parsed.data }
      : { error: invalid(parsed.error, httpPart ?? "body", data) };
  });
  // Also drops what a schema does not name: a reply holds nothing that is not documented.
  server.setSerializerCompiler<z.ZodType>(
    ({ schema }) =>
      (data) =>
        JSON.stringify(schema.parse(data)),
  );
  return server.withTypeProvider<ZodTypeProvider>();
}

function invalid(error: z.ZodError, part: string, data: unknown): AppError {
  if (data === undefined || data === null) return new AppError("invalid_request", `The ${part} is missing.`);
  const issues = error.issues.flatMap((issue) => explain(issue));
  const [first] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  const where = first?.path ? `\`${first.path}\`: ` : "";
  return new AppError("invalid_request", `Invalid ${part}: ${where}${first?.message ?? "refused"}${more}.`, {
    details: { issues },
  });
}

interface Explained {
  readonly path: string;
  readonly message: string;
}

/** A union's failure is that of its nearest option: the one whose fault lies deepest. */
function explain(issue: z.core.$ZodIssue, base: readonly PropertyKey[] = []): Explained[] {
  const path = [...base, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0)
    return [{ path: path.join("."), message: issue.message.replace(/\.$/, "") }];
  const depth = (option: readonly z.core.$ZodIssue[]) => Math.max(...option.map((each) => each.path.length));
  const nearest = issue.errors.toSorted((a, b) => depth(b) - depth(a))[0] ?? [];
  return nearest.flatMap((each) => explain(each, path));
}
