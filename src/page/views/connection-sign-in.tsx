// Connects an account in a new tab and waits until the server has its tokens.

import { useEffect, useState } from "preact/hooks";
import { Action, Problem, visible } from "../components.tsx";
import { connectionTexts } from "../texts/connections.ts";
import type { ConnectionMethods } from "./connection-methods.ts";

const EVERY_MS = 2_000;
/** The server's maximum page size, which is larger than the number of a user's connections. */
const MOST = 100;

interface Props {
  readonly methods: ConnectionMethods;
  /** Called with a description of what happened. */
  readonly onConnected: (said: string) => void;
}

interface StartedSignIn {
  readonly url: string;
  readonly expires_at: string;
  readonly id: string;
  /** The time of the connection's previous change. */
  readonly before: string | undefined;
}

/** `verb`: the words of its button. */
export function SignIn({ id, verb, methods, onConnected }: Props & { id: string; verb: string }) {
  const words = connectionTexts();
  const { asked, isOver, ask } = useSignIn({ methods, onConnected });
  if (asked) return <SignInLink url={asked.url} />;
  return (
    <>
      <Action class="primary" label={`${verb}: ${id}`} onClick={() => ask(id)}>
        {verb}
      </Action>
      <Problem>{isOver && words.over}</Problem>
    </>
  );
}

/** Uses a link, because browsers block windows that a page opens. */
function SignInLink({ url }: Pick<StartedSignIn, "url">) {
  const words = connectionTexts();
  return (
    <p class="row">
      <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
        {words.open}
      </a>
      <span role="status">{words.waits}</span>
    </p>
  );
}

function useSignIn({ methods, onConnected }: Props) {
  const [asked, setAsked] = useState<StartedSignIn>();
  const [isOver, setOver] = useState(false);
  const changeOf = async (id: string) =>
    (await methods.list({ limit: MOST })).items.find((each) => each.id === id)?.updated_at;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the caller's functions have the same effect after each redraw.
  useEffect(() => {
    if (!asked) return undefined;
    const look = async () => {
      const now = await changeOf(asked.id).catch(() => asked.before);
      if (now !== undefined && now !== asked.before) {
        setAsked(undefined);
        onConnected(connectionTexts().signedIn(visible(asked.id)));
      } else if (Date.parse(asked.expires_at) < Date.now()) {
        setAsked(undefined);
        setOver(true);
      }
    };
    const timer = setInterval(look, EVERY_MS);
    return () => clearInterval(timer);
  }, [asked]);
  const ask = async (id: string) => {
    setOver(false);
    const before = await changeOf(id);
    setAsked({ id, before, ...(await methods.authorize(id)) });
  };
  return { asked, isOver, ask };
}
