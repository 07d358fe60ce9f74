// The thread that reads untrusted documents. `pool.ts` starts it, and ends it if a document takes too long or needs too
// much memory.

import { parentPort } from "node:worker_threads";
import { decoded } from "./charset.ts";
import { DocumentError, type DocumentText, documentText, type Job, type JobReply } from "./job.ts";

parentPort?.on("message", async (job: Job) => parentPort?.postMessage(await replyTo(job)));

async function replyTo(job: Job): Promise<JobReply> {
  try {
    return { answer: await answerOf(job) };
  } catch (error) {
    return { fault: error instanceof DocumentError ? error.message : "cannot be read" };
  }
}

async function answerOf(job: Job): Promise<DocumentText | boolean> {
  switch (job.kind) {
    case "text":
      return documentText("", decoded(job.bytes, job.charset));
    case "html": {
      const { htmlText } = await import("./html.ts");
      return htmlText(decoded(job.bytes, job.charset), job.url);
    }
    case "pdf": {
      const { pdfText } = await import("./pdf.ts");
      return pdfText(job.bytes);
    }
    case "robots": {
      // The package's type declarations describe a different kind of module.
      const { default: robotsParser } = (await import("robots-parser")) as unknown as RobotsParser;
      return (
        robotsParser(new URL("/robots.txt", job.url).href, job.text).isAllowed(job.url, job.agent) ?? true
      );
    }
  }
}

interface RobotsParser {
  default(url: string, text: string): { isAllowed(url: string, agent: string): boolean | undefined };
}
