// Generates the client's TypeScript types from the OpenAPI document. They are plain types, so a front end needs neither
// zod nor Node's types.

import { isWirePath } from "../src/server/config/wire-names.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
}
interface Operation {
  readonly summary?: string;
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: Schema }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const HEAD = `// The types of the native API. Written by \`npm run openapi\` out of the routes; do not edit.
`;

/** Returns the text of `src/client/wire.ts`. `roots` are the schemas of the data in streams. */
export function wireTypes({ paths, components: { schemas } }: Document, roots: readonly string[]): string {
  const operations = Object.entries(paths)
    .filter(([path]) => !isWirePath(path))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => operationType(method, path, operation)),
    );
  const named = reachable(operations.join("\n"), schemas, roots).map(
    (name) => `${doc(schemas[name], "")}export type ${name} = ${typeOf(schemas[name] ?? {}, "")};\n`,
  );
  const table = `/** By method and path: the types of the request and the response. */\nexport interface Operations {\n${operations.join("")}}\n`;
  return [HEAD, ...named, table].join("\n");
}

/** Returns the names of the schemas that the operations and `roots` use, directly or indirectly, in document order. */
function reachable(text: string, schemas: Document["components"]["schemas"], roots: readonly string[]) {
  const names = Object.keys(schemas);
  const found = new Set(roots);
  const search = (words: string) => {
    for (const name of names) {
      if (found.has(name) || !new RegExp(`\\b${name}\\b`).test(words)) continue;
      found.add(name);
      search(typeOf(schemas[name] ?? {}, ""));
    }
  };
  search(withoutTexts(text));
  for (const name of roots) search(typeOf(schemas[name] ?? {}, ""));
  return names.filter((name) => found.has(name));
}

const withoutTexts = (text: string) => text.replaceAll(/\/\*\*.*?\*\//gs, "").replaceAll(/"[^"]*"/g, "");

function operationType(method: string, path: string, operation: Operation): string {
  const { summary = "", parameters = [], requestBody, responses } = operation;
  const those = (place: string) => parameters.filter((each) => each.in === place);
  const query = those("query").filter(({ name }) => name !== "ticket" && name !== "heartbeat");
  const fields = [
    those("path").length > 0 && `path: ${objectOf(those("path"))};`,
    query.length > 0 && `query: ${objectOf(query)};`,
    requestBody && `body: ${typeOf(jsonIn(requestBody.content) ?? {}, "    ")};`,
    `answer: ${answerOf(responses)};`,
  ].filter((field) => typeof field === "string");
  return `  /** ${summary}. */\n  "${method.toUpperCase()} ${path}": {\n${fields.map((field) => `    ${field}\n`).join("")}  };\n`;
}

const jsonIn = (content: Content | undefined) => content?.["application/json"]?.schema;

/** Returns the type of the JSON in a successful response; void if there is none. */
function answerOf(responses: Operation["responses"]): string {
  const answers = Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([, { content }]) => jsonIn(content) ?? []);
  return unionOf(
    answers.map((schema) => typeOf(schema, "    ")),
    "void",
  );
}

function objectOf(parameters: NonNullable<Operation["parameters"]>): string {
  const fields = parameters.map(
    ({ name, required, schema }) =>
      `${name}${required ? "" : "?"}: ${typeOf(schema, "")}${required ? "" : " | undefined"}`,
  );
  return `{ ${fields.join("; ")} }`;
}

const unionOf = (types: readonly string[], none = "never") => [...new Set(types)].join(" | ") || none;

/** Returns the schema's type. Lines after the first are indented by `indent`. */
function typeOf(schema: Schema, indent: string): string {
  const { $ref, enum: values, oneOf, anyOf, allOf, type } = schema;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf("/") + 1);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (values) return unionOf(values.map((value) => JSON.stringify(value)));
  const members = oneOf ?? anyOf;
  if (members) return unionOf(members.map((each) => typeOf(each, indent)));
  if (allOf) return allOf.map((each) => typeOf(each, indent)).join(" & ");
  if (typeof type === "object") return unionOf(type.map((each) => typeOf({ ...schema, type: each }, indent)));
  switch (type) {
    case "integer":
      return "number";
    case "string":
    case "number":
    case "boolean":
    case "null":
      return type;
    case "array":
      return arrayOf(typeOf(schema.items ?? {}, indent));
    case "object":
      return recordOf(schema, indent);
    default:
      return "unknown";
  }
}

const arrayOf = (item: string) => (/^[\w.]+$/.test(item) ? `${item}[]` : `Array<${item}>`);

function recordOf({ properties = {}, required, additionalProperties: rest }: Schema, indent: string): string {
  const must = new Set(required);
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(schema, inner);
    // JSON has no undefined, so a key that the caller leaves undefined is not sent.
    const value = must.has(name) || type === "unknown" ? type : `${type} | undefined`;
    return `${doc(schema, inner)}${inner}${key}${must.has(name) ? "" : "?"}: ${value};\n`;
  });
  const isOpen = typeof rest === "object";
  if (fields.length === 0) return `Record<string, ${isOpen ? typeOf(rest, indent) : "never"}>`;
  if (isOpen) fields.push(`${inner}[key: string]: unknown;\n`);
  return `{\n${fields.join("")}${indent}}`;
}

const doc = (schema: Schema | undefined, indent: string) =>
  schema?.description === undefined ? "" : `${indent}/** ${schema.description.replaceAll("*/", "*\\/")} */\n`;
