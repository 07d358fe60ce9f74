// The page: files built by script/page.ts, the same for every user.

import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../../agent/core/errors.ts";
import { packageRoot } from "../../../lib/paths.ts";
import type { SignInOptions } from "../../auth/sign-in.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

/**
 * Stricter than the policy of the API reference: allows only the server's own files, and turns no string into HTML or
 * script.
 */
const contentPolicy = (connections: readonly string[]) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "manifest-src 'self'",
    // The frame that draws diagrams has its own policy, `diagramPolicy`.
    "frame-src 'self'",
    `connect-src ${["'self'", ...connections].join(" ")}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");

/**
 * The policy of the frame that draws diagrams. It allows the scripts of its HTML and no requests. Mermaid sets styles
 * inline. The frame has no origin, so it cannot use the page's storage or credentials, even if a user opens it
 * directly.
 */
const diagramPolicy = (html: string) =>
  [
    "default-src 'none'",
    `script-src ${[...html.matchAll(SCRIPT)].map(([, script = ""]) => `'sha256-${hash("sha256", script, "base64")}'`).join(" ")}`,
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    "sandbox allow-scripts",
  ].join("; ");

const SCRIPT = /<script>([\s\S]*?)<\/script>/g;

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  webmanifest: "application/manifest+json",
};

/** One year, in seconds. The file name changes with the content. */
const IMMUTABLE = "public, max-age=31536000, immutable";

const FOLDER = new URL("dist/page/", packageRoot);

type Assets = ReadonlyMap<string, Asset>;
interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzip: Buffer;
  /** The content security policy of a document that the page shows in a frame. */
  readonly policy?: string;
}

/** Serves `GET /` and the files that it references. If the page is not built, `/` redirects to the API reference. */
export function pageRoutes(
  app: App,
  { page: isOn }: HttpServices,
  signIn: () => Promise<SignInOptions>,
): void {
  const schema = { hide: true };
  const find = assetFinder();

  app.get("/", { schema }, async (request, reply) => {
    const page = isOn ? await find("index.html") : undefined;
    if (!page) return reply.redirect("docs");
    reply.header("content-security-policy", contentPolicy(await issuerOf(signIn)));
    return send(page, "no-cache", request, reply);
  });
  app.get<{ Params: { asset: string } }>("/page/:asset", { schema }, async (request, reply) => {
    const { asset: name } = request.params;
    const asset = isOn && name !== "index.html" ? await find(name) : undefined;
    if (!asset) throw new AppError("not_found", `The page has no file \`${name}\`.`);
    if (asset.policy !== undefined)
      reply.header("content-security-policy", asset.policy).header("x-frame-options", "SAMEORIGIN");
    return send(asset, IMMUTABLE, request, reply);
  });
}

/**
 * Returns the origin from which the page fetches tokens. If the issuer does not respond, users cannot sign in on the
 * page, but it works with an existing token.
 */
async function issuerOf(signIn: () => Promise<SignInOptions>): Promise<string[]> {
  const { oidc } = await signIn().catch(() => ({ oidc: undefined }));
  return oidc ? [new URL(oidc.token_endpoint).origin] : [];
}

function send({ type, plain, gzip }: Asset, caching: string, request: FastifyRequest, reply: FastifyReply) {
  reply.type(type).header("cache-control", caching).header("vary", "accept-encoding");
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(request.headers["accept-encoding"] ?? "");
  return takesGzip ? reply.header("content-encoding", "gzip").send(gzip) : reply.send(plain);
}

/**
 * Reads the files again after a new build, because `npm run dev` builds while the server runs. There are about 110
 * files, 5 MB in total.
 */
function assetFinder(): (name: string) => Promise<Asset | undefined> {
  let [assets, builtAt]: [Assets, number] = [new Map(), 0];
  return async (name) => {
    // Only index.html keeps its name when its content changes.
    if (name !== "index.html" && assets.has(name)) return assets.get(name);
    try {
      const { mtimeMs } = await stat(new URL("index.html", FOLDER));
      if (mtimeMs !== builtAt) [assets, builtAt] = [builtPage(), mtimeMs];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    return assets.get(name);
  };
}

function builtPage(): Assets {
  const names = readdirSync(FOLDER).filter((name) => !name.endsWith(".gz"));
  return new Map(names.map((name) => [name, assetOf(name)]));
}

function assetOf(name: string): Asset {
  const read = (file: string) => readFileSync(new URL(file, FOLDER));
  const plain = read(name);
  return {
    type: TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    plain,
    gzip: read(`${name}.gz`),
    ...(name.startsWith("diagram-") && name.endsWith(".html") && { policy: diagramPolicy(plain.toString()) }),
  };
}
