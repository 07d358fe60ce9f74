// Calls of the web tools in a run, and documents for them.

import { onTestFinished } from "vitest";
import { toolMessages } from "../../../../src/agent/core/message.ts";
import { createWebTools, type WebOptions } from "../../../../src/agent/tools/web/index.ts";
import { play } from "../../../support/agent.ts";
import type { LocalServer } from "../../../support/hostile.ts";

export const AGENT = "Skein/1.2.3 (+https://skein.example)";
// A hostile page takes seconds on a busy machine. Tests of these limits pass their own.
const LIMITS = { call: 240_000, document: 120_000 };

/** Lets agents read this server's private address. */
export const allowing = (...servers: LocalServer[]): Partial<WebOptions> => ({
  private: servers.map(({ port }) => `127.0.0.1:${port}`).join(","),
});

export function toolsWith(options: Partial<WebOptions>, limits: Partial<typeof LIMITS> = {}) {
  const settings: WebOptions = { deny: [], private: "", robots: "ignore", ...options };
  const web = createWebTools(settings, AGENT, { ...LIMITS, ...limits });
  onTestFinished(() => web.close());
  return web.tools;
}

/** The text of the call's result, and its error. */
export async function called(
  tools: ReturnType<typeof toolsWith>,
  tool: string,
  args: Record<string, unknown>,
) {
  const { messages } = await play({ tools, script: [{ call: [{ tool, args }] }, { say: "ok" }] });
  const [result] = toolMessages(messages);
  return { text: String(result?.content), error: result?.error, sources: result?.sources };
}

export const readPage = (server: LocalServer, path = "/", args: Record<string, unknown> = {}) =>
  called(toolsWith(allowing(server)), "web_fetch", { url: server.url + path, ...args });

/** A PDF with a page for each text. */
export function pdfOf(...texts: readonly string[]): Buffer {
  const stream = (text: string) => `BT /F1 12 Tf 20 100 Td (${text}) Tj ET`;
  const kids = texts.map((_, index) => `${4 + 2 * index} 0 R`).join(" ");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${texts.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...texts.flatMap((text, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents ${5 + 2 * index} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      `<< /Length ${stream(text).length} >>\nstream\n${stream(text)}\nendstream`,
    ]),
  ];
  let body = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const offset = body.length;
    body += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(offset).padStart(10, "0")} 00000 n \n`;
  });
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join("")}`;
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF`;
  return Buffer.from(body + table + trailer, "latin1");
}
