// Messages from stock front ends, which choose their own ids and send the whole conversation with every request.

import { createHash } from "node:crypto";
import { AppError } from "../agent/core/errors.ts";
import { mediaTypeOf } from "../agent/core/media-type.ts";
import { type UserMessage, userMessage } from "../agent/core/message.ts";
import type { SentMessage } from "../engine/runs/align.ts";
import { Id } from "../protocol/ids.ts";

/** Returns the thread for a client's id: the id itself if it is a valid thread id, otherwise its SHA-256 in hex. */
export function threadIdOf(id: string): string {
  return Id.safeParse(id).success ? id : createHash("sha256").update(id).digest("hex");
}

const MESSAGE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns the message for the thread. It keeps the client's id, so both sides use the same one. */
export function messageOf({ id, content }: SentMessage): UserMessage {
  const message = userMessage(content);
  return id !== undefined && MESSAGE_ID.test(id) ? { ...message, id } : message;
}

const DATA_URL = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=\s]*)$/;

/** Returns the media type and the base64 data of a `data:` URL. Throws `invalid_request` for any other URL. */
export function readDataUrl(url: string): { media_type: string; data: string } {
  const [, media_type, data] = DATA_URL.exec(url) ?? [];
  if (media_type === undefined || data === undefined)
    throw new AppError(
      "invalid_request",
      "Only `data:` URLs with base64 are supported, because the server fetches nothing.",
    );
  const bare = data.replaceAll(/\s/g, "");
  return { media_type: mediaTypeOf(bare, media_type), data: bare };
}
