// Converts files to message parts and back.

import type { Part } from "./wire.ts";

type Attachment = Exclude<Part, { type: "text" }>;
type ImageType = Extract<Part, { type: "image" }>["media_type"];

/** The image types that models accept. All other files become parts of type `file`. */
const IMAGES: ReadonlySet<string> = new Set<ImageType>([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
]);
/** The number of bytes per call of `String.fromCharCode`, because a call accepts a limited number of arguments. */
const CHUNK = 0x8000;

/** Converts a file to a part for `messages`. Throws `TypeError` for an empty file, because no model accepts one. */
export async function partOf(file: Blob, name?: string): Promise<Attachment> {
  if (file.size === 0) throw new TypeError("The file is empty. Models accept only files with content.");
  const media_type = file.type || "application/octet-stream";
  const data = toBase64(new Uint8Array(await file.arrayBuffer()));
  if (IMAGES.has(media_type)) return { type: "image", media_type: media_type as ImageType, data };
  return { type: "file", media_type, data, ...(name ? { name } : {}) };
}

/** Returns the bytes of an attachment. */
export function blobOf({ data, media_type: type }: Attachment): Blob {
  return new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type });
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK)
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}
