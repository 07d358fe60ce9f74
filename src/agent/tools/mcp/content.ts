// Converts a server's response to content for threads and models. Limits the size, and detects types from the bytes instead
// of trusting the declared types.

import { isUtf8 } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import type { CallToolResult } from "@modelcontextprotocol/client";
import type { Mask } from "../../../lib/mask.ts";
import { firstChars, lastChars } from "../../../lib/text.ts";
import type { Content, Part } from "../../core/message.ts";
import { done, failed, type ToolResult } from "../../core/tool.ts";

type Block = CallToolResult["content"][number];
type Resource = Extract<Block, { type: "resource" }>["resource"];

/**
 * The maximum number of characters of all text in one result. Only the beginning and the end of longer text
 * are kept.
 */
const MAX_TEXT = 400_000;
const MAX_PARTS = 100;
/** The maximum number of base64 characters in one image or file, which is the most that providers accept. */
const MAX_MEDIA = 5_000_000;
/** The maximum number of base64 characters of all images and files together. */
const MAX_ALL_MEDIA = 12_000_000;

export function resultOf(result: CallToolResult, mask: Mask): ToolResult {
  const blocks = result.content.slice(0, MAX_PARTS);
  const parts = blocks.flatMap(partsOf);
  if (result.structuredContent !== undefined && !says(blocks, result.structuredContent))
    parts.push(text(JSON.stringify(result.structuredContent)));
  const missing = result.content.length - blocks.length;
  if (missing > 0) parts.push(text(`[${missing} more parts left out]`));
  const output = bounded(parts, mask);
  if (!result.isError) return done(output);
  if (typeof output !== "string") return failed("The tool reports an error.", output);
  return failed(output.trim() === "" ? "The tool failed without giving a reason." : output);
}

const text = (content: string): Part => ({ type: "text", text: content });

function partsOf(block: Block): Part[] {
  switch (block.type) {
    case "text":
      return [text(block.text)];
    case "image":
    case "audio":
      return [media(block.data, block.mimeType, block.type)];
    case "resource_link": {
      const { name, uri, mimeType, description } = block;
      const about = [mimeType, description].filter(Boolean).join(", ");
      return [text(`[${name}: ${uri}${about && ` (${about})`}]`)];
    }
    case "resource":
      return resourceParts(block.resource);
    default:
      return [text("[a part of an unknown type]")];
  }
}

function resourceParts(resource: Resource): Part[] {
  const { uri, mimeType } = resource;
  if ("text" in resource) return [text(`<resource uri="${uri}">\n${resource.text}\n</resource>`)];
  return [text(`[${uri}]`), media(resource.blob, mimeType ?? "application/octet-stream", fileName(uri))];
}

const fileName = (uri: string) => /[^/?#]+(?=[?#]|$)/.exec(uri)?.[0] ?? "file";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Returns an image, a file, text that was sent as a file, or a line that explains why the data is unusable.
 */
function media(data: string, declared: string, name: string): Part {
  const packed = data.replace(/\s+/g, "");
  if (packed === "" || packed.length % 4 !== 0 || !BASE64.test(packed))
    return text(`[${name}: is not in base64]`);
  if (packed.length > MAX_MEDIA)
    return text(`[${name}: left out, ${Math.round(packed.length * 0.75)} bytes are too many]`);
  const bytes = Buffer.from(packed, "base64");
  const start = bytes.toString("latin1", 0, 16);
  const image = IMAGES.find(([, begins]) => begins(start))?.[0];
  if (image) return { type: "image", media_type: image, data: packed };
  // Providers reject a whole request that contains an invalid PDF.
  if (start.startsWith("%PDF-")) return { type: "file", media_type: "application/pdf", data: packed, name };
  if (isUtf8(bytes)) return text(bytes.toString("utf8"));
  const media_type = /^(audio|image|video)\/[\w.-]+$/.test(declared) ? declared : "application/octet-stream";
  return { type: "file", media_type, data: packed, name };
}

const IMAGES = [
  ["image/png", (start: string) => start.startsWith("\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (start: string) => start.startsWith("\xff\xd8\xff")],
  ["image/gif", (start: string) => /^GIF8[79]a/.test(start)],
  ["image/webp", (start: string) => /^RIFF[\s\S]{4}WEBP/.test(start)],
] as const;

/**
 * True if the text blocks repeat the structured content. Servers also send it as text, for clients that do
 * not support structured content.
 */
function says(blocks: readonly Block[], structured: unknown): boolean {
  return blocks.some((block) => {
    if (block.type !== "text" || block.text.length > MAX_TEXT) return false;
    try {
      return isDeepStrictEqual(JSON.parse(block.text), structured);
    } catch {
      return false;
    }
  });
}

function bounded(parts: readonly Part[], mask: Mask): Content {
  let textLeft = MAX_TEXT;
  let mediaLeft = MAX_ALL_MEDIA;
  const kept = parts.flatMap((part): Part[] => {
    if (part.type === "text") {
      const shown = shortened(mask(part.text.toWellFormed()), textLeft);
      textLeft -= shown.length;
      return shown === "" ? [] : [text(shown)];
    }
    mediaLeft -= part.data.length;
    return mediaLeft >= 0
      ? [part]
      : [text(`[${part.media_type}: left out, because the result is too large]`)];
  });
  if (!kept.every((part) => part.type === "text")) return kept;
  return kept.map((part) => part.text).join("\n");
}

const MARK = 100;

function shortened(long: string, most: number): string {
  if (long.length <= most) return long;
  const each = Math.floor((most - MARK) / 2);
  if (each <= 0) return "";
  return `${firstChars(long, each)}\n\n... (${long.length - 2 * each} characters left out) ...\n\n${lastChars(long, each)}`;
}
