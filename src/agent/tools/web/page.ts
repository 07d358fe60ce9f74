// Reads a web document as text.

import { isUtf8 } from "node:buffer";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import type { DocumentText, ReadJob } from "../../../lib/web-documents/job.ts";
import type { DocumentPool } from "../../../lib/web-documents/pool.ts";
import { type Asker, type GetResponse, type Hosts, type PublicGet, readBody } from "./get.ts";
import type { Robots } from "./robots.ts";

const MAX_BYTES = 10 * 1024 * 1024;

export interface WebPage extends DocumentText {
  /** The URL of the page after redirects. */
  readonly url: string;
}

export interface PageServices {
  readonly get: PublicGet;
  readonly hosts: Hosts;
  readonly pool: DocumentPool;
  /** If undefined, robots.txt is ignored. */
  readonly robots: Robots | undefined;
}

/** Reads a page. Throws a `FetchError`, a `DocumentError` or the reason of the asker's signal. */
export async function pageAt(
  url: URL,
  asker: Asker,
  { get, hosts, pool, robots }: PageServices,
): Promise<WebPage> {
  const before = async (each: URL) => {
    if (robots && !(await robots(each, asker)))
      throw new FetchError("forbidden", `the robots.txt of ${each.host} does not allow it`);
  };
  await using response = await get(url, { hosts, asker, before });
  const { status, url: last } = response;
  if (status < 200 || status > 299)
    throw new FetchError("unreadable", `the server answered with HTTP ${status}`);
  const job = await jobOf(response);
  return { ...(await pool.read(job, asker.turn, asker.signal)), url: last.href };
}

async function jobOf(response: GetResponse): Promise<ReadJob> {
  const [type = "", ...parameters] = (response.headers["content-type"] ?? "").split(";");
  const mediaType = type.trim().toLowerCase();
  const declared = kindOf(mediaType);
  if (declared === undefined && !UNTOLD.has(mediaType))
    throw new FetchError("unreadable", `it is ${shown(mediaType)}, and only text, HTML and PDF can be read`);
  const bytes = await readBody(response, MAX_BYTES);
  const kind = declared ?? guessed(bytes);
  if (kind === undefined) throw new FetchError("unreadable", "it is neither text nor HTML nor PDF");
  return { kind, bytes, charset: charsetOf(parameters), url: response.url.href };
}

/** The media types that servers send for files of an unknown type. */
const UNTOLD: ReadonlySet<string> = new Set(["", "application/octet-stream", "binary/octet-stream"]);
const TEXTS =
  /^(text\/.+|application\/(json|xml|javascript|x-javascript|ecmascript|yaml|x-yaml|toml|x-ndjson|jsonl|x-sh|sql|graphql|rtf|.+\+(json|xml|yaml)))$/;

function kindOf(mediaType: string): ReadJob["kind"] | undefined {
  if (mediaType === "text/html" || mediaType === "application/xhtml+xml") return "html";
  if (mediaType === "application/pdf") return "pdf";
  return TEXTS.test(mediaType) ? "text" : undefined;
}

function guessed(bytes: Uint8Array): ReadJob["kind"] | undefined {
  const start = Buffer.from(bytes.subarray(0, 512)).toString("latin1");
  if (start.startsWith("%PDF-")) return "pdf";
  if (/^\s*<(!doctype html|html)[\s>]/i.test(start)) return "html";
  return isUtf8(bytes) && !bytes.some((byte) => byte === 0) ? "text" : undefined;
}

function charsetOf(parameters: readonly string[]): string | undefined {
  const [, charset] =
    /^\s*charset\s*=\s*"?([\w:.-]+)/i.exec(parameters.find((each) => /charset/i.test(each)) ?? "") ?? [];
  return charset;
}

const shown = (mediaType: string) =>
  /^[\w.+-]{1,50}\/[\w.+-]{1,50}$/.test(mediaType) ? mediaType : "of an unknown type";
