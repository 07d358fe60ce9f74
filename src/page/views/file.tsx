// A workspace file in a dialog: text that can be edited, an image, or a file that can only be downloaded.

import { useEffect, useState } from "preact/hooks";
import { ProblemError } from "../../client/client.ts";
import { Action, Copy, Dialog, Empty, Plain, Problem, useRead, visible } from "../components.tsx";
import { contentOf, type DecodedContent, IMAGE_BYTES, SHOWN_BYTES, toField } from "../content.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { nameOf, sizeOf } from "../tree.ts";
import { Confirm } from "./confirm.tsx";
import { download } from "./download.ts";
import { Editor, hasDraft } from "./editor.tsx";

interface FileProps {
  readonly agent: string | undefined;
  readonly path: string;
  readonly onClose: () => void;
  /** Called after the file was written or deleted. */
  readonly onChanged: () => void;
}

export function FileDialog(props: FileProps) {
  const { agent, path } = props;
  const {
    value: opened,
    problem,
    reload,
  } = useRead((signal) => openFile(path, agent, signal), [agent, path]);
  return (
    <Dialog title={visible(path)} class="file" onClose={props.onClose}>
      <Problem>{problem}</Problem>
      {!opened && !problem && <Empty>{t().shared.reading}</Empty>}
      {opened && <FileEditor {...props} opened={opened} reload={reload} />}
    </Dialog>
  );
}

interface OpenedFile {
  /** The content, or the beginning of a large file. */
  readonly start: Blob;
  readonly isWhole: boolean;
  readonly content: DecodedContent;
  /** True if the file does not exist yet. */
  readonly isNew: boolean;
}

/** Reads only as much as the dialog shows. */
async function openFile(path: string, agent: string | undefined, signal: AbortSignal): Promise<OpenedFile> {
  let isNew = false;
  const read = async () => {
    try {
      return await client.files.read(path, { agent, range: { first: 0, last: SHOWN_BYTES } }, signal);
    } catch (error) {
      const code = error instanceof ProblemError ? error.code : "";
      isNew = code === "not_found";
      // An empty file has no first byte.
      if (isNew || code === "range_not_satisfiable") return new Blob([]);
      throw error;
    }
  };
  const start = await read();
  const isWhole = start.size <= SHOWN_BYTES;
  const bytes = new Uint8Array(await start.slice(0, SHOWN_BYTES).arrayBuffer());
  return { start, isWhole, isNew, content: contentOf(bytes, isWhole) };
}

function FileEditor(props: FileProps & { opened: OpenedFile; reload: () => void }) {
  const { agent, path, opened, onClose, onChanged } = props;
  const { content, isWhole, isNew } = opened;
  const canEdit = may("run") && isWhole && content.kind === "text" && content.lineEnd !== undefined;
  const [isEdited, setEdited] = useState(isNew || hasDraft(agent, path));
  if (canEdit && isEdited)
    return (
      <Editor
        agent={agent}
        path={path}
        opened={isNew ? undefined : content.text}
        lineEnd={content.lineEnd ?? "\n"}
        onSaved={() => {
          setEdited(false);
          props.reload();
          onChanged();
        }}
        onCancel={() => (isNew ? onClose() : setEdited(false))}
      />
    );
  return (
    <>
      <p class="row">
        {canEdit && (
          <button type="button" onClick={() => setEdited(true)}>
            {t().file.edit}
          </button>
        )}
        <Action onClick={async () => download(await client.files.read(path, { agent }), nameOf(path))}>
          {t().file.download}
        </Action>
        {content.kind === "text" && <Copy text={() => content.text} />}
        {may("run") && (
          <Confirm
            class="danger"
            question={t().file.deleteQuestion}
            onConfirm={async () => {
              await client.files.delete(path, { agent });
              onChanged();
              onClose();
            }}
          >
            {t().shared.delete}
          </Confirm>
        )}
      </p>
      <FileContents {...props} canEdit={canEdit} />
    </>
  );
}

function FileContents({
  agent,
  path,
  opened,
  canEdit,
}: FileProps & { opened: OpenedFile; canEdit: boolean }) {
  const { content, isWhole, start } = opened;
  const words = t().file;
  switch (content.kind) {
    case "image":
      return <Picture agent={agent} path={path} type={content.type} whole={isWhole ? start : undefined} />;
    case "bytes":
      return <Empty>{words.noText}</Empty>;
    case "text":
      return (
        <>
          {!isWhole && <p class="note">{words.cut(sizeOf(SHOWN_BYTES))}</p>}
          {isWhole && !canEdit && may("run") && <p class="note">{words.mixedEnds}</p>}
          {content.text === "" ? (
            <Empty>{words.empty}</Empty>
          ) : (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
            <pre class="text" tabIndex={0}>
              <Plain>{content.lineEnd ? toField(content.text) : content.text}</Plain>
            </pre>
          )}
        </>
      );
  }
}

function Picture(props: { agent: string | undefined; path: string; type: string; whole: Blob | undefined }) {
  const { agent, path, type } = props;
  const [address, setAddress] = useState<string>();
  const { value, problem } = useRead(
    async (signal) => {
      // Reads one byte more than the dialog shows, to find out whether the file is longer.
      const range = { first: 0, last: IMAGE_BYTES };
      return props.whole ?? (await client.files.read(path, { agent, range }, signal));
    },
    [agent, path, props.whole],
  );
  const isTooLarge = (value?.size ?? 0) > IMAGE_BYTES;
  useEffect(() => {
    if (!value || isTooLarge) return;
    const made = URL.createObjectURL(new Blob([value], { type }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [value, isTooLarge, type]);
  if (isTooLarge) return <Empty>{t().file.largeImage(sizeOf(IMAGE_BYTES))}</Empty>;
  if (!address) return problem ? <Problem>{problem}</Problem> : <Empty>{t().shared.reading}</Empty>;
  return <img class="picture" src={address} alt={visible(nameOf(path))} />;
}
