// Text from elsewhere between tags: it cannot close the tag it is in.

/** `text` inside `<tag>`; what would close the tag is defused. */
export function tagged(tag: string, text: string): string {
  const inside = text.replaceAll(new RegExp(`<(\\s*/\\s*${tag}\\b)`, "gi"), "<\\$1");
  return `<${tag}>\n${inside}\n</${tag}>`;
}
