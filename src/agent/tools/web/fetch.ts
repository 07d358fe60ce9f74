// The tool that reads a web page.

import { z } from "zod";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import { httpUrl } from "../../../lib/ssrf-safe-fetch/index.ts";
import { firstChars } from "../../../lib/text.ts";
import { DocumentError } from "../../../lib/web-documents/job.ts";
import { type DoneResult, defineTool, done, failed, type Run, type Tool } from "../../core/tool.ts";
import { framed } from "./others-words.ts";
import { type PageServices, pageAt, type WebPage } from "./page.ts";
import { secretIn } from "./secrets.ts";

/** The eviction hook would move longer results to a file. */
const MAX_CHARS = 60_000;

/** Creates the tool. `limitMs` is the maximum time of a call. */
export function webFetch(services: PageServices, limitMs: number): Tool {
  return defineTool({
    name: "web_fetch",
    description:
      "Reads a page, a PDF or a text file on the web, and returns it as Markdown or text. Long documents are returned in parts: to continue reading, call it again with `offset`.",
    parameters: z.object({
      url: z.string().min(1).max(4000).describe("Address that begins with https:// or http://."),
      max_chars: z
        .int()
        .min(100)
        .max(MAX_CHARS)
        .default(20_000)
        .describe("Maximum number of characters to return."),
      offset: z.int().min(0).default(0).describe("Number of characters to skip."),
    }),
    // The tool changes nothing, but other people can read the URL that it requests.
    annotations: { readOnly: true, category: "network" },
    describeCall: ({ url }) => `read ${url}`,
    async execute({ url, max_chars, offset }, _call, run) {
      const secret = secretIn(url);
      if (secret !== undefined)
        return failed(`The URL contains ${secret}. Every server on the way to a page can read its URL.`);
      const page = await read(url, run, services, limitMs);
      return "status" in page ? page : { ...done(shown(page, offset, max_chars)), sources: [sourceOf(page)] };
    },
  });
}

async function read(
  address: string,
  run: Run,
  services: PageServices,
  limitMs: number,
): Promise<WebPage | DoneResult> {
  const deadline = AbortSignal.timeout(limitMs);
  const signal = AbortSignal.any([run.signal, deadline]);
  try {
    return await pageAt(httpUrl(address), { turn: run.owner.tenant, signal }, services);
  } catch (error) {
    if (run.signal.aborted) throw error;
    if (deadline.aborted) return failed(`The page could not be read within ${limitMs / 1000} s.`);
    if (error instanceof FetchError) return failed(`The page could not be read: ${error.message}.`);
    if (error instanceof DocumentError) return failed(`The document ${error.message}.`);
    throw error;
  }
}

const sourceOf = ({ url, title }: WebPage) => (title === "" ? { url } : { url, title });

function shown({ url, title, text, isCut }: WebPage, offset: number, maxChars: number): string {
  if (offset > 0 && offset >= text.length) return `The text has only ${text.length} characters.`;
  const part = firstChars(text.slice(offset), maxChars);
  const end = offset + part.length;
  const page = framed("web_page", { url, title }, part.trim() === "" ? "(no text)" : part);
  if (end < text.length)
    return `${page}\nThese are the characters ${offset} to ${end} of ${text.length}. Read on with \`offset\`: ${end}.`;
  return isCut ? `${page}\nThe rest of the document is too long to read.` : page;
}
