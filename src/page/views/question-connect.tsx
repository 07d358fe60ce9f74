// A call that needs the user's account at another service.

import { hashOf } from "../routes.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import type { BodyProps } from "./question-body.ts";

/** After the user signs in at the URL, the run continues by itself and the question disappears. */
export function Connect({ ask: { url }, isOff, answer }: BodyProps) {
  if (!may("run")) return null;
  const words = t().question;
  return (
    <div class="row actions">
      {url?.startsWith("http") && (
        <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
          {words.signIn}
        </a>
      )}
      <a class="button" href={hashOf({ view: "tools", tab: "connections" })}>
        {words.connections}
      </a>
      <button type="button" disabled={isOff} onClick={() => void answer({ decision: "approve" })}>
        {words.isConnected}
      </button>
      <button type="button" disabled={isOff} onClick={() => void answer({ decision: "deny" })}>
        {words.deny}
      </button>
    </div>
  );
}
