// Converts files from users and tools to text, for providers that accept only images and PDFs.

import type { Part } from "../core/message.ts";

type FilePart = Extract<Part, { type: "file" }>;

const TEXTUAL = /^text\/|[/+](json|xml|yaml|toml|csv|javascript|typescript|x-sh|sql|graphql)\b/;

export const isPdf = (part: FilePart) => part.media_type === "application/pdf";
export const nameOf = (part: FilePart) => part.name ?? (isPdf(part) ? "document.pdf" : "file");

/** Returns the content of a text file, or a line that explains why the file cannot be shown. */
export function fileText(part: FilePart): string {
  const name = nameOf(part);
  if (!TEXTUAL.test(part.media_type)) return `[${name}: a file of type ${part.media_type} cannot be shown]`;
  const content = Buffer.from(part.data, "base64").toString("utf8");
  return `<file name="${name}">\n${content}\n</file>`;
}
