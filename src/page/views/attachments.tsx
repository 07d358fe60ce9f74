// The files of a message, which the user has chosen, pasted or dropped.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Part, partOf } from "../../client/client.ts";
import { FileButton, Plain } from "../components.tsx";
import { placeOf } from "../drafts.ts";
import { type KeptFile, keepFiles, keptFiles } from "../kept-files.ts";
import { messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { Picture } from "./picture.tsx";

export interface Attachments {
  readonly files: readonly KeptFile[];
  readonly parts: readonly Part[];
  readonly problem: string;
  add(files: readonly File[]): Promise<void>;
  remove(file: KeptFile): void;
  /** Call this when the message is being sent. */
  clear(): void;
  /** Shows the files of a message that is being rewritten. The user's own attachments stay stored. */
  borrow(parts: readonly Part[]): void;
  /** Shows the user's own attachments again. */
  restore(): void;
}

/** The maximum number of files in a message. */
const MAX_FILES = 20;
const MAX_BYTES = 20 * 1024 * 1024;

/** The files of the next message in the thread. They are kept when the user reloads the page or closes the tab. */
export function useAttachments(thread?: string): Attachments {
  const [files, setFiles] = useState<readonly KeptFile[]>([]);
  /** Several files can be added at the same time. */
  const now = useRef(files);
  const [problem, setProblem] = useState("");
  const isBorrowed = useRef(false);
  const place = placeOf(thread);
  const show = useCallback((shown: readonly KeptFile[]) => {
    now.current = shown;
    setFiles(shown);
  }, []);
  const change = (changed: readonly KeptFile[]) => {
    show(changed);
    if (!isBorrowed.current) void keepFiles(place, changed);
  };
  const restore = useCallback(() => {
    isBorrowed.current = false;
    show([]);
    void keptFiles(place).then((kept) => {
      // Files that the user has added in the meantime come last.
      if (!isBorrowed.current) show([...kept, ...now.current]);
    });
  }, [place, show]);
  useEffect(restore, [restore]);
  const borrow = useCallback(
    (parts: readonly Part[]) => {
      isBorrowed.current = true;
      show(parts.map((part) => ({ part, name: nameOf(part) })));
    },
    [show],
  );
  return {
    files,
    parts: files.map(({ part }) => part),
    problem,
    restore,
    borrow,
    clear: () => change([]),
    remove: (file) => change(files.filter((each) => each !== file)),
    async add(chosen) {
      setProblem("");
      const words = t().attachments;
      if (files.length + chosen.length > MAX_FILES) return setProblem(words.tooMany(MAX_FILES));
      if (chosen.some(({ size }) => size > MAX_BYTES)) return setProblem(words.tooLarge);
      try {
        const read = async (file: File) => {
          const part = await partOf(file, file.name);
          return { part, name: file.name || nameOf(part) };
        };
        const added = await Promise.all(chosen.map(read));
        change([...now.current, ...added]);
      } catch (error) {
        setProblem(messageOf(error));
      }
    },
  };
}

export const AttachButton = ({ attachments }: { attachments: Attachments }) => (
  <FileButton label={t().attachments.attach} onFiles={(files) => void attachments.add(files)}>
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M13 7.2 8 12.2a3 3 0 0 1-4.3-4.3l5.4-5.3a2 2 0 0 1 2.8 2.8l-5.3 5.3a1 1 0 0 1-1.4-1.4l4.6-4.6" />
    </svg>
  </FileButton>
);

export function Attached({ attachments: { files, remove } }: { attachments: Attachments }) {
  if (files.length === 0) return null;
  return (
    <ul class="attached" aria-label={t().attachments.attached}>
      {files.map((file) => (
        <li key={file.part}>
          {file.part.type === "image" && <Picture part={file.part} name={file.name} />}
          <Plain>{file.name}</Plain>{" "}
          <button
            type="button"
            class="quiet"
            aria-label={t().attachments.remove(file.name)}
            onClick={() => remove(file)}
          >
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

const nameOf = (part: Part): string =>
  part.type === "text"
    ? t().attachments.text
    : part.type === "file" && part.name
      ? part.name
      : part.media_type;
