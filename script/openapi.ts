// Writes openapi.yaml from the routes' own schemas. With --check it only tells whether the file is up to date.

import { readFile, writeFile } from "node:fs/promises";
import swagger from "@fastify/swagger";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { pino } from "pino";
import { stringify } from "yaml";
import packageJson from "../package.json" with { type: "json" };
import { createServer } from "../src/http/server.ts";
import type { HttpServices } from "../src/http/services.ts";

const FILE = new URL("../openapi.yaml", import.meta.url);

/** The contract as YAML. Routes are registered, never called: they get no services. */
export async function generate(): Promise<string> {
  const services = { limits: {}, stores: {}, agents: {} } as unknown as HttpServices;
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
      },
      transform: jsonSchemaTransform,
      transformObject: jsonSchemaTransformObject,
    });
  });
  await server.ready();
  const document = server.swagger();
  await server.close();
  return stringify(withProblems(document), { aliasDuplicateObjects: false, lineWidth: 110 });
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

if (import.meta.main) {
  const fresh = await generate();
  if (!process.argv.includes("--check")) await writeFile(FILE, fresh);
  else if ((await readFile(FILE, "utf8").catch(() => "")) !== fresh) {
    console.error("openapi.yaml is out of date. Run `npm run openapi` and commit it.");
    process.exit(1);
  }
}
