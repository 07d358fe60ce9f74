// Writes openapi.yaml from the schemas of the routes, the client's types, and the tables of docs/reference/http.md.
// `--check` only compares the files.

import { readFile, writeFile } from "node:fs/promises";
import { STATUS_CODES } from "node:http";
import swagger from "@fastify/swagger";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { pino } from "pino";
import { stringify } from "yaml";
import packageJson from "../package.json" with { type: "json" };
import { OwnRuleSpec } from "../src/agent/hooks/permissions/rule.ts";
import { AuthConfig } from "../src/server/auth/config.ts";
import { accessOf } from "../src/server/auth/scopes.ts";
import { isWirePath, WireName } from "../src/server/config/wire-names.ts";
import { createServer, type HttpServer } from "../src/server/http/server.ts";
import type { HttpServices } from "../src/server/http/services.ts";
import { addWire } from "../src/wires/index.ts";
import { operationId } from "./operation-ids.ts";
import { withRouteTables } from "./route-tables.ts";
import { type Document, wireTypes } from "./wire-types.ts";

const ROUTES_PAGE = "docs/reference/http.md";

/** Returns each file with its text. */
export async function generate(): Promise<ReadonlyMap<string, string>> {
  const document = await contract();
  const yaml = stringify(document, { aliasDuplicateObjects: false, lineWidth: 110 });
  return new Map([
    ["openapi.yaml", yaml],
    ["src/client/wire.ts", wireTypes(document, STREAMED)],
    [
      ROUTES_PAGE,
      withRouteTables(await readFile(new URL(`../${ROUTES_PAGE}`, import.meta.url), "utf8"), document.paths),
    ],
  ]);
}

/** Returns the contract of the routes. They are registered without services and are never called. */
async function contract(): Promise<Document> {
  const access = { auth: AuthConfig.parse({}), origins: [] };
  const services = {
    access,
    permissionRule: OwnRuleSpec,
    limits: { requestMs: 60_000, bodyBytes: 1_000_000 },
    stores: {},
    agents: {},
    webhooks: {},
    page: true,
    wires: WireName.options,
  } as unknown as HttpServices;
  const extend = async (bare: HttpServer) => {
    await bare.register(swagger, {
      openapi: {
        openapi: "3.1.0",
        info: {
          title: "Skein",
          version: packageJson.version,
          description:
            "A multi-tenant agent server. Clients POST messages to a thread and follow the run as Server-Sent Events.",
        },
        servers: [{ url: "/" }],
        components: { securitySchemes: SECURITY_SCHEMES },
      },
      transform: jsonSchemaTransform,
      transformObject: jsonSchemaTransformObject,
    });
  };
  const server = await createServer(services, pino({ level: "silent" }), {
    extend,
    addWire,
    wiresAtOnce: true,
  });
  await server.ready();
  const document = server.swagger();
  await server.close();
  return optionalDefaults(tidy(withAccess(described(document)))) as Document;
}

interface Answer {
  description: string;
  content?: Record<string, { schema: Node }>;
}
interface Operation {
  operationId?: string;
  requestBody?: { content: Record<string, { example?: unknown }> };
  responses: Record<string, Answer>;
  security?: object[];
}
type Paths = Record<string, Record<string, Operation>>;

const PROBLEM: Answer = {
  description: "Problem details (RFC 9457).",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

/** Adds the common parts of every operation: its name, the description of each status, and problems. */
function described(document: object): object {
  const { paths } = document as { paths: Paths };
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations)) {
      const { responses } = operation;
      const isStream = Object.values(responses).some(({ content = {} }) => EVENT_STREAM in content);
      const named = { operationId: operationId(method.toUpperCase(), path, isStream), ...operation };
      operations[method] = named;
      suggestBody(named);
      for (const [status, answer] of Object.entries(responses))
        answer.description = STATUS_CODES[status] ?? status;
      for (const { content } of Object.values(responses)) nameEvents(path, content?.[EVENT_STREAM]?.schema);
      responses.default = PROBLEM;
    }
  return document;
}

const EVENT_STREAM = "text/event-stream";

/** Example bodies for readers of /docs. */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  createThread: { title: "My first thread" },
  createThreadRun: { input: "Hello" },
  createTool: {
    name: "weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    callback_url: "https://tools.example.com/weather",
  },
};

function suggestBody({ operationId = "", requestBody }: Operation): void {
  const json = requestBody?.content["application/json"];
  if (json && operationId in EXAMPLES) json.example = EXAMPLES[operationId];
}

/** Names the schema of the `data` of each event in the routes of the native API. */
function nameEvents(path: string, schema: Node | undefined): void {
  if (!schema || isWirePath(path)) return;
  schema.contentMediaType = EVENT_STREAM;
  schema.contentSchema = { $ref: `#/components/schemas/${path === "/events" ? "UserEvent" : "StreamEvent"}` };
}

/** The ways in which a client can authenticate. A gateway in front of the server has its own rules. */
const SECURITY_SCHEMES = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "An API key (`AUTH=api_key`), or a JSON Web Token (`AUTH=jwt`).",
  },
  api_key: { type: "apiKey", in: "header", name: "X-API-Key", description: "An API key." },
  ticket: {
    type: "apiKey",
    in: "query",
    name: "ticket",
    description: "A ticket from `POST /tickets`, for one stream or file.",
  },
} as const;

/** Adds the required scope to every operation, from the server's own table. */
function withAccess(document: object): object {
  const { paths } = document as { paths: Paths };
  for (const [path, operations] of Object.entries(paths)) {
    const route = path.replace("{*}", "*").replace(/\{(\w+)\}/g, ":$1");
    for (const [method, operation] of Object.entries(operations)) {
      const access = accessOf(method.toUpperCase(), route);
      const named = { any: [], ticket: ["read"], manage: ["admin"] }[String(access)];
      const scopes = named ?? [access];
      operation.security = access === "public" ? [] : [{ bearer: scopes }, { api_key: scopes }];
      if (access === "ticket") operation.security.push({ ticket: [] });
    }
  }
  return document;
}

type Node = Record<string, unknown>;

/** Removes the generator's second name of a schema for requests if the two are equal. */
function tidy(document: object): object {
  const { components, paths } = document as { components: { schemas: Node }; paths: Node };
  const { schemas } = components;
  const sent = referencesIn(paths, schemas);
  for (const name of Object.keys(schemas)) if (!sent.has(name)) delete schemas[name];
  const renamed = new Map<string, string>();
  for (const name of Object.keys(schemas)) {
    const plain = name.replace(/Input$/, "");
    if (plain !== name && (!sent.has(plain) || isSame(schemas[name], schemas[plain])))
      renamed.set(name, plain);
  }
  const text = JSON.stringify(document)
    .replace(/"(#\/components\/schemas\/)(\w+)"/g, (_, path, name) => `"${path}${renamed.get(name) ?? name}"`)
    .replace(/"(minimum|maximum)":-?9007199254740991,?/g, "")
    .replaceAll("{*}", "{path}")
    .replaceAll('"name":"*"', '"name":"path"')
    .replaceAll(",}", "}");
  const tidied = JSON.parse(text) as typeof document & { components: { schemas: Node } };
  for (const [from, to] of renamed) {
    tidied.components.schemas[to] = tidied.components.schemas[from];
    delete tidied.components.schemas[from];
  }
  return tidied;
}

/**
 * Moves the default of an optional key into its description. Code generators would treat a key with a `default` as always
 * present, even in requests.
 */
function optionalDefaults<T>(node: T): T {
  if (typeof node !== "object" || node === null) return node;
  for (const each of Object.values(node)) optionalDefaults(each);
  const { properties, required = [] } = node as { properties?: Record<string, Node>; required?: string[] };
  if (typeof properties !== "object") return node;
  for (const [name, property] of Object.entries(properties)) {
    if (!("default" in property) || required.includes(name)) continue;
    const { default: value, description = "" } = property;
    delete property.default;
    property.description = `${description} Default: \`${JSON.stringify(value)}\`.`.trim();
  }
  return node;
}

/** The schemas of the data in streams. */
const STREAMED = ["StreamEvent", "UserEvent"];

/** Returns the schemas that the paths use, directly or indirectly, and those of streams. */
function referencesIn(paths: Node, schemas: Node): Set<string> {
  const found = new Set(STREAMED);
  const follow = (node: unknown) => {
    for (const [, name] of JSON.stringify(node).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (name === undefined || found.has(name)) continue;
      found.add(name);
      follow(schemas[name]);
    }
  };
  follow(paths);
  for (const name of STREAMED) follow(schemas[name]);
  return found;
}

const isSame = (a: unknown, b: unknown) =>
  JSON.stringify(a).replaceAll(/(\/\w+?)Input"/g, '$1"') === JSON.stringify(b);

if (import.meta.main) {
  for (const [name, fresh] of await generate()) {
    const file = new URL(`../${name}`, import.meta.url);
    if (!process.argv.includes("--check")) await writeFile(file, fresh);
    else if ((await readFile(file, "utf8").catch(() => "")) !== fresh) {
      console.error(`${name} is out of date. Run \`npm run openapi\` and commit it.`);
      process.exitCode = 1;
    }
  }
}
