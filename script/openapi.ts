// Writes openapi.yaml from the routes' own schemas. With --check it only tells whether the file is up to date.

import { readFile, writeFile } from "node:fs/promises";
import swagger from "@fastify/swagger";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { pino } from "pino";
import { stringify } from "yaml";
import packageJson from "../package.json" with { type: "json" };
import { OwnRuleSpec } from "../src/hooks/permissions/rule.ts";
import { AuthConfig } from "../src/http/auth/config.ts";
import { accessOf } from "../src/http/auth/scopes.ts";
import { createServer } from "../src/http/server.ts";
import type { HttpServices } from "../src/http/services.ts";
import { WireName } from "../src/http/wires/names.ts";

const FILE = new URL("../openapi.yaml", import.meta.url);

/** The contract as YAML. Routes are registered, never called: they get no services. */
export async function generate(): Promise<string> {
  const access = { auth: AuthConfig.parse({}), origins: [] };
  const services = {
    access,
    permissionRule: OwnRuleSpec,
    limits: { requestMs: 60_000 },
    stores: {},
    agents: {},
    wires: WireName.options,
  } as unknown as HttpServices;
  const server = await createServer(services, pino({ level: "silent" }), async (bare) => {
    await bare.register(swagger, {
      openapi: {
        openapi: "3.1.0",
        info: {
          title: "Skein",
          version: packageJson.version,
          description:
            "A multi-tenant agent server: POST messages to a thread, follow the run as Server-Sent Events.",
        },
        servers: [{ url: "http://127.0.0.1:8000" }],
        components: { securitySchemes: SECURITY_SCHEMES },
      },
      transform: jsonSchemaTransform,
      transformObject: jsonSchemaTransformObject,
    });
  });
  await server.ready();
  const document = server.swagger();
  await server.close();
  return stringify(tidy(withAccess(withProblems(document))), {
    aliasDuplicateObjects: false,
    lineWidth: 110,
  });
}

/** Every operation may answer with a problem; said once here instead of in every route. */
function withProblems(document: object): object {
  const { paths = {} } = document as {
    paths?: Record<string, Record<string, { responses: Record<string, unknown> }>>;
  };
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path)))
    operation.responses.default = {
      description: "A problem (RFC 9457).",
      content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
    };
  return document;
}

/** What a client may send to say who it is. A gateway in front of a server asks for what it likes. */
const SECURITY_SCHEMES = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "An API key (`AUTH=api_key`), or a JSON Web Token (`AUTH=jwt`).",
  },
  api_key: { type: "apiKey", in: "header", name: "X-API-Key", description: "An API key." },
  ticket: { type: "apiKey", in: "query", name: "ticket", description: "Of `POST /tickets`, for one stream." },
} as const;

/** Every operation tells the scope that it takes, by the table that the server itself goes by. */
function withAccess(document: object): object {
  const { paths } = document as { paths: Record<string, Record<string, { security?: object[] }>> };
  for (const [path, operations] of Object.entries(paths)) {
    const route = path.replace("{*}", "*").replace(/\{(\w+)\}/g, ":$1");
    for (const [method, operation] of Object.entries(operations)) {
      const access = accessOf(method.toUpperCase(), route);
      const scope = access === "stream" ? "read" : access;
      operation.security = scope === "public" ? [] : [{ bearer: [scope] }, { api_key: [scope] }];
      if (access === "stream") operation.security.push({ ticket: [] });
    }
  }
  return document;
}

type Node = Record<string, unknown>;

/** The wire has one name for a thing: the generator's second one for what is sent goes, where nothing differs. */
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

/** What comes as the data of a stream. */
const STREAMED = ["StreamEvent", "UserEvent"];

/** The schemas that the paths use, directly or not, and those of streams. */
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
  const fresh = await generate();
  if (!process.argv.includes("--check")) await writeFile(FILE, fresh);
  else if ((await readFile(FILE, "utf8").catch(() => "")) !== fresh) {
    console.error("openapi.yaml is out of date. Run `npm run openapi` and commit it.");
    process.exit(1);
  }
}
