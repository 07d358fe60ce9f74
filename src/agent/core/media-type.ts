// Detects the media type of a file from its first bytes. Names and clients often give a wrong type, which providers reject.

import type { Content, Part } from "../../protocol/message.ts";

type File = Exclude<Part, { type: "text" }>;

/** How base64 data begins for each media type. */
const BEGINNINGS: readonly (readonly [beginning: RegExp, media_type: string])[] = [
  [/^iVBORw0KGg/, "image/png"],
  [/^\/9j\//, "image/jpeg"],
  [/^R0lGOD[dl]h/, "image/gif"],
  [/^UklGR.{6}XRUJQ/, "image/webp"],
  [/^JVBERi/, "application/pdf"],
];

/** Types that clients often declare for files of another type. */
const DOUBTFUL = /^(?:image\/|application\/(?:pdf|octet-stream)\b)/;

/**
 * Corrects the media types of images and PDFs in the content by their first bytes. Leaves unrecognized data
 * unchanged.
 */
export function typedByBytes(content: Content): Content {
  if (typeof content === "string") return content;
  const parts = content.map((part) => (part.type === "text" ? part : typed(part)));
  return parts.every((part, index) => part === content[index]) ? content : parts;
}

/**
 * Returns the media type that the first bytes of base64 data indicate, or `said` if they are not recognized.
 */
export function mediaTypeOf(data: string, said: string): string {
  const media_type = said.toLowerCase();
  return (DOUBTFUL.test(media_type) && typeByBytes(data)) || media_type;
}

const typeByBytes = (data: string) => BEGINNINGS.find(([beginning]) => beginning.test(data))?.[1];

function typed(part: File): Part {
  const media_type = typeByBytes(part.data);
  if (media_type === undefined || media_type === part.media_type || !DOUBTFUL.test(part.media_type))
    return part;
  if (part.type === "file") return { ...part, media_type };
  if (media_type === "application/pdf") return { type: "file", media_type, data: part.data };
  // All other types in the list are image types.
  return { ...part, media_type: media_type as typeof part.media_type };
}
