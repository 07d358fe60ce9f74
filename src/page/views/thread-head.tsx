// The header of a conversation: its title, agent, usage and actions.

import { useState } from "preact/hooks";
import { Action, Copy, Dialog, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { lazy } from "../lazy.tsx";
import type { LiveThread } from "../live.ts";
import { Menu } from "../menu.tsx";
import { compact, money, percent } from "../numbers.ts";
import { go, hashOf } from "../routes.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { branchesOf } from "../thread-groups.ts";
import { threads } from "../threads.ts";
import { toMarkdown } from "../transcript.ts";
import { download } from "./download.ts";
import { ThreadMenu } from "./thread-menu.tsx";

const ShareDialog = lazy(async () => (await import("./share-dialog.tsx")).ShareDialog);

export function ThreadHead({ live, onDetails }: { live: LiveThread; onDetails: () => void }) {
  const { state, info, connection } = useTouched(live);
  const [isMenuOpen, setMenuOpen] = useState(false);
  return (
    <header class="head thread-head">
      <Menu />
      <div class="about">
        <h1>{info?.title ? visible(info.title) : t().threadHead.conversation}</h1>
        <Facts live={live} />
      </div>
      {info && <Branches thread={info.id} />}
      {state !== "missing" && connection !== "live" && connection !== "asleep" && (
        <span class={`connection ${connection}`}>
          {connection === "connecting" ? t().threadHead.connecting : t().threadHead.reconnecting}
        </span>
      )}
      {info && (
        <button
          type="button"
          class="quiet"
          aria-label={t().threadHead.more}
          title={t().threadHead.more}
          onClick={() => setMenuOpen(true)}
        >
          ⋯
        </button>
      )}
      {state !== "missing" && (
        <button type="button" class="narrow quiet" onClick={onDetails}>
          {t().threadHead.details}
        </button>
      )}
      {isMenuOpen && info && <MoreDialog live={live} onClose={() => setMenuOpen(false)} />}
    </header>
  );
}

/** The agent, model, tokens and origin of the thread. */
function Facts({ live: { info, usage, page } }: { live: LiveThread }) {
  const words = t().threadHead;
  const run = useTouched(page.run);
  const agent = run.agent ?? info?.agent;
  const spent = (usage ? usage.input_tokens + usage.output_tokens : 0) + (run.isActive ? run.tokens : 0);
  const hits = usage?.cache_hit_ratio;
  return (
    <p class="summary">
      {agent && <span>{visible(agent)}</span>}
      {run.model && <span>{visible(run.model)}</span>}
      {spent > 0 && (
        <span title={hits === undefined ? undefined : words.cached(percent(hits))}>
          {words.tokens(compact(spent))}
        </span>
      )}
      {usage?.cost !== undefined && <span title={words.costOf}>{money(usage.cost)}</span>}
      {info?.parent && (
        <a href={hashOf({ view: "thread", thread: info.parent.thread_id })}>{words.worksFor}</a>
      )}
      {info?.forked_from && (
        <a href={hashOf({ view: "thread", thread: info.forked_from.thread_id })}>{words.forkedFrom}</a>
      )}
    </p>
  );
}

function MoreDialog({ live, onClose }: { live: LiveThread; onClose: () => void }) {
  const [isRenaming, setRenaming] = useState(false);
  const [isSharing, setSharing] = useState(false);
  const words = t().threadHead;
  const { info } = live;
  if (!info) return null;
  if (isRenaming) return <ThreadMenu thread={info} isCurrent onClose={onClose} />;
  const { id } = info;
  if (isSharing) return <ShareDialog thread={id} onClose={onClose} />;
  const title = info.title || id;
  const messages = async () => (await client.threads.state(id)).messages;
  const asMarkdown = async () => toMarkdown(title, await messages());
  const asJson = async () => JSON.stringify(await messages(), null, 2);
  const done = (work: () => Promise<unknown>) => async () => {
    await work();
    onClose();
  };
  const saved = (read: () => Promise<string>, type: string, ending: string) =>
    done(async () => download(new Blob([await read()], { type }), `${title}.${ending}`));
  return (
    <Dialog title={words.conversation} class="more" onClose={onClose}>
      <div class="choices">
        <Copy class="" text={asMarkdown} label={words.copyMarkdown} />
        <Copy class="" text={asJson} label={words.copyJson} />
        <Action onClick={saved(asMarkdown, "text/markdown", "md")}>{words.saveMarkdown}</Action>
        <Action onClick={saved(asJson, "application/json", "json")}>{words.saveJson}</Action>
        {may("run") && (
          <>
            <Action
              onClick={done(async () => go({ view: "thread", thread: (await client.threads.fork(id)).id }))}
            >
              {words.duplicate}
            </Action>
            <button type="button" onClick={() => setSharing(true)}>
              {t().sharing.share}
            </button>
            <button type="button" onClick={() => setRenaming(true)}>
              {words.renameOrDelete}
            </button>
          </>
        )}
      </div>
    </Dialog>
  );
}

/**
 * Moves between a conversation and its branches: `‹ 2/3 ›`. Hidden for a thread that has no branches or is not in the
 * list.
 */
function Branches({ thread }: { thread: string }) {
  const found = branchesOf(useTouched(threads).items, thread);
  if (!found) return null;
  const { of, at } = found;
  const step = (to: number, label: string, mark: string) => {
    const id = of[to]?.id;
    return (
      <button
        type="button"
        class="quiet"
        aria-label={label}
        disabled={id === undefined}
        onClick={() => id !== undefined && go({ view: "thread", thread: id })}
      >
        {mark}
      </button>
    );
  };
  return (
    <nav class="branches" aria-label={t().threadList.branches}>
      {step(at - 1, t().threadList.branchBefore, "‹")}
      <span>
        {at + 1}/{of.length}
      </span>
      {step(at + 1, t().threadList.branchNext, "›")}
    </nav>
  );
}
