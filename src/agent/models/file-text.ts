// Files that a user or a tool hands to the model, where the provider takes images and PDFs only.

import type { Part } from "../core/message.ts";

type FilePart = Extract<Part, { type: "file" }>;

const TEXTUAL = /^text\/|[/+](json|xml|yaml|toml|csv|javascript|typescript|x-sh|sql|graphql)\b/;

export const isPdf = (part: FilePart) => part.media_type === "application/pdf";
export const nameOf = (part: FilePart) => part.name ?? (isPdf(part) ? "document.pdf" : "file");

/** The file as text that the model can read: its content, or a line that says that it cannot be shown. */
export function fileText(part: FilePart): string {
  const name = nameOf(part);
  if (!TEXTUAL.test(part.media_type)) return `[${name}: a file of type ${part.media_type} cannot be shown]`;
  const content = Buffer.from(part.data, "base64").toString("utf8");
  return `<file name="${name}">\n${content}\n</file>`;
}
