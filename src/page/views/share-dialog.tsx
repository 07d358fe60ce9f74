// Creates, copies and revokes the links that allow other users of the tenant to read a conversation.

import { useState } from "preact/hooks";
import { Action, Copy, Dialog, Empty, fullTime, Problem, useRead } from "../components.tsx";
import { hashOf } from "../routes.ts";
import { baseUrl, client, session } from "../session.ts";
import { t } from "../texts.ts";

const DAY_S = 86_400;
const DAYS = [1, 7, 30] as const;

export function ShareDialog({ thread, onClose }: { thread: string; onClose: () => void }) {
  const words = t().sharing;
  const [days, setDays] = useState<number>(7);
  const { value: shares, problem, reload } = useRead((signal) => client.shares.of(thread, signal), [thread]);
  const linkTo = (share: string) =>
    `${baseUrl}/${hashOf({ view: "shared", user: session.me?.user ?? "", thread, share })}`;
  return (
    <Dialog title={words.title} class="share" onClose={onClose}>
      <p>{words.explained(session.me?.tenant ?? "")}</p>
      <div class="row">
        <label>
          {words.endsIn}
          <select value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
            {DAYS.map((each) => (
              <option key={each} value={each}>
                {words.days(each)}
              </option>
            ))}
          </select>
        </label>
        <Action
          class="primary"
          onClick={async () => {
            await client.shares.create(thread, { expires_in: days * DAY_S });
            reload();
          }}
        >
          {words.make}
        </Action>
      </div>
      <Problem>{problem ?? ""}</Problem>
      {shares?.length === 0 && <Empty>{words.none}</Empty>}
      <ul class="shares">
        {shares?.map(({ id, expires_at }) => (
          <li key={id} class="row">
            <span>{words.until(fullTime(expires_at))}</span>
            <Copy class="" text={() => linkTo(id)} label={words.copy} />
            <Action
              class="danger"
              onClick={async () => {
                await client.shares.end(thread, id);
                reload();
              }}
            >
              {words.end}
            </Action>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
