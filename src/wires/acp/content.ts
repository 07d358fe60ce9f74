// Converts the content of messages between ACP's blocks and Skein's parts.

import { type ContentBlock, type EmbeddedResource, RequestError } from "@agentclientprotocol/sdk";
import { type Content, ImagePart, type Part } from "../../agent/core/message.ts";

/** Converts a prompt and the resources that the editor adds to it. Throws `-32602` for unsupported or empty content. */
export function contentOf(prompt: readonly ContentBlock[]): Content {
  const parts: Part[] = [];
  for (const block of prompt) {
    const part = partOf(block);
    const last = parts.at(-1);
    // Merges adjacent texts, because editors split a sentence at each file that it mentions.
    if (part.type === "text" && last?.type === "text") parts[parts.length - 1] = joined(last.text, part.text);
    else if (part.type !== "text" || part.text !== "") parts.push(part);
  }
  const [first] = parts;
  if (!first) throw refused("The prompt is empty. It must have a text, an image or a resource.");
  return parts.length === 1 && first.type === "text" ? first.text : parts;
}

const joined = (before: string, text: string): Part => ({ type: "text", text: before + text });

function partOf(block: ContentBlock): Part {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image": {
      const image = ImagePart.safeParse({
        type: "image",
        media_type: block.mimeType,
        data: block.data,
      });
      if (image.success) return image.data;
      throw refused("An image must be base64 of type image/png, image/jpeg, image/gif or image/webp.");
    }
    case "resource_link":
      return { type: "text", text: `[${block.name}](${block.uri})` };
    case "resource":
      return resourceOf(block.resource);
    case "audio":
      throw refused("Audio is not supported. Send text, images or resources.");
  }
}

function resourceOf(resource: EmbeddedResource["resource"]): Part {
  if ("text" in resource)
    return { type: "text", text: `\n<resource uri="${resource.uri}">\n${resource.text}\n</resource>\n` };
  const { blob: data, mimeType, uri } = resource;
  const media_type = mimeType ?? "application/octet-stream";
  return { type: "file", media_type, data, name: uri.split("/").at(-1) || uri };
}

const refused = (message: string) => new RequestError(-32602, message);

/** Returns a message's content as blocks. */
export function blocksOf(content: Content): ContentBlock[] {
  if (typeof content === "string") return content === "" ? [] : [text(content)];
  return content.map((part) => {
    if (part.type === "text") return text(part.text);
    const { media_type: mimeType, data } = part;
    if (part.type === "image") return { type: "image", mimeType, data };
    return { type: "resource", resource: { uri: part.name ?? "file", mimeType, blob: data } };
  });
}

export const text = (words: string): ContentBlock => ({ type: "text", text: words });
