// Extracts the text of a PDF, page by page.

import { getDocumentProxy } from "unpdf";
import { DocumentError, type DocumentText, documentText, MAX_TEXT } from "./job.ts";

const MAX_PAGES = 500;
/** The time after which no more pages are read, in milliseconds. */
const PAGES_MS = 5000;

export async function pdfText(bytes: Uint8Array): Promise<DocumentText> {
  const pdf = await opened(bytes);
  const title = await titleOf(pdf);
  const pages: string[] = [];
  let length = 0;
  const until = performance.now() + PAGES_MS;
  const isOpen = () => length <= MAX_TEXT && performance.now() < until;
  while (pages.length < Math.min(pdf.numPages, MAX_PAGES) && isOpen()) {
    const number = pages.length + 1;
    const text = await pageText(pdf, number);
    pages.push(`[page ${number}]\n\n${text}`);
    length += text.length;
  }
  if (length === 0) throw new DocumentError("has no text: its pages are probably images");
  return documentText(title, pages.join("\n\n"), pages.length < pdf.numPages);
}

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

async function opened(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(bytes, { verbosity: 0, disableFontFace: true });
  } catch (error) {
    if (error instanceof Error && error.name === "PasswordException")
      throw new DocumentError("is protected by a password");
    throw new DocumentError("is not a valid PDF", { cause: error });
  }
}

async function titleOf(pdf: Pdf): Promise<string> {
  const { info } = await pdf.getMetadata();
  return "Title" in info && typeof info.Title === "string" ? info.Title : "";
}

async function pageText(pdf: Pdf, number: number): Promise<string> {
  const page = await pdf.getPage(number);
  const { items } = await page.getTextContent();
  page.cleanup();
  return items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
}
