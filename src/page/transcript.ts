// Converts a thread to text to copy or download.

import type { Message, Part } from "../client/client.ts";
import { t } from "./texts.ts";

type ReadableContent = string | readonly Part[];

/** Omits reasoning, and writes calls and results as code blocks. */
export function toMarkdown(title: string, messages: readonly Message[]): string {
  return `# ${title}\n\n${messages.map(section).join("\n\n")}\n`;
}

function section(message: Message): string {
  const words = t().transcript;
  switch (message.role) {
    case "user":
      return `## ${words.you}\n\n${textOf(message.content)}`;
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(
        ({ name, args }) =>
          `**${words.callOf(`\`${name}\``)}**\n\n${fenced(JSON.stringify(args, null, 2), "json")}`,
      );
      return [`## ${words.assistant}`, ...(message.content ? [message.content] : []), ...calls].join("\n\n");
    }
    case "tool":
      return `**${words.resultOf(`\`${message.name}\``)}**\n\n${fenced(message.error ?? textOf(message.content))}`;
    case "system":
      return `## ${words.system}\n\n${textOf(message.content)}`;
  }
}

export const textOf = (content: ReadableContent): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : `[${part.media_type}]`)).join("\n\n");

/** Uses a fence that is longer than any fence in the text. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
