// Files as parts of a message, and back.

import type { Part } from "./wire.ts";

type Attachment = Exclude<Part, { type: "text" }>;
type ImageType = Extract<Part, { type: "image" }>["media_type"];

/** The images that models see; another file is a part of type `file`. */
const IMAGES: ReadonlySet<string> = new Set<ImageType>([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
]);
/** A call takes only so many arguments. */
const CHUNK = 0x8000;

/** A file for `messages`. Throws `TypeError` for an empty one, which no model takes. */
export async function partOf(file: Blob, name?: string): Promise<Attachment> {
  if (file.size === 0) throw new TypeError("The file is empty.");
  const media_type = file.type || "application/octet-stream";
  const data = toBase64(new Uint8Array(await file.arrayBuffer()));
  if (IMAGES.has(media_type)) return { type: "image", media_type: media_type as ImageType, data };
  return { type: "file", media_type, data, ...(name ? { name } : {}) };
}

/** The bytes of an attachment. */
export function blobOf({ data, media_type: type }: Attachment): Blob {
  return new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type });
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK)
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}
