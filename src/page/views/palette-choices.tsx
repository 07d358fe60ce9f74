// The results in the palette: conversations, words in messages, agents, views and actions.

import { useLayoutEffect, useState } from "preact/hooks";
import type { FoundThread } from "../../client/client.ts";
import { indexIn, isIn } from "../../lib/search.ts";
import { Problem, useRead, visible } from "../components.tsx";
import { isSendingEnter } from "../enter.ts";
import { boundKeys } from "../keys.ts";
import { go, type Route } from "../routes.ts";
import { client, may, messageOf } from "../session.ts";
import { connectionTexts } from "../texts/connections.ts";
import { t } from "../texts.ts";
import { threads } from "../threads.ts";

interface PaletteChoice {
  readonly group: string;
  readonly name: string;
  /** Shown next to the name: an excerpt of a message, or a key. */
  readonly more?: string;
  readonly act: () => void;
}

/** The maximum number of results in each group. */
const MOST = 8;
const TYPING_MS = 200;

interface Props {
  /** The id of the list element. */
  readonly id: string;
  readonly q: string;
  /** The component stores its handler for the field's key events here. */
  readonly onKey: { current: ((event: KeyboardEvent) => void) | undefined };
  /** Called with the id of the option that Enter chooses. */
  readonly onChosen: (id: string | undefined) => void;
  readonly onClose: () => void;
}

export function PaletteChoices({ id, q, onKey, onChosen, onClose }: Props) {
  const words = t().palette;
  const [moved, setMoved] = useState({ q, to: 0 });
  const [actions] = useState(actionChoices);
  const { value: agents = [] } = useRead(agentChoices, []);
  const { value: found, problem } = useFound(q);
  const local = [...threadChoices(threads.items), ...viewChoices(), ...actions, ...agents];
  const choices = [...grouped(local.filter((choice) => fits(choice, q))), ...(found ?? [])];
  const current = Math.min(moved.q === q ? moved.to : 0, choices.length - 1);
  const chosen = choices.length > 0 ? `${id}-${current}` : undefined;
  useLayoutEffect(() => {
    onChosen(chosen);
    if (chosen !== undefined) document.getElementById(chosen)?.scrollIntoView({ block: "nearest" });
  }, [chosen, onChosen]);
  const choose = (choice: PaletteChoice | undefined) => {
    if (!choice) return;
    onClose();
    // The dialog must be closed before anything else can receive focus.
    setTimeout(choice.act);
  };
  onKey.current = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isSendingEnter(event)) choose(choices[current]);
    else if (step) setMoved({ q, to: (current + step + choices.length) % Math.max(1, choices.length) });
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div id={id} role="listbox" aria-label={words.title} class="choices-found" tabIndex={-1}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the search field has the focus and handles the keys.
          <div
            key={`${choice.group} ${choice.name} ${choice.more}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => choose(choice)}
          >
            <span class="group">{choice.group}</span> <bdi class="name">{choice.name}</bdi>{" "}
            {choice.more && <bdi class="more-words">{choice.more}</bdi>}
          </div>
        ))}
      </div>
      <p role="status" class="quietly">
        {choices.length === 0 && words.nothing}
      </p>
      <Problem>{problem ?? ""}</Problem>
    </>
  );
}

/** Searches messages on the server once the user stops typing. */
function useFound(q: string) {
  const words = q.trim();
  return useRead(
    async (signal) => {
      if (words === "") return [];
      await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
      signal.throwIfAborted();
      const { items } = await client.threads.list({ q: words, in: "messages", limit: MOST }, signal);
      return items.flatMap((thread) => hitChoice(thread, words));
    },
    [words],
  );
}

function hitChoice({ id, title, match }: FoundThread, words: string): PaletteChoice[] {
  if (!match) return [];
  return [
    {
      group: t().palette.messages,
      name: visible(title || id),
      more: visible(fromHit(match.text.replace(/\s+/g, " "), words)),
      act: () => go({ view: "thread", thread: id, message: match.message_id, words }),
    },
  ];
}

const LEAD = 16;

/** A single line has room for only a few characters before the matched words. */
function fromHit(text: string, words: string): string {
  const at = indexIn(text.toLowerCase(), words.toLowerCase());
  return at > LEAD ? `…${text.slice(at - LEAD)}` : text;
}

const threadChoices = (items: readonly FoundThread[]): PaletteChoice[] =>
  items.map(({ id, title }) => ({
    group: t().palette.threads,
    name: visible(title || id),
    act: () => go({ view: "thread", thread: id }),
  }));

function viewChoices(): PaletteChoice[] {
  const { navigation, palette } = t();
  const views: readonly (readonly [string, Route])[] = [
    ...(may("run") ? [[navigation.newConversation, { view: "new" }] as const] : []),
    [navigation.inbox, { view: "inbox" }],
    [navigation.runs, { view: "runs" }],
    [navigation.usage, { view: "usage" }],
    [navigation.agents, { view: "agents" }],
    [navigation.schedules, { view: "schedules" }],
    [navigation.tools, { view: "tools" }],
    [connectionTexts().title, { view: "tools", tab: "connections" }],
    ...(may("admin") || may("operator") ? [[navigation.admin, { view: "admin" }] as const] : []),
    [navigation.settings, { view: "settings" }],
  ];
  return views.map(([name, route]) => ({ group: palette.views, name, act: () => go(route) }));
}

/** The actions of the keys that the view binds. */
const actionChoices = (): PaletteChoice[] =>
  boundKeys().map(({ keys, command, act }) => ({
    group: t().palette.actions,
    name: t().keys.commands[command],
    more: keys,
    act,
  }));

async function agentChoices(signal: AbortSignal): Promise<PaletteChoice[]> {
  const agents = await client.agents.list(signal).catch((error) => {
    throw new Error(messageOf(error));
  });
  return agents.map(({ name }) => ({
    group: t().palette.agents,
    name: visible(name),
    act: () => go({ view: "agents", agent: name }),
  }));
}

function fits({ group, name }: PaletteChoice, q: string): boolean {
  const text = `${group} ${name}`.toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => isIn(text, word));
}

function grouped(choices: readonly PaletteChoice[]): PaletteChoice[] {
  const counts = new Map<string, number>();
  return choices.filter(({ group }) => {
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    return count <= MOST;
  });
}
