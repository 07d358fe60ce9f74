// The media type of a file by its first bytes. Names and clients often give another one, and providers refuse what does not fit.

import type { Content, Part } from "../../protocol/message.ts";

type File = Exclude<Part, { type: "text" }>;

/** Each in base64 begins like this. */
const BEGINNINGS: readonly (readonly [beginning: RegExp, media_type: string])[] = [
  [/^iVBORw0KGg/, "image/png"],
  [/^\/9j\//, "image/jpeg"],
  [/^R0lGOD[dl]h/, "image/gif"],
  [/^UklGR.{6}XRUJQ/, "image/webp"],
  [/^JVBERi/, "application/pdf"],
];

/** Types that a file of other bytes is often given. */
const DOUBTFUL = /^(?:image\/|application\/(?:pdf|octet-stream)\b)/;

/** The content with the media types of images and PDFs as their bytes have it. What is not recognised stays as it is. */
export function typedByBytes(content: Content): Content {
  if (typeof content === "string") return content;
  const parts = content.map((part) => (part.type === "text" ? part : typed(part)));
  return parts.every((part, index) => part === content[index]) ? content : parts;
}

/** The media type that base64 data has by its bytes; `said` where they are not recognised. */
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
  // All others of the list are types of images.
  return { ...part, media_type: media_type as typeof part.media_type };
}
