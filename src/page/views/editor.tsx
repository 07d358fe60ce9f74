// Edits a file as text. Reads the file again before saving, so changes from elsewhere are not lost silently.

import { useState } from "preact/hooks";
import { ProblemError } from "../../client/client.ts";
import { Problem, visible } from "../components.tsx";
import { fromField, toField } from "../content.ts";
import { client, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { DiffView } from "./diff-view.tsx";

interface Draft {
  /** The content of the file when it was opened. Undefined if the file did not exist. */
  readonly opened: string | undefined;
  readonly lineEnd: "\n" | "\r\n";
  readonly text: string;
}

/** The unsaved edits by agent and path. They are kept when the dialog is closed. */
const drafts = new Map<string, Draft>();
/** The maximum number of drafts. A new draft replaces the oldest one. */
const MAX_DRAFTS = 20;

const keyOf = (agent: string | undefined, path: string) => `${agent ?? ""}/${path}`;
export const hasDraft = (agent: string | undefined, path: string): boolean => drafts.has(keyOf(agent, path));

function keepDraft(key: string, draft: Draft): void {
  drafts.delete(key);
  drafts.set(key, draft);
  const [oldest] = drafts.keys();
  if (drafts.size > MAX_DRAFTS && oldest !== undefined) drafts.delete(oldest);
}

export function Editor(props: {
  agent: string | undefined;
  path: string;
  /** Undefined if the file does not exist. */
  opened: string | undefined;
  lineEnd: "\n" | "\r\n";
  onSaved: () => void;
  onCancel: () => void;
}) {
  const { agent, path } = props;
  const key = keyOf(agent, path);
  const [draft, setDraft] = useState<Draft>(
    drafts.get(key) ?? { opened: props.opened, lineEnd: props.lineEnd, text: toField(props.opened ?? "") },
  );
  const { opened, lineEnd, text } = draft;
  const words = t().file;
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  /** The current content, if it differs from the opened content. `null` if the file no longer exists. */
  const [conflict, setConflict] = useState<{ now: string | null }>();
  const write = (next: string) => {
    const changed = { ...draft, text: next };
    keepDraft(key, changed);
    setDraft(changed);
  };

  const save = async (isForced: boolean) => {
    setBusy(true);
    setProblem("");
    try {
      const { text: now, version } = await fileNow(path, agent);
      const isShown = conflict?.now === now;
      if (isForced ? !isShown : now !== (opened ?? null)) setConflict({ now });
      else {
        await client.files.write(path, fromField(text, lineEnd), { agent, version });
        drafts.delete(key);
        return props.onSaved();
      }
    } catch (error) {
      // The file changed between the read and the write.
      const changed = error instanceof ProblemError && error.code === "precondition_failed";
      if (changed) setConflict({ now: (await fileNow(path, agent)).text });
      else setProblem(messageOf(error));
    }
    setBusy(false);
  };
  const discard = () => {
    drafts.delete(key);
    props.onCancel();
  };

  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        void save(false);
      }}
    >
      {conflict ? (
        <Conflict
          opened={opened}
          now={conflict.now}
          mine={fromField(text, lineEnd)}
          isBusy={isBusy}
          onMine={() => void save(true)}
          onTheirs={() => {
            drafts.delete(key);
            props.onSaved();
          }}
          onBack={() => setConflict(undefined)}
        />
      ) : (
        <p class="row">
          <button type="submit" class="primary" disabled={isBusy || text === toField(opened ?? "\0")}>
            {t().shared.save}
          </button>
          <button type="button" onClick={discard}>
            {opened === undefined ? words.discardNew : words.discard}
          </button>
        </p>
      )}
      <Problem>{problem}</Problem>
      {visible(text) !== text && <p class="note">{words.unseen}</p>}
      <textarea
        aria-label={words.textOf(visible(path))}
        value={text}
        spellcheck={false}
        autocapitalize="off"
        wrap="off"
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void save(false);
          }
          // Shift+Tab leaves the field.
          if (event.key !== "Tab" || event.shiftKey) return;
          event.preventDefault();
          document.execCommand("insertText", false, "\t");
        }}
      />
    </form>
  );
}

/** Returns null if the file does not exist. */
async function fileNow(path: string, agent: string | undefined) {
  try {
    const { bytes, version } = await client.files.readVersion(path, { agent });
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await bytes.arrayBuffer());
    return { text, version };
  } catch (error) {
    if (error instanceof ProblemError && error.code === "not_found") return { text: null, version: null };
    throw error;
  }
}

function Conflict(props: {
  opened: string | undefined;
  now: string | null;
  mine: string;
  isBusy: boolean;
  onMine: () => void;
  onTheirs: () => void;
  onBack: () => void;
}) {
  const { opened, now, mine } = props;
  const words = t().file;
  return (
    <section class="conflict" aria-label={words.conflict}>
      <p class="problem" role="alert">
        {now === null ? words.wasDeleted : opened === undefined ? words.wasCreated : words.wasChanged}
      </p>
      {now !== null && (
        <>
          <p class="note">{words.fromNow}</p>
          <DiffView before={now} after={mine} />
        </>
      )}
      <p class="row">
        <button type="button" class="danger" disabled={props.isBusy} onClick={props.onMine}>
          {words.saveMine}
        </button>
        {now !== null && (
          <button type="button" onClick={props.onTheirs}>
            {words.discardMine}
          </button>
        )}
        <button type="button" onClick={props.onBack}>
          {words.editOn}
        </button>
      </p>
    </section>
  );
}
