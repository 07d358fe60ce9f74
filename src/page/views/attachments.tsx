// The files of a message: chosen, pasted or dropped.

import { useState } from "preact/hooks";
import { type Part, partOf } from "../../client/client.ts";
import { FileButton, Plain } from "../components.tsx";
import { messageOf } from "../session.ts";

export interface Attachments {
  readonly parts: readonly Part[];
  readonly problem: string;
  add(files: readonly File[]): Promise<void>;
  set(parts: readonly Part[]): void;
}

/** Of one message. */
const MAX_FILES = 20;
const MAX_BYTES = 20 * 1024 * 1024;

export function useAttachments(): Attachments {
  const [parts, set] = useState<readonly Part[]>([]);
  const [problem, setProblem] = useState("");
  return {
    parts,
    problem,
    set,
    async add(files) {
      setProblem("");
      if (parts.length + files.length > MAX_FILES)
        return setProblem(`At most ${MAX_FILES} files go with a message.`);
      if (files.some(({ size }) => size > MAX_BYTES))
        return setProblem("A file is larger than 20 MiB: put it into the workspace, in the tab Files.");
      try {
        const added = await Promise.all(files.map((file) => partOf(file, file.name)));
        set((before) => [...before, ...added]);
      } catch (error) {
        setProblem(messageOf(error));
      }
    },
  };
}

export const AttachButton = ({ attachments }: { attachments: Attachments }) => (
  <FileButton label="Attach files" onFiles={(files) => void attachments.add(files)}>
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M13 7.2 8 12.2a3 3 0 0 1-4.3-4.3l5.4-5.3a2 2 0 0 1 2.8 2.8l-5.3 5.3a1 1 0 0 1-1.4-1.4l4.6-4.6" />
    </svg>
  </FileButton>
);

export function Attached({ attachments: { parts, set } }: { attachments: Attachments }) {
  if (parts.length === 0) return null;
  return (
    <ul class="attached" aria-label="Attached">
      {parts.map((part) => (
        <li key={part}>
          <Plain>{nameOf(part)}</Plain>{" "}
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${nameOf(part)}`}
            onClick={() => set(parts.filter((each) => each !== part))}
          >
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

const nameOf = (part: Part): string =>
  part.type === "text" ? "Text" : part.type === "file" && part.name ? part.name : part.media_type;
