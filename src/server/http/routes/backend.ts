// The user's backend for an agent: its status and its files.

import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import {
  type Backend,
  type BackendConfig,
  BackendStatus,
  type FileStat,
} from "../../../agent/core/backend.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { serially } from "../../../lib/async.ts";
import { isInside } from "../../../lib/paths.ts";
import { ownerOf } from "../../auth/guard.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { arrived, preconditionIn, requireVersion, versionOf } from "../file-versions.ts";
import { liftDeadline, slowBody } from "../request-timeout.ts";
import type { HttpServices } from "../services.ts";
import { credentialsEnd } from "../sse.ts";
import type { App } from "../validation.ts";

const AgentQuery = z.strictObject({
  agent: z.string().max(64).optional().describe("Default: the first agent."),
});
const ReadQuery = AgentQuery.extend({
  ticket: z
    .string()
    .max(8192)
    .optional()
    .describe("Ticket from `POST /tickets`, for links, which cannot send headers."),
});
const FileParams = z.object({ "*": z.string().max(4096) });
const Entry = z
  .object({
    name: z.string(),
    path: z
      .string()
      .describe(
        "Path from the root of the sandbox. Routes accept these paths as well as paths relative to the workspace.",
      ),
    type: z.enum(["file", "directory", "symlink", "other"]),
    size: z.int().describe("Size in bytes."),
    modified_at: z.iso.datetime(),
  })
  .meta({ id: "FileEntry" });
// Documented as a string but sent as a stream, which bypasses the serializer.
const Binary = z.string().describe("The bytes of the file.") as unknown as z.ZodType<Readable>;
const WriteHeaders = z.looseObject({
  "if-match": z
    .string()
    .max(1024)
    .optional()
    .describe("`ETag` from an earlier read: write only if the file has not changed since."),
  "if-none-match": z.string().max(1024).optional().describe("`*`: write only if the file does not exist."),
});
const tags = ["backend"];

export function backendRoutes(app: App, services: HttpServices): void {
  const { backends, agents } = services;

  const configOf = (agent: string | undefined): BackendConfig => {
    const definition = agents.find(agent);
    if (definition.backend) return definition.backend;
    throw new AppError("not_found", `Agent \`${definition.name}\` has no backend.`);
  };

  app.get(
    "/backend",
    {
      schema: {
        summary: "Get the status of the user's backend without starting it",
        tags,
        querystring: AgentQuery,
        response: { 200: BackendStatus },
      },
    },
    async (request) => backends.status(ownerOf(request), configOf(request.query.agent)),
  );

  for (const action of ["start", "stop", "restart"] as const) {
    app.post(
      `/backend/${action}`,
      {
        schema: {
          summary: SUMMARIES[action],
          tags,
          querystring: AgentQuery,
          response: { 200: BackendStatus },
        },
      },
      async (request) => {
        const owner = ownerOf(request);
        const config = configOf(request.query.agent);
        if (action !== "start") await backends.stop(owner, config);
        return action === "stop" ? backends.status(owner, config) : backends.start(owner, config);
      },
    );
  }

  void app.register(async (scope) => fileRoutes(withRawBodies(scope), services, configOf));
}

const SUMMARIES = {
  start: "Start the backend",
  stop: "Stop the backend and keep its files",
  restart: "Restart the backend",
};

function fileRoutes(
  app: App,
  { access, backends, limits }: HttpServices,
  configOf: (agent?: string) => BackendConfig,
) {
  const inTurn = serially();
  const schema = { tags, params: FileParams, querystring: AgentQuery };
  const backendOf = (request: Parameters<typeof ownerOf>[0], agent: string | undefined) =>
    backends.get(ownerOf(request), configOf(agent));

  app.get(
    "/backend/files/*",
    {
      // A HEAD request would read the file.
      exposeHeadRoute: false,
      schema: {
        ...schema,
        querystring: ReadQuery,
        summary: "Read a file or a byte range, or list a folder",
        response: {
          200: {
            content: {
              "application/json": { schema: z.object({ items: z.array(Entry) }) },
              "application/octet-stream": { schema: Binary },
            },
          },
          206: { content: { "application/octet-stream": { schema: Binary } } },
        },
      },
    },
    async (request, reply) => {
      const backend = await backendOf(request, request.query.agent);
      const left = clientDisconnect(reply);
      const path = pathOf(request.params, backend);
      const stat = await backend.stat(path, left);
      if (stat.type === "directory") return { items: (await backend.list(path, left)).map(entryOf) };
      const { etag, bytes } = await versionOf(backend, stat, left);
      const size = bytes?.length ?? stat.size;
      const range = byteRange(request.headers.range, size);
      fileHeaders(reply, stat);
      const { offset, length } = range ?? { offset: 0, length: size };
      reply.header("etag", etag).header("content-length", length);
      if (range) reply.code(206).header("content-range", `bytes ${offset}-${offset + length - 1}/${size}`);
      if (bytes) return reply.send(sent([bytes.subarray(offset, offset + length)]));
      return reply.send(sent(backend.read(path, range ?? {}, left)));
    },
  );

  app.get("/backend/files", { schema: { hide: true, querystring: AgentQuery } }, async (request, reply) => {
    const backend = await backendOf(request, request.query.agent);
    const entries = await backend.list(backend.workdir, clientDisconnect(reply));
    return { items: entries.map(entryOf) };
  });

  app.put(
    "/backend/files/*",
    {
      bodyLimit: limits.uploadBytes,
      schema: {
        ...schema,
        summary: "Write a file atomically from the request body",
        headers: WriteHeaders,
        response: { 201: z.object({ path: z.string(), bytes_written: z.int() }) },
      },
    },
    async (request, reply) => {
      const backend = await backendOf(request, request.query.agent);
      const path = pathOf(request.params, backend);
      // The content type parser of these routes passes the body on as a stream.
      const body = bounded(
        slowBody(
          request.body as unknown as Readable,
          limits.requestMs,
          credentialsEnd(access.credentials, reply),
        ),
        limits.uploadBytes,
      );
      const left = clientDisconnect(reply);
      const expected = preconditionIn(request.headers);
      const write = async (data: AsyncIterable<Uint8Array>) => {
        if (expected) await requireVersion(backend, path, expected, left);
        return backend.write(path, data, left);
      };
      const { tenant, user } = ownerOf(request);
      const data = expected ? await arrived(body) : body;
      const bytes_written = expected
        ? await inTurn(JSON.stringify([tenant, user, path]), () => write(data))
        : await write(data);
      return reply.code(201).send({ path, bytes_written });
    },
  );

  app.delete(
    "/backend/files/*",
    {
      schema: {
        ...schema,
        summary: "Delete a file or a folder with its contents",
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const backend = await backendOf(request, request.query.agent);
      await backend.remove(pathOf(request.params, backend), clientDisconnect(reply));
      return reply.code(204).send(null);
    },
  );
}

/** Passes bodies of any content type except forms on as streams, so back-pressure reaches the client. */
function withRawBodies(scope: App): App {
  (scope as unknown as FastifyInstance).removeAllContentTypeParsers();
  scope.addContentTypeParser("multipart/form-data", (_request, _payload, done) => {
    const message = "The body is a form (`multipart/form-data`). Send the file's bytes as the body instead.";
    done(new AppError("unsupported_media_type", message));
  });
  scope.addContentTypeParser("*", (_request, payload, done) => {
    liftDeadline(payload);
    done(null, payload);
  });
  return scope;
}

/** Returns a path relative to the workspace, or an absolute path as in listings. */
function pathOf({ "*": path }: { "*": string }, { workdir }: Backend): string {
  return isInside(workdir, `/${path}`) ? `/${path}` : `${workdir}/${path}`;
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

const entryOf = (stat: FileStat) => ({ name: nameOf(stat.path), ...stat });

function fileHeaders(
  reply: { header(name: string, value: string): unknown },
  { path, modified_at }: FileStat,
): void {
  const name = encodeURIComponent(nameOf(path));
  reply.header("content-type", "application/octet-stream");
  // A browser must never render an agent's file under this server's origin.
  reply.header("content-disposition", `attachment; filename*=UTF-8''${name}`);
  reply.header("accept-ranges", "bytes");
  reply.header("last-modified", new Date(modified_at).toUTCString());
}

/** Reads as fast as the client does and stops when the client disconnects. */
const sent = (bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) =>
  Readable.from(bytes, { objectMode: false });

async function* bounded(body: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > most) throw new AppError("payload_too_large", `A file can have at most ${most} bytes.`);
    yield chunk;
  }
}

/**
 * Reads the Range header (RFC 9110, §14). Returns the requested bytes of a file of `size` bytes. Returns undefined if
 * there is no range, and for optional features (several ranges, other units). Throws `range_not_satisfiable`.
 */
export function byteRange(
  header: string | undefined,
  size: number,
): { offset: number; length: number } | undefined {
  const parts = /^bytes=(?<first>\d{0,15})-(?<last>\d{0,15})$/.exec(header ?? "")?.groups;
  if (!parts || (parts.first === "" && parts.last === "")) return undefined;
  const suffix = parts.first === "";
  const offset = suffix ? Math.max(0, size - Number(parts.last)) : Number(parts.first);
  const end = suffix || parts.last === "" ? size - 1 : Math.min(Number(parts.last), size - 1);
  if (offset > end || offset >= size)
    throw new AppError(
      "range_not_satisfiable",
      `The range \`${header}\` lies outside the file, which has ${size} bytes.`,
    );
  return { offset, length: end - offset + 1 };
}
