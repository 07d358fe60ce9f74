// Reads Server-Sent Events out of a response body.

export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** The frames of `body` as they come. Ends with it; comments are passed over. */
export async function* frames(body: AsyncIterable<Uint8Array>): AsyncGenerator<Frame, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    // The blank line may be split between two chunks.
    const from = Math.max(0, rest.length - 1);
    rest += decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf("\n\n", from); end >= 0; end = rest.indexOf("\n\n")) {
      const frame = parsed(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (frame) yield frame;
    }
  }
}

function parsed(block: string): Frame | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()] as const;
    }),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  const id = fields.get("id");
  return { event: fields.get("event") ?? "message", data, ...(id === undefined ? {} : { id }) };
}
