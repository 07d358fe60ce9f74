// A folder in the tree and its open folders. Each folder is read when the user opens it, and again when it may have
// changed.

import { useEffect, useRef, useState } from "preact/hooks";
import type { FileEntry } from "../../client/client.ts";
import { Plain, Problem, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { client, may, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { joined, nameOf, shownIn, sizeOf } from "../tree.ts";
import { Confirm } from "./confirm.tsx";
import { UploadButton, type Uploader } from "./upload.tsx";

interface Listing {
  readonly entries?: readonly FileEntry[];
  readonly problem?: string;
}

export interface Folders {
  /** The open folders by their path in the workspace. An empty path is the workspace itself. */
  readonly open: ReadonlyMap<string, Listing>;
  toggle(path: string): void;
  /** Reads all open folders again. */
  refresh(): void;
  remove(path: string): Promise<void>;
}

/** The maximum number of folders to read again. Any others are closed. */
const MAX_OPEN = 100;

export function useFolders(agent: string | undefined, version: number): Folders {
  const [open, setOpen] = useState<ReadonlyMap<string, Listing>>(new Map([["", {}]]));
  const paths = useRef<readonly string[]>([]);
  paths.current = [...open.keys()];
  const ending = useRef(new AbortController());

  const put = (path: string, listing: Listing) =>
    setOpen((before) => (before.has(path) ? new Map(before).set(path, listing) : before));
  const read = async (path: string) => {
    const { signal } = ending.current;
    try {
      put(path, { entries: await client.files.list(path, { agent }, signal) });
    } catch (error) {
      if (!signal.aborted) put(path, { problem: messageOf(error) });
    }
  };
  const refresh = () => {
    for (const path of paths.current) void read(path);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when the files may have changed.
  useEffect(() => {
    ending.current = new AbortController();
    refresh();
    return () => ending.current.abort();
  }, [agent, version]);

  return {
    open,
    toggle(path) {
      const isOpen = open.has(path);
      const others = [...open].filter(([each]) => !isOpen || (each !== path && !each.startsWith(`${path}/`)));
      setOpen(new Map(isOpen ? others : [...others.slice(0, MAX_OPEN - 1), [path, {}]]));
      if (!isOpen) void read(path);
    },
    refresh,
    async remove(path) {
      await client.files.delete(path, { agent });
      refresh();
    },
  };
}

interface FolderProps {
  readonly path: string;
  readonly folders: Folders;
  readonly upload: Uploader;
  readonly onFile: (path: string) => void;
}

export function Folder({ path, ...props }: FolderProps) {
  const { entries, problem } = props.folders.open.get(path) ?? {};
  const { shown, more } = shownIn(entries ?? []);
  return (
    <>
      <Problem>{problem}</Problem>
      <ul>
        {shown.map((entry) => (
          <Entry key={entry.path} entry={entry} {...props} path={joined(path, nameOf(entry.path))} />
        ))}
        {more > 0 && <li class="empty">{t().files.moreEntries(number(more))}</li>}
        {path !== "" && entries?.length === 0 && <li class="empty">{t().files.emptyFolder}</li>}
      </ul>
    </>
  );
}

function Entry({ entry, path, ...props }: FolderProps & { entry: FileEntry }) {
  const name = nameOf(entry.path);
  if (entry.type !== "directory")
    return (
      <li>
        <div class="entry">
          <button type="button" class="name" onClick={() => props.onFile(path)}>
            <span aria-hidden="true" class="icon">
              {entry.type === "symlink" ? "↗" : "·"}
            </span>
            <Plain>{name}</Plain>
          </button>
          <span class="size">{sizeOf(entry.size)}</span>
        </div>
      </li>
    );
  const isOpen = props.folders.open.has(path);
  return (
    <li
      onDragOver={(event) => may("run") && event.preventDefault()}
      onDrop={(event) => props.upload.drop(event, path)}
    >
      <div class="entry">
        <button type="button" class="name" aria-expanded={isOpen} onClick={() => props.folders.toggle(path)}>
          <span aria-hidden="true" class="icon">
            {isOpen ? "▾" : "▸"}
          </span>
          <Plain>{`${name}/`}</Plain>
        </button>
        {may("run") && isOpen && <UploadButton into={path} upload={props.upload} />}
        {may("run") && isOpen && (
          <Confirm
            class="quiet"
            label={t().files.deleteFolder(visible(name))}
            question={t().files.deleteFolderQuestion}
            onConfirm={() => props.folders.remove(path)}
          >
            ✕
          </Confirm>
        )}
      </div>
      {isOpen && <Folder path={path} {...props} />}
    </li>
  );
}
