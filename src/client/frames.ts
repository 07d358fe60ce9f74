// Reads Server-Sent Events out of a response body.

export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** The frames of `body` as they come. Ends with it; comments are passed over. */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, void, void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const frame = parsed(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (frame) yield frame;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
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
