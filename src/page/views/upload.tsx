// Uploads files into the workspace, one after another. The user chooses them, or drops them on a folder.

import type { TargetedDragEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog, FileButton, Plain, Problem, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { client, may, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { joined, nameOf } from "../tree.ts";

interface Job {
  readonly files: readonly File[];
  readonly into: string;
}

export interface Uploader {
  readonly state: {
    /** The names that already exist, until the user confirms that they may be replaced. */
    readonly asked?: Job & { readonly existing: readonly string[] };
    readonly running?: { readonly name: string; readonly done: number; readonly of: number };
    readonly problem?: string;
  };
  add(files: readonly File[], into: string): void;
  drop(event: TargetedDragEvent<HTMLElement>, into: string): void;
  /** The answer to `asked`. */
  replace(isMeant: boolean): void;
  cancel(): void;
}

/** The maximum number of files. Dropping a whole source folder is probably a mistake. */
const MAX_FILES = 100;

/** Calls `then` after each file. */
export function useUpload(agent: string | undefined, then: () => void): Uploader {
  const [state, setState] = useState<Uploader["state"]>({});
  const ending = useRef(new AbortController());
  useEffect(() => () => ending.current.abort(), []);

  const send = async ({ files, into }: Job) => {
    ending.current.abort();
    ending.current = new AbortController();
    const { signal } = ending.current;
    try {
      for (const [done, file] of files.entries()) {
        setState({ running: { name: file.name, done, of: files.length } });
        await client.files.write(joined(into, file.name), file, { agent }, signal);
        then();
      }
      setState({});
    } catch (error) {
      setState(signal.aborted ? {} : { problem: messageOf(error) });
    }
  };
  const add = async (files: readonly File[], into: string) => {
    if (files.length > MAX_FILES) return setState({ problem: t().upload.tooMany(number(MAX_FILES)) });
    try {
      const listed = await client.files.list(into, { agent });
      const names = new Set(listed.map(({ path }) => nameOf(path)));
      const existing = files.map(({ name }) => name).filter((name) => names.has(name));
      if (existing.length > 0) setState({ asked: { files, into, existing } });
      else await send({ files, into });
    } catch (error) {
      setState({ problem: messageOf(error) });
    }
  };

  return {
    state,
    add: (files, into) => void add(files, into),
    drop(event, into) {
      if (!may("run") || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.stopPropagation();
      const hasFolder = [...event.dataTransfer.items].some((item) => item.webkitGetAsEntry()?.isDirectory);
      if (hasFolder) setState({ problem: t().upload.noFolders });
      else void add([...event.dataTransfer.files], into);
    },
    replace(isMeant) {
      if (isMeant && state.asked) void send(state.asked);
      else setState({});
    },
    cancel: () => ending.current.abort(),
  };
}

export const UploadButton = ({ into, upload }: { into: string; upload: Uploader }) => (
  <FileButton
    label={into === "" ? t().upload.files : t().upload.into(visible(into))}
    onFiles={(files) => upload.add(files, into)}
  >
    ⤒{into === "" ? ` ${t().upload.upload}` : ""}
  </FileButton>
);

/** Shows the progress of an upload, and asks before files are replaced. */
export function Upload({ upload }: { upload: Uploader }) {
  const { asked, running, problem } = upload.state;
  const words = t().upload;
  return (
    <>
      {running && (
        <p class="row" role="status">
          <span class="grows">
            {words.uploading} <Plain>{running.name}</Plain>
            {running.of > 1 && ` ${words.count(number(running.done + 1), number(running.of))}`}…
          </span>
          <button type="button" onClick={upload.cancel}>
            {t().shared.cancel}
          </button>
        </p>
      )}
      <Problem>{problem}</Problem>
      {asked && (
        <Dialog title={words.replaceQuestion} onClose={() => upload.replace(false)}>
          <p>{words.exist(asked.existing.length)}</p>
          <ul>
            {asked.existing.map((name) => (
              <li key={name}>
                <Plain>{joined(asked.into, name)}</Plain>
              </li>
            ))}
          </ul>
          <p class="row">
            <button type="button" class="danger" onClick={() => upload.replace(true)}>
              {words.replace}
            </button>
            <button type="button" onClick={() => upload.replace(false)}>
              {t().confirm.keep}
            </button>
          </p>
        </Dialog>
      )}
    </>
  );
}
