// The contract as a list of requests to the server, read from openapi.yaml: what a route takes, tests learn
// from here.

import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

const Schema = z.record(z.string(), z.unknown());
/** A JSON Schema, without references at its top. */
export type Schema = z.infer<typeof Schema>;

const Content = z.record(z.string(), z.object({ schema: Schema }));
const Parameter = z.object({ name: z.string(), in: z.enum(["path", "query", "header"]), schema: Schema });
const Operation = z.object({
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ content: Content.optional() })),
  security: z.array(z.record(z.string(), z.array(z.string()))),
});
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ schemas: z.record(z.string(), Schema) }),
});

export type Parameter = z.infer<typeof Parameter>;

export interface Operation {
  /** `GET /threads/{thread_id}` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Of a JSON body. */
  readonly body: Schema | undefined;
  readonly isStream: boolean;
  readonly isPublic: boolean;
  /** What its caller must have; undefined where credentials are enough, and where none are asked for. */
  readonly scope: string | undefined;
}

const document = Document.parse(parse(readFileSync(new URL("../../openapi.yaml", import.meta.url), "utf8")));

export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { parameters, requestBody, responses, security }]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    parameters,
    body: requestBody && resolved(requestBody.content["application/json"]?.schema),
    isStream: Object.values(responses).some(({ content = {} }) => "text/event-stream" in content),
    isPublic: security.length === 0,
    scope: Object.values(security[0] ?? {})[0]?.[0],
  })),
);

/** A schema, or the one that it refers to. */
export function resolved(schema: unknown): Schema {
  // `items: false` of a tuple.
  if (typeof schema === "boolean") return {};
  const { $ref, ...own } = Schema.parse(schema);
  if (typeof $ref !== "string") return own;
  return resolved(document.components.schemas[$ref.replace("#/components/schemas/", "")]);
}

/** The names of all fields that may occur in a value of `schema`. */
export function fieldsOf(schema: Schema): Set<string> {
  const names = new Set<string>();
  const seen = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("$ref" in node) {
      const text = String(node.$ref);
      if (!seen.has(text)) visit(resolved(node));
      seen.add(text);
      return;
    }
    const properties = "properties" in node ? Object(node.properties) : {};
    for (const name of Object.keys(properties)) names.add(name);
    for (const each of Object.values(node)) visit(each);
  };
  visit(schema);
  return names;
}
